// Loops over contiguous floats that the compiler turns into vectors; sums of products that run
// along a vector have sixteen partial sums, in one order on every CPU.
#include "rhea/ops/delta/delta_kernels.h"
#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

using ops::ConvArgs;
using ops::DeltaArgs;

constexpr int64_t kChannels = 64;  // of a block

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Lags that token t, the i-th of its row, may look back.
int64_t lags(const ConvArgs& a, int64_t t) {
  const int64_t in_row = t % a.seq_len, position = a.positions[t];
  return at_most(a.taps, at_most(in_row, position) + 1);
}

// taps[i][c] = the weight of lag i for channel first + c.
void transpose_taps(const ConvArgs& a, int64_t first, int64_t count, float* taps) {
  for (int64_t i = 0; i < a.taps; ++i) {
    for (int64_t c = 0; c < count; ++c)
      taps[i * kChannels + c] = a.w[(first + c) * a.taps + a.taps - 1 - i];
  }
}

float dot(const float* a, const float* b, int64_t n) {
  float part[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int j = 0; j < 16; ++j) part[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (const float p : part) sum += p;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(float* to, const float* from, float factor, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
}

// sum over i of k[i] S[i, :]
void project(const float* state, const float* k, int64_t h, int64_t v, float* to) {
  for (int64_t j = 0; j < v; ++j) to[j] = 0;
  for (int64_t i = 0; i < h; ++i) add_scaled(to, state + i * v, k[i], v);
}

bool starts_anew(const DeltaArgs& a, int64_t t) {
  return t % a.seq_len == 0 || a.positions[t] == 0;
}

// to = exp(g) from, 0 where a document starts. `to` may be `from`.
float decay(const DeltaArgs& a, int64_t t, int64_t head, const float* from, float* to) {
  const int64_t size = a.key_dim * a.value_dim;
  if (starts_anew(a, t)) {
    for (int64_t i = 0; i < size; ++i) to[i] = 0;
    return 0;
  }
  const float factor = __builtin_expf(a.g[t * a.value_heads + head]);
  for (int64_t i = 0; i < size; ++i) to[i] = factor * from[i];
  return factor;
}

// What k writes into the decayed state, delta = beta (v - S^T k), and without beta in `raw`.
void change(const DeltaArgs& a, int64_t t, int64_t key_head, int64_t head, const float* state,
            float* raw, float* delta) {
  const float* v = a.v + (t * a.value_heads + head) * a.value_dim;
  const float beta = a.beta[t * a.value_heads + head];
  project(state, a.k + (t * a.key_heads + key_head) * a.key_dim, a.key_dim, a.value_dim, raw);
  for (int64_t j = 0; j < a.value_dim; ++j) {
    raw[j] = v[j] - raw[j];
    delta[j] = beta * raw[j];
  }
}

void write(const DeltaArgs& a, int64_t t, int64_t key_head, const float* delta, float* state) {
  const float* k = a.k + (t * a.key_heads + key_head) * a.key_dim;
  for (int64_t i = 0; i < a.key_dim; ++i)
    add_scaled(state + i * a.value_dim, delta, k[i], a.value_dim);
}

// The gradient of one value head through tokens [begin, end), whose states before each token lie in
// `states`; d_state is the cotangent of the state after token end - 1, then of the one before
// begin.
void backward_chunk(const DeltaArgs& a, int64_t key_head, int64_t head, int64_t begin, int64_t end,
                    const float* states, float* decayed, float* d_state, float* vectors) {
  const int64_t h = a.key_dim, v = a.value_dim;
  float *raw = vectors, *delta = raw + v, *d_delta = delta + v;
  for (int64_t t = end; t-- > begin;) {
    const int64_t at = t * a.value_heads + head, key = (t * a.key_heads + key_head) * h;
    const float *q = a.q + key, *k = a.k + key, *d_o = a.d_o + at * v;
    float *dq = a.dq + key, *dk = a.dk + key, *dv = a.dv + at * v;
    const float factor = decay(a, t, head, states + (t - begin) * h * v, decayed);
    change(a, t, key_head, head, decayed, raw, delta);
    const float delta_do = dot(delta, d_o, v), beta = a.beta[at];
    for (int64_t i = 0; i < h; ++i) {
      dq[i] += dot(decayed + i * v, d_o, v) + k[i] * delta_do;
      add_scaled(d_state + i * v, d_o, q[i], v);
    }
    project(d_state, k, h, v, d_delta);
    a.dbeta[at] = dot(d_delta, raw, v);
    for (int64_t j = 0; j < v; ++j) dv[j] = beta * d_delta[j];
    float d_factor = 0;
    for (int64_t i = 0; i < h; ++i) {
      float *row = d_state + i * v, *old = decayed + i * v;
      // dv is also minus the cotangent of S^T k.
      dk[i] += dot(row, delta, v) - dot(old, dv, v);
      add_scaled(row, dv, -k[i], v);
      d_factor += dot(row, old, v);
      for (int64_t j = 0; j < v; ++j) row[j] *= factor;
    }
    a.dg[at] = starts_anew(a, t) ? 0 : d_factor;
    if (starts_anew(a, t)) {
      for (int64_t i = 0; i < h * v; ++i) d_state[i] = 0;
    }
  }
}

}  // namespace

void conv_tokens(const ConvArgs& a, int64_t begin, int64_t end) {
  float* taps = a.scratch;
  for (int64_t first = 0; first < a.channels; first += kChannels) {
    const int64_t count = at_most(kChannels, a.channels - first);
    transpose_taps(a, first, count, taps);
    for (int64_t t = begin; t < end; ++t) {
      float* y = a.y + t * a.channels + first;
      for (int64_t c = 0; c < count; ++c) y[c] = 0;
      for (int64_t i = 0, n = lags(a, t); i < n; ++i) {
        const float* x = a.x + (t - i) * a.channels + first;
        for (int64_t c = 0; c < count; ++c) y[c] += taps[i * kChannels + c] * x[c];
      }
    }
  }
}

void conv_grad_channels(const ConvArgs& a, int64_t tokens, int64_t begin, int64_t end) {
  const int64_t count = end - begin;
  float *taps = a.scratch, *d_taps = taps + a.taps * kChannels;
  transpose_taps(a, begin, count, taps);
  for (int64_t i = 0; i < a.taps * kChannels; ++i) d_taps[i] = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    float* dx = a.dx + t * a.channels + begin;
    for (int64_t c = 0; c < count; ++c) dx[c] = 0;
    const float* dy = a.dy + t * a.channels + begin;
    for (int64_t i = 0, n = lags(a, t); i < n; ++i) {
      const float* x = a.x + (t - i) * a.channels + begin;
      float* dx_then = a.dx + (t - i) * a.channels + begin;
      for (int64_t c = 0; c < count; ++c) {
        dx_then[c] += taps[i * kChannels + c] * dy[c];
        d_taps[i * kChannels + c] += x[c] * dy[c];
      }
    }
  }
  for (int64_t i = 0; i < a.taps; ++i) {
    for (int64_t c = 0; c < count; ++c)
      a.dw[(begin + c) * a.taps + a.taps - 1 - i] = d_taps[i * kChannels + c];
  }
}

