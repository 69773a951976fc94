// The program `rhea`.
#include <string>
#include <vector>

#include "rhea/cli/dispatch.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return rhea::cli::guarded([&] { return rhea::cli::dispatch(words); });
}
