// Fuzz target: the text form of a graph. Any bytes give a graph or an Error; a graph that was read
// prints to a text that reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/ir/parse.h"
#include "rhea/ir/print.h"
#include "rhea/ir/verify.h"
#include "rhea/ops/ops.h"

namespace {

using rhea::ir::Graph;

std::optional<Graph> read(std::string_view text) {
  try {
    return rhea::ir::parse(text, [](std::string_view name) { return rhea::ops::find_op(name); });
  } catch (const rhea::Error&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = read({reinterpret_cast<const char*>(data), size});
  if (!graph) return 0;
  const std::string printed = rhea::ir::to_text(*graph);
  const auto again = read(printed);
  RHEA_CHECK(again.has_value(), "does not read back:\n{}", printed);
  RHEA_CHECK(rhea::ir::to_text(*again) == printed, "reads back as another graph:\n{}", printed);
  try {
    rhea::ir::verify(*graph);
  } catch (const rhea::Error&) {  // donations may be impossible
  }
  return 0;
}
