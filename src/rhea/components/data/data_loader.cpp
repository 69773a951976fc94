// The loader: the producer thread and its queue of batches.
#include "rhea/components/data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/components/data/mixture.h"
#include "rhea/components/data/open_dataset.h"
#include "rhea/components/data/row_source.h"

namespace rhea::data {
namespace {

// Lists every option that cannot be, so that one run shows all of them.
void check_options(const DataLoaderOptions& options) {
  std::string problems;
  const auto need = [&](bool condition, const std::string& problem) {
    if (!condition) problems += "\n  " + problem;
  };
  need(options.rows >= 1,
       fmt::format("training.local_batch_size = {}: must be at least 1", options.rows));
  need(options.seq_len >= 1,
       fmt::format("training.seq_len = {}: must be at least 1", options.seq_len));
  need(options.dp_size >= 1 && options.dp_rank >= 0 && options.dp_rank < options.dp_size,
       fmt::format("data-parallel rank {} of {}: the rank must lie in [0, {})", options.dp_rank,
                   options.dp_size, options.dp_size));
  need(options.num_workers >= 0 && options.num_workers <= 1024,
       fmt::format("dataloader.num_workers = {}: must lie in [0, 1024]", options.num_workers));
  need(options.prefetch_factor.value_or(2) >= 1,
       fmt::format("dataloader.prefetch_factor = {}: must be at least 1",
                   options.prefetch_factor.value_or(2)));
  need(options.num_packing_bins >= 1,
       fmt::format("dataloader.num_packing_bins = {}: must be at least 1",
                   options.num_packing_bins));
  for (size_t i = 0; i < options.sources.size(); ++i) {
    const SourceOptions& source = options.sources[i];
    need(std::isfinite(source.weight) && source.weight > 0,
         fmt::format("dataloader.sources.{}.weight = {}: must be a positive, finite number", i,
                     source.weight));
    need(source.infinite == options.sources.front().infinite,
         fmt::format(
             "dataloader.sources.{}.infinite = {}, but that of source 0 is {}: all must agree", i,
             source.infinite, options.sources.front().infinite));
  }
  if (!problems.empty()) throw Error("data loader:{}", problems);
}

// Fills a batch row by row. False when not even one row is left, or, without padding, not all of
// them.
bool fill_batch(RowSource& source, const DataLoaderOptions& options, Batch& batch) {
  batch.rows = options.rows;
  batch.seq_len = options.seq_len;
  const auto row_size = static_cast<size_t>(options.seq_len);
  const size_t size = static_cast<size_t>(options.rows) * row_size;
  for (auto* part : {&batch.input, &batch.labels, &batch.positions}) part->resize(size);
  batch.is_token.assign(size, 1);
  for (size_t row = 0; row < static_cast<size_t>(options.rows); ++row) {
    const auto part = [&](std::vector<int32_t>& values) {
      return std::span(values).subspan(row * row_size, row_size);
    };
    const RowView view{part(batch.input), part(batch.labels), part(batch.positions),
                       part(batch.is_token)};
    if (source.next_row(view)) continue;
    if (row == 0 || !options.pad_last_batch) return false;
    const auto fill_rest = [&](std::vector<int32_t>& values, int32_t value) {
      std::fill(values.begin() + static_cast<std::ptrdiff_t>(row * row_size), values.end(), value);
    };
    fill_rest(batch.input, 0);
    fill_rest(batch.labels, kIgnoreLabel);
    fill_rest(batch.is_token, 0);
    for (; row < static_cast<size_t>(options.rows); ++row) {
      const auto positions = part(batch.positions);
      std::iota(positions.begin(), positions.end(), 0);
    }
    break;
  }
  batch.num_valid_labels = std::count_if(batch.labels.begin(), batch.labels.end(),
                                         [](int32_t label) { return label != kIgnoreLabel; });
  return true;
}

std::unique_ptr<RowSource> open_source(const DataLoaderOptions& options,
                                       std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  if (options.sources.empty())
    return open_rows({options.dataset, options.dataset_path, options.infinite, 1.0, options.config},
                     options, std::move(tokenizer));
  std::vector<Mixture::Source> sources;
  DataLoaderOptions part = options;
  for (SourceOptions source : options.sources) {
    source.config = options.config;
    sources.push_back({open_rows(source, part, tokenizer), source.weight});
    ++part.seed;
  }
  return std::make_unique<Mixture>(std::move(sources), options);
}

std::string dataset_identity(const DataLoaderOptions& options) {
  if (options.sources.empty()) return options.dataset;
  std::string names;
  for (const SourceOptions& source : options.sources)
    names.append(names.empty() ? "" : ",").append(source.dataset);
  return names;
}

template <class Enum>
Enum parse_name(std::string_view option, std::string_view name,
                std::initializer_list<std::pair<const char*, Enum>> names) {
  std::string allowed;
  for (const auto& [text, value] : names) {
    if (name == text) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(text);
  }
  throw Error("dataloader.{} = {}: must be one of {}", option, name, allowed);
}

}  // namespace

Packing parse_packing(std::string_view name) {
  return parse_name<Packing>("packing", name,
                             {{"concat", Packing::concat},
                              {"first_fit", Packing::first_fit},
                              {"greedy", Packing::greedy}});
}

OnBadRow parse_on_bad_row(std::string_view name) {
  return parse_name<OnBadRow>("on_bad_row", name,
                              {{"stop", OnBadRow::stop}, {"skip", OnBadRow::skip}});
}

StoppingStrategy parse_stopping_strategy(std::string_view name) {
  return parse_name<StoppingStrategy>("stopping_strategy", name,
                                      {{"on_first_exhausted", StoppingStrategy::on_first_exhausted},
                                       {"all_exhausted", StoppingStrategy::all_exhausted}});
}

// The producer thread fills a queue of batches, each with a snapshot of the state after it; next()
// takes from the front. What state() tells is the state of the batch handed out last, however far
// the producer is ahead.
struct DataLoader::Impl {
  struct Item {
    Batch batch;
    Snapshot snapshot;
    DataStats stats;
    bool end = false;
    std::exception_ptr failure;
  };

