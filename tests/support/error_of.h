// The message of what a call throws, for tests of messages.
#pragma once
#include <exception>
#include <string>

namespace rhea::support {

// "no error" when it throws nothing.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rhea::support
