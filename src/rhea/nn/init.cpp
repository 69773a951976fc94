// Initial values from the counter RNG.
#include "rhea/nn/init.h"

#include "rhea/base/rng.h"

namespace rhea::nn {

void initialise(void* data, DType dtype, int64_t count, const Init& init, uint64_t seed,
                std::string_view fqn, ThreadPool& pool) {
  const RngKey key = rng_key(seed, fqn);
  const double bound = init.std > 0 ? init.cut / init.std : 0;
  const auto element = [&](int64_t i) -> double {
    const auto index = static_cast<uint64_t>(i);
    switch (init.kind) {
      case Init::Kind::zeros:
        return 0;
      case Init::Kind::ones:
        return 1;
      case Init::Kind::normal:
        return init.std * rng_normal(key, index);
      default:
        return init.std * rng_truncated_normal(key, index, -bound, bound);
    }
  };
  dispatch_dtype(dtype, [&]<class T>() {
    T* out = static_cast<T*>(data);
    pool.parallel_for(
        count,
        [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) {
            if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
              out[i] = T(static_cast<float>(element(i)));
            else
              out[i] = static_cast<T>(element(i));
          }
        },
        int64_t{1} << 14);
  });
}

}  // namespace rhea::nn