void delta_forward(const DeltaArgs& a, int64_t row, int64_t key_head) {
  const int64_t group = a.value_heads / a.key_heads, v = a.value_dim;
  float *state = a.scratch, *raw = state + a.key_dim * v, *delta = raw + v;
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    for (int64_t t = row * a.seq_len; t < (row + 1) * a.seq_len; ++t) {
      decay(a, t, head, state, state);
      change(a, t, key_head, head, state, raw, delta);
      write(a, t, key_head, delta, state);
      project(state, a.q + (t * a.key_heads + key_head) * a.key_dim, a.key_dim, v,
              a.o + (t * a.value_heads + head) * v);
    }
  }
}

void delta_backward(const DeltaArgs& a, int64_t row, int64_t key_head) {
  const int64_t group = a.value_heads / a.key_heads, size = a.key_dim * a.value_dim;
  const int64_t chunk = ops::delta_chunk(a.seq_len), first = row * a.seq_len,
                chunks = (a.seq_len + chunk - 1) / chunk;
  float *starts = a.scratch, *states = starts + chunks * size, *decayed = states + chunk * size,
        *d_state = decayed + size, *vectors = d_state + size;
  for (int64_t t = first; t < first + a.seq_len; ++t) {
    for (int64_t i = 0; i < a.key_dim; ++i)
      a.dq[(t * a.key_heads + key_head) * a.key_dim + i] =
          a.dk[(t * a.key_heads + key_head) * a.key_dim + i] = 0;
  }
  const auto copy = [&](const float* from, float* to) {
    for (int64_t i = 0; i < size; ++i) to[i] = from[i];
  };
  const auto advance = [&](int64_t t, int64_t head, float* state) {
    decay(a, t, head, state, state);
    change(a, t, key_head, head, state, vectors, vectors + a.value_dim);
    write(a, t, key_head, vectors + a.value_dim, state);
  };
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    for (int64_t i = 0; i < size; ++i) decayed[i] = d_state[i] = 0;
    for (int64_t t = 0; t < a.seq_len; ++t) {
      if (t % chunk == 0) copy(decayed, starts + t / chunk * size);
      advance(first + t, head, decayed);
    }
    for (int64_t c = chunks; c-- > 0;) {
      const int64_t begin = c * chunk, end = at_most(a.seq_len, begin + chunk);
      copy(starts + c * size, states);
      for (int64_t t = begin; t + 1 < end; ++t) {
        float* next = states + (t + 1 - begin) * size;
        copy(next - size, next);
        advance(first + t, head, next);
      }
      backward_chunk(a, key_head, head, first + begin, first + end, states, decayed, d_state,
                     vectors);
    }
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
