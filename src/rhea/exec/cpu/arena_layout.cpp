// Liveness of tensors around a round of programs, then one call of the memory planner.
#include "rhea/exec/cpu/arena_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "rhea/base/error.h"

namespace rhea::exec::cpu {
namespace {

using passes::StepRange;

// What a turn does with a tensor.
struct Access {
  Binding* read = nullptr;   // as an input
  Binding* write = nullptr;  // as an output
  bool in_place = false;     // the output takes the place of the input
};

struct Tensor {
  int64_t bytes = 0;
  std::vector<Access> access;  // by turn
};

class Layout {
 public:
  Layout(std::span<const Turn> turns, bool share) : turns_(turns), share_(share) {
    int32_t begin = 0;
    for (const Turn& turn : turns) {
      begins_.push_back(begin);
      begin += turn.program->num_kernel_steps + 1;
    }
    end_ = begin;
  }

  ArenaPeak run() {
    find_tensors();
    std::vector<passes::Lifetime> lives;
    std::vector<int64_t*> targets;
    for (size_t t = 0; t < turns_.size(); ++t) {
      for (ArenaBuffer& buffer : turns_[t].program->buffers) {
        lives.push_back(buffer.life);
        lives.back().first += begins_[t];
        lives.back().last += begins_[t];
        targets.push_back(&buffer.offset);
      }
    }
    std::vector<int64_t> tensor_offsets(tensors_.size(), 0);
    size_t k = 0;
    for (const auto& [name, tensor] : tensors_) {
      if (auto life = life_of(tensor)) {
        lives.push_back(std::move(*life));
        targets.push_back(&tensor_offsets[k]);
      }
      ++k;
    }
    const auto layout = passes::plan_memory(lives);
    for (size_t i = 0; i < targets.size(); ++i) *targets[i] = layout.offsets[i];
    k = 0;
    for (const auto& [name, tensor] : tensors_) {
      for (const Access& access : tensor.access) {
        for (Binding* binding : {access.read, access.write}) {
          if (binding != nullptr) binding->arena_offset = tensor_offsets[k];
        }
      }
      ++k;
    }
    for (const Turn& turn : turns_) finish(*turn.program, layout.total);
    return peak(lives);
  }

 private:
  void find_tensors() {
    // Names that are an output of one program and an input of another.
    std::map<std::string_view, size_t> maker;
    for (size_t t = 0; t < turns_.size(); ++t) {
      for (const auto& out : turns_[t].program->graph.outputs()) {
        if (out.donates.empty()) maker.emplace(out.name, t);
      }
    }
    for (size_t t = 0; t < turns_.size(); ++t) {
      Program& program = *turns_[t].program;
      const auto& inputs = program.graph.inputs();
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto made = maker.find(inputs[i].name);
        if (made == maker.end() || made->second == t) continue;
        Tensor& tensor = tensors_[std::string(made->first)];
        const int64_t bytes = ir::byte_size(program.graph.type(inputs[i].value));
        RHEA_CHECK(tensor.access.empty() || tensor.bytes == bytes,
                   "'{}' has {} bytes in one graph and {} in another", made->first, tensor.bytes,
                   bytes);
        tensor.bytes = bytes;
        tensor.access.resize(turns_.size());
        tensor.access[t].read = &program.inputs[i];
      }
    }
    for (size_t t = 0; t < turns_.size(); ++t) {
      Program& program = *turns_[t].program;
      const auto& outputs = program.graph.outputs();
      for (size_t o = 0; o < outputs.size(); ++o) {
        const auto at =
            tensors_.find(outputs[o].donates.empty() ? outputs[o].name : outputs[o].donates);
        if (at == tensors_.end()) continue;
        RHEA_CHECK(at->second.bytes == ir::byte_size(program.graph.type(outputs[o].value)),
                   "'{}' has other sizes in two graphs", outputs[o].name);
        Access& access = at->second.access[t];
        access.write = &program.outputs[o];
        access.in_place = !outputs[o].donates.empty();
        RHEA_CHECK(access.read == nullptr || access.in_place,
                   "'{}' is an input and an output of one graph, but not donated", outputs[o].name);
      }
    }
  }

