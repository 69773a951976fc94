// How a parameter starts.
#pragma once
#include <cstdint>

namespace rhea::nn {

struct Init {
  enum class Kind : uint8_t { zeros, ones, normal, truncated_normal, constant, uniform };
  Kind kind = Kind::zeros;
  double std = 0;  // constant: the value; uniform: the bound on both sides
  double cut = 0;  // truncated_normal: absolute bound on both sides

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
