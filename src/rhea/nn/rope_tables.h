// Frequencies and tables of the rotary embedding, with every scaling that published models use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rhea::nn {

// R = rotary_dim rotated dims of a head. inv_freq w_i = theta^(-2i/R), i = 0..R/2-1, then scaled:
//   none, linear    w / factor
//   dynamic         NTK: theta grows with the longest position of the batch beyond original_max
//   llama3          long wavelengths / factor, short ones kept, a ramp between (low_freq_factor,
//                   high_freq_factor)
//   yarn            interpolation of slow dims, ramp between the dims that turn beta_fast and
//                   beta_slow times in original_max
//   longrope        per-dim factors: short up to original_max positions, long beyond
struct RopeSpec {
  // How frequencies are scaled for longer contexts: the table above.
  enum class Scaling : uint8_t { none, linear, dynamic, llama3, yarn, longrope };
  int64_t rotary_dim = 0;                            // R, even
  double theta = 10000;                              // base of the frequencies
  Scaling scaling = Scaling::none;                   // and its numbers below
  double factor = 1;                                 // context extension
  double original_max = 0;                           // original_max_position_embeddings
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3: turns in original_max
  double beta_fast = 32, beta_slow = 1;              // yarn: turns in original_max
  bool truncate = true;                              // yarn: the ramp's ends are whole dims
  double mscale = 0, mscale_all_dim = 0;             // yarn, 0 = not given
  double attention_factor = 0;                       // replaces the magnitude, 0 = not given
  std::vector<double> short_factor, long_factor;     // R/2 entries each
  // longrope: magnitudes up to original_max positions and beyond, 0 = computed from factor
  double short_mscale = 0, long_mscale = 0;

  bool operator==(const RopeSpec&) const = default;
  // True when the tables depend on the longest position of the batch.
  bool depends_on_length() const {
    return scaling == Scaling::dynamic || scaling == Scaling::longrope;
  }
};

// Throws Error naming the number that is missing, out of range, or of the wrong count.
void check(const RopeSpec& spec);
// "default" and "none" mean none. Throws Error listing the known ones.
RopeSpec::Scaling parse_scaling(const std::string& name);

// w_i for a batch whose longest position is length-1 (only read by dynamic and longrope).
std::vector<double> inverse_frequencies(const RopeSpec& spec, int64_t length);
// What cos and sin are multiplied with, for such a batch.
double magnitude(const RopeSpec& spec, int64_t length = 0);
// cos and sin, f32 [positions, R/2] each. The angle is pos * w_i in f32, as the published models
// compute it.
void fill_tables(const RopeSpec& spec, int64_t positions, int64_t length, float* cos_SP,
                 float* sin_SP);

}  // namespace rhea::nn
