#include "rhea/ops/onednn_version.h"

#if RHEA_WITH_ONEDNN
#include <dnnl.h>
#include <fmt/core.h>
#endif

namespace rhea::ops {

std::string onednn_version() {
#if RHEA_WITH_ONEDNN
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
#else
  return "not built in";
#endif
}

}  // namespace rhea::ops
