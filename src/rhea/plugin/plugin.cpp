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

void Plugin::family(models::Family family) { models::families().add(std::move(family), origin_); }
void Plugin::dataset(data::Dataset dataset) { data::datasets().add(std::move(dataset), origin_); }
void Plugin::tokenizer(tokenizer::Reader reader) {
  tokenizer::readers().add(std::move(reader), origin_);
}
void Plugin::metric_sink(metrics::Sink sink) { metrics::sinks().add(std::move(sink), origin_); }
void Plugin::optimizer(train_step::Optimizer optimizer) {
  train_step::optimizers().add(std::move(optimizer), origin_);
}
void Plugin::lr_schedule(lr_scheduler::Decay decay) {
  lr_scheduler::decays().add(std::move(decay), origin_);
}

}  // namespace rhea::plugin
