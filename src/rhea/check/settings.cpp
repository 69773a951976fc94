// The dtypes and batches in which things are compared, and the graphs of a run in one of them.
#include <fmt/format.h>

#include "rhea/check/subjects.h"
#include "rhea/models/registry.h"
#include "rhea/trainer_options.h"

namespace rhea::check {

nn::TraceOptions Setting::trace() const {
  return {.num_tokens = rows * seq_len,
          .seq_len = seq_len,
          .param_dtype = DType::f32,
          .compute_dtype = dtype};
}

std::string Setting::text() const {
  return fmt::format("{}, {} row{} of {}{}", dtype == DType::bf16 ? "bfloat16" : "float32", rows,
                     rows == 1 ? "" : "s", seq_len, of_run ? " (the run)" : "");
}

std::vector<Setting> settings_of(const TrainerConfig& config) {
  const int64_t rows = config.training.local_batch_size, seq_len = config.training.seq_len;
  std::vector<Setting> made;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    made.push_back({dtype, rows, seq_len, true});
    if (seq_len > 37) made.push_back({dtype, 3, 37});
    if (seq_len > 1) made.push_back({dtype, 1, 1});
  }
  return made;
}

train_step::StepGraphs graphs_of(const TrainerConfig& config, const Setting& setting) {
  train_step::StepOptions options = step_options(config);
  options.trace = setting.trace();
  options.accumulates = options.validates = false;
  options.activation_checkpoint = {};
  options.activation_checkpoint.mode = "none";
  options.dump_graphs.clear();
  return train_step::build_step_graphs(models::decoder(config.model_spec), options);
}

}  // namespace rhea::check
