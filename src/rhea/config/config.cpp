// Readable names of config types, and replacement of a slot.
#include "rhea/config/config.h"

#include <cxxabi.h>

#include <cstdlib>

namespace rhea {

namespace detail {

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string full;
  // Arguments of templates are no part of the name.
  int depth = 0;
  for (const char c : std::string_view(status == 0 ? text.get() : type.name())) {
    if (c == '<') ++depth;
    if (depth == 0) full += c;
    if (c == '>') --depth;
  }
  const size_t last = full.rfind("::");
  if (last == std::string::npos) return full;
  const std::string name = full.substr(last + 2);
  if (name != "Config") return name;
  const size_t previous = full.rfind("::", last - 1);
  const size_t begin = previous == std::string::npos ? 0 : previous + 2;
  return full.substr(begin, last - begin) + "." + name;
}

}  // namespace detail

std::string type_name(const Config& config) { return detail::type_name(typeid(config)); }

SlotBase& SlotBase::operator=(const SlotBase& other) {
  if (this != &other) {
    value_ = other.clone();
    copy_ = other.copy_;
  }
  return *this;
}

void SlotBase::check_fits(const SlotBase& other) const {
  if (!other.value_) throw Error("cannot fill a slot of {} with nothing", accepted_type());
  if (!accepts(*other.value_))
    throw Error("cannot fill a slot of {} with {}: expected {} or a config derived from it",
                accepted_type(), type_name(*other.value_), accepted_type());
}

void SlotBase::throw_empty() const {
  throw Error("a {} is needed and its slot is empty; fill it with one", accepted_type());
}

void SlotBase::throw_cut(const Config& value, const std::type_info& type) {
  throw Error(
      "a slot is filled with a {} that is seen as a {}, which would lose its other fields; assign "
      "the {} itself",
      type_name(value), detail::type_name(type), type_name(value));
}

void SlotBase::replace(const SlotBase& other) {
  check_fits(other);
  *this = other;
}

}  // namespace rhea
