#include "rhea/config/aliases.h"

#include <fmt/format.h>

#include <optional>

#include "rhea/config/leaf_text.h"

namespace rhea::config {
namespace {

constexpr const char* kTokensPerMicrobatch = "training.num_tokens_per_microbatch_per_dp_rank";
constexpr const char* kTokensPerStep = "training.num_tokens_per_train_step";
constexpr const char* kNumMicrobatches = "parallelism.num_pp_microbatches";

class Resolver {
 public:
  Resolver(const GivenOptions& given, TrainerConfig& config, Report& report)
      : given_(given), config_(config), report_(report) {}

  void run() {
    const auto tokens_per_microbatch = positive(kTokensPerMicrobatch);
    const auto tokens_per_step = number(kTokensPerStep);
    const auto num_microbatches = positive(kNumMicrobatches);
    if (config_.training.seq_len <= 0) return;  // validation names it

    if (tokens_per_microbatch) {
      if (const auto rows = rows_of(kTokensPerMicrobatch, *tokens_per_microbatch)) {
        const auto local = narrow_product(*rows, num_microbatches.value_or(1));
        set("parallelism.pipeline_parallel_microbatch_size",
            config_.parallelism.pipeline_parallel_microbatch_size, *rows, kTokensPerMicrobatch);
        set("training.local_batch_size", config_.training.local_batch_size, local,
            kTokensPerMicrobatch);
      }
    } else if (num_microbatches) {
      const int64_t local = config_.training.local_batch_size;
      if (local % *num_microbatches != 0) {
        report_.add(kNumMicrobatches, std::to_string(*num_microbatches),
                    fmt::format("training.local_batch_size ({}) must be a multiple of it", local));
      } else {
        set("parallelism.pipeline_parallel_microbatch_size",
            config_.parallelism.pipeline_parallel_microbatch_size, local / *num_microbatches,
            kNumMicrobatches);
      }
    }
    if (tokens_per_step) {
      const auto rows = *tokens_per_step == -1 ? std::optional<int64_t>(-1)
                                               : rows_of(kTokensPerStep, *tokens_per_step);
      if (rows)
        set("training.global_batch_size", config_.training.global_batch_size, *rows,
            kTokensPerStep);
    }
  }

 private:
  // Values were checked to be integers when the line was read.
  std::optional<int64_t> number(const char* alias) const {
    const auto it = given_.find(alias);
    if (it == given_.end()) return std::nullopt;
    int64_t value = 0;
    if (parse_leaf(Leaf(&value), it->second.value)) return std::nullopt;
    return value;
  }

  std::optional<int64_t> positive(const char* alias) {
    const auto value = number(alias);
    if (!value || *value > 0) return value;
    report_.add(alias, std::to_string(*value), "must be at least 1");
    return std::nullopt;
  }

  std::optional<int64_t> rows_of(const char* alias, int64_t tokens) {
    const int64_t seq_len = config_.training.seq_len;
    if (tokens > 0 && tokens % seq_len == 0) return tokens / seq_len;
    report_.add(alias, std::to_string(tokens),
                fmt::format("must be a positive multiple of training.seq_len ({})", seq_len));
    return std::nullopt;
  }

  // Saturates: a product that large is refused by the batch rules with its own message.
  static int64_t narrow_product(int64_t a, int64_t b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
  }

  void set(const std::string& path, int64_t& place, int64_t value, const char* alias) {
    const auto it = given_.find(path);
    if (it != given_.end() && place != value) {
      report_.add(path, std::to_string(place),
                  fmt::format("{} {} means {}; give one of the two", given_.at(alias).flag,
                              given_.at(alias).value, value));
      return;
    }
    place = value;
  }

  const GivenOptions& given_;
  TrainerConfig& config_;
  Report& report_;
};

}  // namespace

bool is_converted_alias(const std::string& path) {
  return path == kTokensPerMicrobatch || path == kTokensPerStep || path == kNumMicrobatches;
}

void resolve_aliases(const GivenOptions& given, TrainerConfig& config, Report& report) {
  Resolver(given, config, report).run();
}

}  // namespace rhea::config
