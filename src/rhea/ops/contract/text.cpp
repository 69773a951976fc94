// The text of a sample's graph: read back, and damaged.
#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/ir/parse.h"
#include "rhea/ir/print.h"
#include "rhea/ir/verify.h"
#include "rhea/ops/contract/checks.h"

namespace rhea::ops {

void check_text(const OpDef& op, Findings& f) {
  for (const ir::Sample& sample : samples_of(op)) {
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    ir::verify(c->graph);
    const std::string text = ir::to_text(c->graph);
    const std::string again = ir::to_text(ir::parse(text, find_op));
    f.expect(again == text, "the text of the graph reads back as another one:\n{}\n{}", text,
             again);
  }
}

// Attributes and shapes that make no sense are errors of the row, never a crash.
void check_damaged_text(const OpDef& op, Findings& f) {
  const RngKey key = rng_key(11, op.name);
  uint64_t draw = 0;
  const auto below = [&](size_t bound) {
    return static_cast<size_t>(rng_below(key, draw++, static_cast<uint64_t>(bound)));
  };
  constexpr std::string_view digits = "0123456789-,[]";
  for (const ir::Sample& sample : samples_of(op)) {
    const std::string text = ir::to_text(make_case(op, sample)->graph);
    for (int round = 0; round < 150; ++round) {
      std::string damaged = text;
      for (int k = 0; k <= round % 3; ++k)
        damaged[below(damaged.size())] = digits[below(digits.size())];
      try {
        ir::verify(ir::parse(damaged, find_op));
      } catch (const Error&) {
      } catch (const std::exception& error) {
        f.fail("sample {}: infer throws '{}', which is no rhea::Error, for\n{}", sample.name,
               error.what(), damaged);
      }
    }
  }
}

}  // namespace rhea::ops
