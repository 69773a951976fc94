// Hugging Face weights into native parameters.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/progress.h"
#include "rhea/components/checkpoint/stored_weights.h"

namespace rhea::checkpoint {
namespace {

using safetensors::TensorView;

// A target with the published tensors that fill it.
struct Job {
  const NamedTensor* target;
  std::vector<HfPart> parts;
  std::vector<std::optional<StoredForm>> stored;  // one for each part; nothing: not in the files

  bool is_whole() const {
    return !parts.empty() &&
           std::ranges::all_of(stored, [](const auto& part) { return part.has_value(); });
  }
};

int64_t num_elements(const HfPart& part) {
  int64_t count = 1;
  for (const int64_t dim : part.shape) count *= dim;
  return count;
}

std::vector<Job> jobs_of(std::span<const NamedTensor> targets, const KeyMap& key_map) {
  std::vector<Job> jobs;
  for (const NamedTensor& target : targets)
    jobs.push_back({&target, key_map.to_hf(target.name, target.shape), {}});
  return jobs;
}

std::vector<std::string> names_of(std::span<const Job> jobs) {
  std::vector<std::string> names;
  for (const Job& job : jobs)
    for (const HfPart& part : job.parts) names.push_back(part.name);
  return names;
}

class Import {
 public:
  Import(const std::filesystem::path& folder, const KeyMap& key_map,
         std::span<const NamedTensor> targets)
      : jobs_(jobs_of(targets, key_map)), stored_(folder, names_of(jobs_)), key_map_(key_map) {}

  // Compares before anything is written into a target.
  void compare(bool strict) {
    KeyReport report;
    bool head_missing = false;
    for (Job& job : jobs_) {
      if (job.parts.empty() && !is_adapter(job.target->name))
        result_.without_key.push_back(job.target->name);
      for (const HfPart& part : job.parts) {
        const auto& found = job.stored.emplace_back(stored_.find(part.name));
        if (!found) {
          report.missing.push_back(part.name);
          head_missing = head_missing || part.name == key_map_.head;
          continue;
        }
        use(*found);
        result_.num_elements += num_elements(part);
        check(part, *found, job.target->dtype, report);
      }
      if (!job.is_whole()) result_.absent.push_back(job.target->name);
    }
    check_tied_copies(report);
    for (const std::string& name : stored_.weights().names()) {
      if (used_.contains(name) || !has_elements(name)) continue;
      const bool ignorable = key_map_.ignorable && key_map_.ignorable(name);
      (ignorable ? result_.skipped : report.unexpected).push_back(name);
    }
    if (!strict) leave_out(report);
    report.raise(stored_.weights().path().string(),
                 head_missing ? "Tying the head to the embedding (tie_word_embeddings) would do "
                                "without the head's key."
                              : "");
  }

  void read(const ImportOptions& options) {
    if (options.initialise && !result_.absent.empty()) options.initialise(result_.absent);
    Progress progress("Loaded", static_cast<int64_t>(jobs_.size()));
    const auto run = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        read_target(jobs_[static_cast<size_t>(i)]);
        progress.step();
      }
    };
    const auto count = static_cast<int64_t>(jobs_.size());
    if (options.pool == nullptr)
      run(0, count);
    else
      options.pool->parallel_for(count, [&](int64_t begin, int64_t end, int) { run(begin, end); });
  }

  ImportResult result() const { return result_; }

 private:
  // Transformers writes the matrices of parts that a config has none of.
  bool has_elements(const std::string& name) const {
    const auto& shape = stored_.weights().at(name).shape;
    return std::find(shape.begin(), shape.end(), 0) == shape.end();
  }

  void use(const StoredForm& stored) {
    for (const auto& piece : stored.pieces) {
      const CodedTensor& coded = piece.coded;
      if (coded.scales != nullptr) used_.insert(coded.scales->name);
      if (!used_.insert(coded.values->name).second) continue;  // joined experts, cut into parts
      ++result_.num_tensors;
      if (coded.coding == Coding::fp8_blocks) ++result_.num_fp8;
      if (coded.coding == Coding::mxfp4_swapped || coded.coding == Coding::mxfp4_packed)
        ++result_.num_mxfp4;
    }
  }

