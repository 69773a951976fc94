// What an override must keep: the types that the replaced module gives, and its parameters. Both
// modules are traced, the stock one into a graph that is thrown away.
#pragma once
#include <exception>
#include <string>
#include <vector>

#include "rhea/config/config.h"
#include "rhea/nn/trace.h"

namespace rhea::nn {

// The values of what forward() takes or gives. Structs of values have an overload beside them.
template <class F>
void for_each_value(const Trace&, Value& value, const F& f) {
  f(value);
}

class ReplacementCheck {
 public:
  // Before either forward() is called; the scope of the module is open.
  ReplacementCheck(Trace& trace, const Replaced& replaced);

  // Where the stock module traces itself, called with stand-ins of the arguments.
  Trace& stock_trace() { return stock_trace_; }
  template <class T>
  T stand_in(T argument) {
    for_each_value(trace_, argument, [&](Value& value) { value = input_like(value); });
    return argument;
  }
  // What the replacement's forward gives. What it throws comes out as an Error that names override
  // and node, with the thrown one nested in it (an ExitError, which says how the process ends, as
  // it is).
  template <class F>
  auto traced(const F& forward) const {
    try {
      return forward();
    } catch (const std::exception& error) {
      throw_named(error);
    }
  }
  // Results of the stock module and of the replacement, in order.
  void expect(const Value& value) { expected_.push_back(text(value)); }
  void found(const Value& value) { found_.push_back(text(value)); }
  // Throws Error where types or shapes of parameters differ; parameters that one has and the other
  // lacks are noted in the trace.
  void finish();

 private:
  // Inside a handler of `error`.
  [[noreturn]] void throw_named(const std::exception& error) const;
  static std::string text(const Value& value);
  Value input_like(const Value& value);
  void compare_parameters();

  Trace& trace_;
  const Replaced& replaced_;
  size_t parameters_before_, constants_before_;
  ir::Graph stock_graph_;
  Trace stock_trace_;
  std::vector<std::string> expected_, found_;
};

}  // namespace rhea::nn
