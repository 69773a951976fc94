// Errors: exceptions for what a user can get wrong, RHEA_CHECK for our own invariants.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace rhea {

// What went wrong, where, what was expected and found, what to do. `what()` is shown to the user as
// it is.
class Error : public std::runtime_error {
 public:
  // The text as it is.
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  // A text of fmt with its arguments.
  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
    requires(sizeof...(Args) > 0)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

// Exit codes of the program (docs: README, "Exit codes").
enum class ExitCode : int {
  ok = 0,
  user_error = 2,     // config, load or input error
  non_finite = 3,     // loss or gradient norm is not finite
  out_of_memory = 4,  // device, host or disk
  peer_failed = 5,
  interrupted = 130,
  terminated = 143,  // stopped by a signal, nothing saved
};

// Carries the exit code that belongs to the fault; a plain Error exits with user_error.
class ExitError : public Error {
 public:
  // `message` as in Error; `code` is what the program exits with.
  ExitError(ExitCode code, const std::string& message) : Error(message), code_(code) {}
  // The exit code.
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Prints condition, place and message with a backtrace, then aborts (exit status 134).
[[noreturn]] void check_failed(const char* condition, const std::string& message,
                               std::source_location where);

#define RHEA_CHECK(condition, ...)                                 \
  do {                                                             \
    if (!(condition)) [[unlikely]]                                 \
      ::rhea::check_failed(#condition, ::fmt::format(__VA_ARGS__), \
                           std::source_location::current());       \
  } while (false)

// Integer conversion that keeps the value or throws with both numbers.
template <class To, class From>
To narrow(From value) {
  const To result = static_cast<To>(value);
  if (static_cast<From>(result) != value || ((result < To{}) != (value < From{})))
    throw Error("narrow: {} does not fit the target integer type", value);
  return result;
}

// Exact quotient, or throws with both numbers.
inline int64_t div_exact(int64_t dividend, int64_t divisor) {
  if (divisor == 0 || dividend % divisor != 0)
    throw Error("{} is not divisible by {}", dividend, divisor);
  return dividend / divisor;
}

// The quotient of numbers that are not negative, rounded up.
inline int64_t div_up(int64_t dividend, int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}
// The smallest multiple that is not below `value`.
inline int64_t round_up(int64_t value, int64_t multiple) {
  return div_up(value, multiple) * multiple;
}

}  // namespace rhea
