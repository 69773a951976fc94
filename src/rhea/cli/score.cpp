// `rhea score`
#include "rhea/score.h"

#include "rhea/cli/parse_app.h"

namespace rhea::cli {

int cmd_score(Args args) {
  ScoreOptions options;
  std::string dtype = "f32";
  int threads = 0;
  CLI::App app("Logits, loss and gradients of a published model folder on given tokens",
               "rhea score");
  app.add_option("--model", options.model,
                 "folder with config.json and safetensors, or step-N of a run")
      ->required();
  app.add_option("--input", options.input,
                 "safetensors: input_ids [B,T] int64, optional labels (shifted) and position_ids")
      ->required();
  app.add_option("--output", options.output,
                 "safetensors: logits [B,T,V], loss [], grad.<parameter>")
      ->required();
  app.add_flag("--grads", options.gradients,
               "also write the gradient of the loss for every parameter");
  app.add_option("--dtype", dtype,
                 "of the computation, and without --grads of the weights in memory")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  add_threads_option(app, threads);
  if (const auto done = parse(app, args)) return *done;
  options.dtype = parse_dtype(dtype);
  ThreadPool pool(threads);
  score(options, pool);
  return 0;
}

}  // namespace rhea::cli
