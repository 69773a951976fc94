// A program with the trainer inside: trains a run of a plugin with two learning rates.
// usage: sweep PLUGIN OUTPUT_FOLDER
#include <cstdio>
#include <exception>
#include <string>

#include "rhea/plugin/loader.h"
#include "rhea/train.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: sweep PLUGIN OUTPUT_FOLDER\n");
    return 2;
  }
  try {
    const rhea::plugin::Module& module = rhea::plugin::load_module(argv[1]);
    int completed = 0;
    for (const double lr : {1e-3, 3e-3}) {
      rhea::TrainerConfig config = module.configs.at(0).make();
      config.optimizer = rhea::default_adamw(lr);
      config.training.steps = 3;
      config.dump_folder = std::string(argv[2]) + "/lr_" + std::to_string(lr);
      if (const auto code = rhea::train(config); code != rhea::ExitCode::ok)
        return static_cast<int>(code);
      ++completed;
    }
    std::printf("%d runs completed\n", completed);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sweep: %s\n", error.what());
    return 2;
  }
}
