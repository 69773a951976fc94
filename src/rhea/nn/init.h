// How a parameter starts.
#pragma once
#include <cstdint>

namespace rhea::nn {

// A distribution of initial values. They are drawn by counter: each is a function of the seed, the
// parameter's name and the element's index alone.
struct Init {
  // The kinds.
  enum class Kind : uint8_t { zeros, ones, normal, truncated_normal, constant, uniform };
  Kind kind = Kind::zeros;  // which one
  double std = 0;  // of the normal ones; constant: the value; uniform: the bound on both sides
  double cut = 0;  // truncated_normal: absolute bound on both sides

  // One of each kind.
  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones, 0, 0}; }
  static Init normal(double std) { return {Kind::normal, std, 0}; }
  static Init truncated_normal(double std, double cut) {
    return {Kind::truncated_normal, std, cut};
  }
  static Init constant(double value) { return {Kind::constant, value, 0}; }
  static Init uniform(double bound) { return {Kind::uniform, bound, 0}; }
  bool operator==(const Init&) const = default;
};

}  // namespace rhea::nn