  static void check(const HfPart& part, const StoredForm& stored, DType dtype, KeyReport& report) {
    const CodedTensor& coded = stored.pieces.front().coded;
    const bool kind_fits = coded.coding != Coding::plain
                               ? is_float(dtype)
                               : safetensors::convertible(coded.values->dtype, dtype);
    if (stored.shape == part.shape && kind_fits) return;
    report.unequal.push_back(fmt::format("{}: {} [{}] in the file, {} [{}] in the model", part.name,
                                         safetensors::element_type_name(coded.values->dtype),
                                         fmt::join(stored.shape, ", "), dtype_name(dtype),
                                         fmt::join(part.shape, ", ")));
  }

  // What a load that is not strict goes without. A tensor of another shape stays an error: it says
  // that the model is another one.
  void leave_out(KeyReport& report) {
    for (const std::string& name : report.missing)
      result_.left_out.push_back(name + ": not in the files, keeps its initial values");
    for (const std::string& name : report.unexpected)
      result_.left_out.push_back(name + ": not in the model");
    report.missing.clear();
    report.unexpected.clear();
  }

  void read_target(const Job& job) const {
    const NamedTensor& target = *job.target;
    const std::span<std::byte> whole = target.writable_bytes();
    if (job.parts.size() == 1 && job.parts[0].rows.empty()) {
      if (job.stored[0]) stored_.read(*job.stored[0], target.dtype, whole);
      return;
    }
    int64_t filled = 0;
    for (size_t i = 0; i < job.parts.size(); ++i) {
      const HfPart& part = job.parts[i];
      const HfRows rows(part, target.name, target.num_bytes(), dtype_size(target.dtype));
      filled += rows.num_rows * rows.row_bytes;
      if (!job.stored[i]) continue;
      std::vector<std::byte> bytes(static_cast<size_t>(rows.num_rows * rows.row_bytes));
      stored_.read(*job.stored[i], target.dtype, bytes);
      rows.for_each(part, [&](int64_t hf, int64_t native) {
        std::memcpy(whole.data() + native * rows.row_bytes, bytes.data() + hf * rows.row_bytes,
                    static_cast<size_t>(rows.row_bytes));
      });
    }
    if (!job.parts.empty() && filled != target.num_bytes())
      throw Error("key map: the parts of '{}' hold {} of its {} bytes", target.name, filled,
                  target.num_bytes());
  }

  void check_tied_copies(KeyReport& report) {
    for (const auto& [copy, original] : key_map_.tied) {
      const TensorView* a = stored_.plain(copy);
      const TensorView* b = stored_.plain(original);
      if (a == nullptr || b == nullptr || used_.contains(a->name)) continue;
      used_.insert(a->name);
      if (a->dtype == b->dtype && a->shape == b->shape && equal_bytes(*a, *b)) continue;
      report.contradictions.push_back(fmt::format(
          "'{}' and '{}' differ, but the model ties them; untie it (tie_word_embeddings false) to "
          "keep both",
          copy, original));
    }
  }

  // A megabyte at a time, whose memory is given back at once: of both tensors nothing stays.
  bool equal_bytes(const TensorView& a, const TensorView& b) const {
    constexpr size_t kPiece = 1 << 20;
    for (size_t at = 0; at < a.bytes.size(); at += kPiece) {
      const size_t size = std::min(kPiece, a.bytes.size() - at);
      const auto of_a = a.bytes.subspan(at, size), of_b = b.bytes.subspan(at, size);
      const bool equal = std::ranges::equal(of_a, of_b);
      stored_.weights().release(of_a);
      stored_.weights().release(of_b);
      if (!equal) return false;
    }
    return true;
  }

  std::vector<Job> jobs_;
  StoredWeights stored_;
  const KeyMap& key_map_;
  std::set<std::string> used_;
  ImportResult result_;
};

}  // namespace

void compare_hf(const std::filesystem::path& folder, const KeyMap& key_map,
                std::span<const NamedTensor> targets) {
  Import(folder, key_map, targets).compare(true);
}

ImportResult import_hf(const std::filesystem::path& folder, const KeyMap& key_map,
                       std::span<const NamedTensor> targets, const ImportOptions& options) {
  Import import(folder, key_map, targets);
  import.compare(options.strict);
  import.read(options);
  return import.result();
}

}  // namespace rhea::checkpoint
