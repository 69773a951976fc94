#include "rhea/ops/per_isa.h"

#include <deque>
#include <string>

namespace rhea::ops {

std::vector<ir::CpuKernel> kernels_per_isa(std::string_view name, PlanForIsa plan,
                                           std::initializer_list<Isa> isas) {
  // Rows live as long as the program and so do their kernels' names.
  static std::deque<std::string> names;
  std::vector<ir::CpuKernel> kernels;
  for (const Isa isa : isas) {
    names.push_back(std::string(name) + "_" + std::string(isa_name(isa)));
    kernels.push_back({names.back(), isa, nullptr,
                       [plan, isa](const ir::OpInstance& node) { return plan(node, isa); }});
  }
  return kernels;
}

}  // namespace rhea::ops
