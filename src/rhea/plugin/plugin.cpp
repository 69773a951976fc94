// Where the registrations of a plugin go.
#include "rhea/plugin/plugin.h"

#include <utility>

namespace rhea::plugin {

Plugin::Plugin(std::string origin) : origin_(std::move(origin)) {}

void Plugin::op(const ir::OpDef& row) { ops::add_op(row, origin_); }

void Plugin::cpu_kernel(std::string_view op, ir::CpuKernel kernel) {
  ops::add_cpu_kernel(op, std::move(kernel), origin_);
}

void Plugin::cpu_kernel(std::string_view op, ops::SimpleKernel kernel) {
  ops::add_cpu_kernel(op, ops::to_cpu_kernel(std::move(kernel)), origin_);
}

}  // namespace rhea::plugin