  // Steps of the round during which the tensor is needed; none when nothing touches it.
  std::optional<passes::Lifetime> life_of(const Tensor& tensor) const {
    if (!share_) return passes::Lifetime{0, end_ - 1, tensor.bytes, {}};
    const size_t count = turns_.size();
    // Is it needed before and after each turn? Backwards around the round until nothing changes.
    std::vector<bool> before(count, false), after(count, false);
    for (int round = 0; round < 2; ++round) {
      for (size_t t = count; t-- > 0;) {
        const Access& access = tensor.access[t];
        after[t] = after[t] || before[(t + 1) % count] || (turns_[t].repeats && before[t]);
        const bool replaced = access.write != nullptr && !access.in_place && !turns_[t].optional;
        before[t] = before[t] || access.read != nullptr || (after[t] && !replaced);
      }
    }
    std::vector<StepRange> ranges;
    for (size_t t = 0; t < count; ++t) {
      const int32_t begin = begins_[t];
      const int32_t last = begin + turns_[t].program->num_kernel_steps;
      const Access& access = tensor.access[t];
      if (access.write != nullptr && access.read == nullptr) {
        // Where the turn runs, it makes the tensor anew; where it is left out, it touches nothing.
        ranges.push_back({begin + access.write->touched.first, last});
      } else if (before[t] && (after[t] || access.write != nullptr)) {
        ranges.push_back({begin, last});
      } else if (before[t] && access.read->touched.last >= 0) {
        ranges.push_back({begin, begin + access.read->touched.last});
      }
    }
    if (ranges.empty()) return std::nullopt;
    passes::Lifetime life{ranges[0].first, ranges[0].last, tensor.bytes, {}};
    for (size_t i = 1; i < ranges.size(); ++i) {
      int32_t& open_end = life.later.empty() ? life.last : life.later.back().last;
      if (ranges[i].first == open_end + 1) {
        open_end = ranges[i].last;
      } else {
        life.later.push_back(ranges[i]);
      }
    }
    return life;
  }

  // What is alive in the fullest step. `lives` are the programs' buffers, then the tensors.
  ArenaPeak peak(std::span<const passes::Lifetime> lives) const {
    const int32_t step = passes::fullest_step(lives);
    ArenaPeak result;
    const auto turn =
        static_cast<size_t>(std::ranges::upper_bound(begins_, step) - begins_.begin() - 1);
    const Program& program = *turns_[turn].program;
    result.graph = turn;
    const auto number = static_cast<size_t>(step - begins_[turn]);
    if (number < program.steps.size()) {
      const ir::Node& node = program.graph.nodes()[static_cast<size_t>(program.steps[number].node)];
      result.op = node.op->name;
      result.fqn = program.graph.scope_name(node);
    }
    size_t i = 0;
    for (const Turn& t : turns_) {
      const ir::Graph& graph = t.program->graph;
      for (const ArenaBuffer& buffer : t.program->buffers) {
        if (!passes::alive(lives[i++], step)) continue;
        const ir::Node& node = graph.nodes()[static_cast<size_t>(buffer.node)];
        result.buffers.push_back(
            {std::string(node.op->name), graph.scope_name(node), buffer.life.bytes,
             buffer.workspace ? ArenaPeak::Kind::workspace : ArenaPeak::Kind::value});
      }
    }
    for (const auto& [name, tensor] : tensors_) {
      if (!life_of(tensor)) continue;
      if (passes::alive(lives[i++], step))
        result.buffers.push_back({"", name, tensor.bytes, ArenaPeak::Kind::tensor});
    }
    return result;
  }

  static void finish(Program& program, int64_t arena) {
    std::vector<passes::Lifetime> own;
    own.reserve(program.buffers.size());
    for (const ArenaBuffer& buffer : program.buffers) own.push_back(buffer.life);
    program.memory.live = passes::largest_sum_alive(own);
    program.memory.arena = arena;
    for (Step& step : program.steps) {
      for (auto* places : {&step.in, &step.out}) {
        for (Place& place : *places) {
          if (place.base == Place::Base::arena)
            place.offset += program.buffers[static_cast<size_t>(place.index)].offset;
        }
      }
    }
  }

  std::span<const Turn> turns_;
  bool share_;
  std::vector<int32_t> begins_;  // of each turn among the steps of the round
  int32_t end_ = 0;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace

ArenaPeak lay_out_arena(std::span<const Turn> turns, bool share) {
  return Layout(turns, share).run();
}

}  // namespace rhea::exec::cpu