  DataLoaderOptions options;
  std::unique_ptr<RowSource> source;
  nlohmann::json identity;  // what a state must agree with
  Snapshot current;
  DataStats current_stats;
  double total_wait = 0;
  bool ended = false;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> ready;
  std::vector<Batch> spare;
  bool stop = false;
  std::thread producer;

  size_t queue_limit() const {
    return static_cast<size_t>(options.prefetch_factor.value_or(2)) *
           static_cast<size_t>(std::max(1, options.num_workers));
  }

  void produce() {
    while (true) {
      Item item;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stop || ready.size() < queue_limit(); });
        if (stop) return;
        if (!spare.empty()) {
          item.batch = std::move(spare.back());
          spare.pop_back();
        }
      }
      try {
        item.end = !fill_batch(*source, options, item.batch);
        item.snapshot = source->snapshot();
        item.stats = source->stats();
      } catch (...) {
        item.failure = std::current_exception();
      }
      const bool last = item.end || item.failure;
      {
        const std::lock_guard lock(mutex);
        ready.push_back(std::move(item));
      }
      changed.notify_all();
      if (last) return;
    }
  }

  void stop_producer() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    if (producer.joinable()) producer.join();
    stop = false;
    ready.clear();
  }
};

DataLoader::DataLoader(const DataLoaderOptions& options,
                       std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : impl_(std::make_unique<Impl>()) {
  check_options(options);
  impl_->options = options;
  impl_->source = open_source(options, std::move(tokenizer));
  constexpr const char* kPackingNames[] = {"concat", "first_fit", "greedy"};
  impl_->identity = {{"version", 1},
                     {"dataset", dataset_identity(options)},
                     {"seed", options.seed},
                     {"packing", kPackingNames[static_cast<int>(options.packing)]},
                     {"dp_rank", options.dp_rank},
                     {"dp_size", options.dp_size}};
  impl_->current = impl_->source->snapshot();
}

DataLoader::~DataLoader() { impl_->stop_producer(); }

bool DataLoader::next(Batch& batch) {
  Impl& self = *impl_;
  if (self.ended) return false;
  if (!self.producer.joinable()) self.producer = std::thread([&self] { self.produce(); });
  const auto begin = std::chrono::steady_clock::now();
  Impl::Item item;
  {
    std::unique_lock lock(self.mutex);
    self.changed.wait(lock, [&] { return !self.ready.empty(); });
    item = std::move(self.ready.front());
    self.ready.pop_front();
    if (!batch.input.empty()) self.spare.push_back(std::move(batch));
  }
  self.changed.notify_all();
  self.total_wait +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (item.failure) {
    self.ended = true;
    std::rethrow_exception(item.failure);
  }
  self.ended = item.end;
  self.current_stats = item.stats;
  if (item.end) return false;
  self.current = std::move(item.snapshot);
  batch = std::move(item.batch);
  return true;
}

std::string DataLoader::state() const {
  nlohmann::json state = impl_->identity;
  state["source"] = impl_->current();
  return state.dump();
}

void DataLoader::restore(std::span<const std::string> rank_states) {
  Impl& self = *impl_;
  self.stop_producer();
  if (rank_states.empty()) throw Error("loader state: there is none");
  std::vector<nlohmann::json> sources;
  try {
    for (size_t rank = 0; rank < rank_states.size(); ++rank) {
      const nlohmann::json saved = parse_json(rank_states[rank]);
      nlohmann::json expected = self.identity;
      expected["dp_rank"] = rank;
      expected["dp_size"] = rank_states.size();
      for (const auto& [key, value] : expected.items())
        if (saved.at(key) != value)
          throw Error(
              "loader state of rank {}: {} was {}, now it is {}; continue with the old value, or "
              "set "
              "checkpoint.exclude_from_loading to dataloader to start the data anew",
              rank, key, saved.at(key).dump(), value.dump());
      sources.push_back(saved.at("source"));
    }
    self.source->restore(sources);
  } catch (const nlohmann::json::exception& error) {
    throw Error("loader state cannot be read: {}", json_reason(error.what()));
  }
  if (static_cast<int>(rank_states.size()) != self.options.dp_size)
    log::info("data",
              "The data of {} ranks go on with {}: the rest of the epoch is split anew, and some "
              "rows may come twice",
              rank_states.size(), self.options.dp_size);
  self.ended = false;
  self.current = self.source->snapshot();
}

double DataLoader::total_wait_seconds() const { return impl_->total_wait; }
DataStats DataLoader::stats() const { return impl_->current_stats; }
std::string DataLoader::description() const { return impl_->source->description(); }

}  // namespace rhea::data
