// Initial values from the counter RNG.
#include "rhea/nn/initialise.h"

#include <algorithm>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/nn/init_kernel.h"

namespace rhea::nn {
namespace {

using DrawNormal = decltype(&isa_plain::draw_normal);

DrawNormal draw_for([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return isa_avx512::draw_normal;
  if (isa >= Isa::avx2) return isa_avx2::draw_normal;
#endif
  return isa_plain::draw_normal;
}

// The code of init_kernel.cpp.
int kernel_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::bf16:
      return 1;
    case DType::f16:
      return 2;
    default:
      RHEA_CHECK(dtype == DType::f64, "parameters of dtype {}", dtype_name(dtype));
      return 3;
  }
}

void draw_uniform(void* data, DType dtype, int64_t count, double bound, uint64_t seed,
                  std::string_view fqn) {
  const RngKey key = rng_key(seed, fqn);
  const auto scale = static_cast<float>(bound);
  dispatch_dtype(dtype, [&]<class T>() {
    auto* out = static_cast<T*>(data);
    for (int64_t i = 0; i < count; ++i) {
      const auto words = philox(key, static_cast<uint64_t>(i / 4));
      const auto number = static_cast<float>(words[static_cast<size_t>(i % 4)] >> 8);
      out[i] = T(scale * (number * 0x1p-23F - 1.0F));
    }
  });
}

}  // namespace

void initialise(void* data, DType dtype, int64_t count, const Init& init, uint64_t seed,
                std::string_view fqn, ThreadPool& pool, Isa isa) {
  using Kind = Init::Kind;
  if (init.kind == Kind::zeros || init.kind == Kind::ones || init.kind == Kind::constant) {
    const float value = init.kind == Kind::constant ? static_cast<float>(init.std)
                        : init.kind == Kind::ones   ? 1.0F
                                                    : 0.0F;
    dispatch_dtype(dtype, [&]<class T>() { std::fill_n(static_cast<T*>(data), count, T(value)); });
    return;
  }
  if (init.kind == Kind::uniform) return draw_uniform(data, dtype, count, init.std, seed, fqn);
  const bool cuts = init.kind == Kind::truncated_normal;
  RHEA_CHECK(init.std > 0 && (!cuts || init.cut > 0), "{}: std {}, cut {}", fqn, init.std,
             init.cut);
  const NormalDraw draw{
      rng_key(seed, fqn).value, static_cast<float>(init.std),
      cuts ? static_cast<float>(init.cut) : std::numeric_limits<float>::infinity(),
      kernel_dtype(dtype)};
  const DrawNormal run = draw_for(isa);
  // An item is as much as makes waking a thread worth while.
  constexpr int64_t kItem = 256 * kDrawnTogether;
  pool.parallel_for(div_up(count, kItem), [&](int64_t begin, int64_t end, int) {
    run(draw, data, begin * kItem, std::min(end * kItem, count));
  });
}

}  // namespace rhea::nn
