// Drawing sources.
#include "rhea/components/data/mixture.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/rng.h"

namespace rhea::data {

Mixture::Mixture(std::vector<Source> sources, const DataLoaderOptions& options)
    : sources_(std::move(sources)),
      exhausted_(sources_.size(), false),
      seed_(options.seed),
      dp_rank_(options.dp_rank),
      dp_size_(options.dp_size),
      stopping_(options.stopping_strategy) {}

size_t Mixture::draw(int64_t row) const {
  double total = 0;
  for (size_t i = 0; i < sources_.size(); ++i) total += exhausted_[i] ? 0 : sources_[i].weight;
  double rest =
      rng_uniform(rng_key(seed_, "dataloader.mixture"), static_cast<uint64_t>(row)) * total;
  size_t last = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (exhausted_[i]) continue;
    last = i;
    rest -= sources_[i].weight;
    if (rest < 0) break;
  }
  return last;
}

bool Mixture::next_row(const RowView& row) {
  while (std::find(exhausted_.begin(), exhausted_.end(), false) != exhausted_.end()) {
    const size_t source = draw(next_ * dp_size_ + dp_rank_);
    if (sources_[source].rows->next_row(row)) {
      ++next_;
      return true;
    }
    if (stopping_ == StoppingStrategy::on_first_exhausted) return false;
    exhausted_[source] = true;
  }
  return false;
}

Snapshot Mixture::snapshot() const {
  std::vector<Snapshot> parts;
  for (const Source& source : sources_) parts.push_back(source.rows->snapshot());
  return [parts = std::move(parts), row = next_, exhausted = exhausted_] {
    nlohmann::json states = nlohmann::json::array();
    for (const Snapshot& part : parts) states.push_back(part());
    return nlohmann::json{{"row", row}, {"exhausted", exhausted}, {"sources", std::move(states)}};
  };
}

void Mixture::restore(std::span<const nlohmann::json> ranks) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    std::vector<nlohmann::json> states;
    for (const nlohmann::json& rank : ranks) {
      if (rank.at("sources").size() != sources_.size())
        throw Error("loader state: {} sources, now there are {}", rank.at("sources").size(),
                    sources_.size());
      states.push_back(rank.at("sources")[i]);
    }
    sources_[i].rows->restore(states);
  }
  const bool same_ranks = static_cast<int64_t>(ranks.size()) == dp_size_;
  const nlohmann::json& own = same_ranks ? ranks[static_cast<size_t>(dp_rank_)] : ranks.front();
  exhausted_ = own.at("exhausted").get<std::vector<bool>>();
  if (exhausted_.size() != sources_.size())
    throw Error("loader state: {} marks for {} sources", exhausted_.size(), sources_.size());
  if (!same_ranks) exhausted_.assign(sources_.size(), false);  // found out again
  next_ = own.at("row").get<int64_t>() * static_cast<int64_t>(ranks.size()) / dp_size_;
}

DataStats Mixture::stats() const {
  DataStats sum;
  for (const Source& source : sources_) {
    const DataStats part = source.rows->stats();
    sum.num_documents += part.num_documents;
    sum.num_empty += part.num_empty;
    sum.num_bad_rows += part.num_bad_rows;
    sum.num_too_long += part.num_too_long;
  }
  return sum;
}

std::string Mixture::description() const {
  std::string text;
  for (const Source& source : sources_)
    text.append(text.empty() ? "" : ", ").append(source.rows->description());
  return text;
}

}  // namespace rhea::data
