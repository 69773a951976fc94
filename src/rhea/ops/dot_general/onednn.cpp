// oneDNN called from workers of our pool. Rules that it needs for that:
//  - its OpenMP runtime must answer "one thread" in each worker, both when the blocking is chosen
//  and when it runs;
//  - the scratchpad belongs to the caller: a primitive with a scratchpad of its own gives wrong
//  results in two threads at once;
//  - one engine for all, one stream per thread.
#include "rhea/ops/dot_general/onednn.h"

#include <dnnl.hpp>
#include <mutex>

#include "rhea/base/cpu_features.h"
#include "rhea/base/cpu_tiles.h"
#include "rhea/base/error.h"

extern "C" void omp_set_num_threads(int count);

namespace rhea::ops {
namespace {

// What the library may use where RHEA_ISA forbids a part of what the machine has.
dnnl::cpu_isa library_isa() {
  switch (allowed_isa()) {
    case Isa::plain:
      return dnnl::cpu_isa::sse41;
    case Isa::avx2:
      return dnnl::cpu_isa::avx2;
    case Isa::avx512:
      return dnnl::cpu_isa::avx512_core_vnni;
    case Isa::avx512_bf16:
      return dnnl::cpu_isa::avx512_core_bf16;
  }
  throw Error("oneDNN has no level for {}", isa_name(allowed_isa()));
}

const dnnl::engine& engine() {
  // The cap must be set before anything else of the library is used; RHEA_ISA then holds for it
  // too.
  static const dnnl::engine made = [] {
    if (allowed_isa() < detected_isa() || (detected_tiles() && !active_tiles()))
      dnnl::set_max_cpu_isa(library_isa());
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return made;
}

void prepare_thread() {
  thread_local const bool once = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

dnnl::stream& stream() {
  thread_local dnnl::stream made(engine());
  return made;
}

dnnl::memory::data_type library_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl::memory::data_type::f32;
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    default:
      throw Error("oneDNN products are f32 or bf16, got {}", dtype_name(dtype));
  }
}

// The interface takes pointers to non-const data even for operands that are only read.
void* unconst(const void* p) { return const_cast<void*>(p); }

}  // namespace

struct OnednnMatmul::Impl {
  dnnl::matmul::primitive_desc desc;
  std::once_flag once;
  dnnl::matmul primitive;
};

OnednnMatmul::OnednnMatmul(const MatmulShape& s) : impl_(std::make_unique<Impl>()) {
  prepare_thread();
  const auto in = library_dtype(s.in), out = library_dtype(s.out);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::memory::desc a({s.m, s.k}, in, dnnl::memory::dims{s.a_row, s.a_column});
  const dnnl::memory::desc b({s.k, s.n}, in, dnnl::memory::dims{s.b_row, s.b_column});
  const dnnl::memory::desc c({s.m, s.n}, out, dnnl::memory::dims{s.c_row, 1});
  impl_->desc = dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attr, engine());
}

OnednnMatmul::~OnednnMatmul() = default;

int64_t OnednnMatmul::scratch_bytes() const {
  return static_cast<int64_t>(impl_->desc.scratchpad_desc().get_size());
}

std::string OnednnMatmul::implementation() const { return impl_->desc.impl_info_str(); }

void OnednnMatmul::run(const void* a, const void* b, void* c, void* scratch) const {
  prepare_thread();
  std::call_once(impl_->once, [&] { impl_->primitive = dnnl::matmul(impl_->desc); });
  const auto& desc = impl_->desc;
  impl_->primitive.execute(
      stream(), {{DNNL_ARG_SRC, dnnl::memory(desc.src_desc(), engine(), unconst(a))},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(desc.weights_desc(), engine(), unconst(b))},
                 {DNNL_ARG_DST, dnnl::memory(desc.dst_desc(), engine(), c)},
                 {DNNL_ARG_SCRATCHPAD, dnnl::memory(desc.scratchpad_desc(), engine(), scratch)}});
}

}  // namespace rhea::ops
