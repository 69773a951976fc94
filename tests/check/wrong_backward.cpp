// Wrong on purpose: the forward is right, the gradient of the gate a hundredth too large.
#include "gated.h"

namespace {
const rhea::ir::OpDef kWrong = my::gated_row<101>("wrong_gated");
}

RHEA_PLUGIN(p) { my::add_feed_forward<&kWrong>(p, "wrong_feed_forward"); }
