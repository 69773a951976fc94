// `rhea inspect`
#include "rhea/inspect.h"

#include <iostream>

#include "rhea/base/error.h"
#include "rhea/cli/parse_app.h"

namespace rhea::cli {

int cmd_inspect(Args args) {
  InspectOptions options;
  bool summary = false;
  CLI::App app("Tensors, types, sizes, metadata and problems of weights", "rhea inspect");
  app.add_option("path", options.path,
                 ".safetensors or .gguf file, Hugging Face folder, or step-N folder")
      ->required();
  app.add_flag("--summary", summary, "sums by type instead of every tensor");
  if (const auto done = parse(app, args)) return *done;
  options.tensors = !summary;
  const bool whole = inspect(options, std::cout);
  return static_cast<int>(whole ? ExitCode::ok : ExitCode::user_error);
}

}  // namespace rhea::cli
