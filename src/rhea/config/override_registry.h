// OverrideRegistry: the overrides that there are, by name. Nothing is replaced unless
// override.imports names it (override.h).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "rhea/config/config.h"

namespace rhea {

// Which nodes an override is for, besides its target type.
struct OverrideOptions {
  bool exact = false;  // nodes of the target type itself only, not of types derived from it
  // Globs, any of which may match: `*` crosses dots, `?`, `[0-9]`, `[!x]`. Each is compared with
  // all of the node's full path ("model_spec.model.layers.0.attention.rope") and of its path below
  // "model_spec.model.". Empty: every node.
  std::vector<std::string> fqns = {};
  std::string description = {};  // what it does, for the warning that it did nothing
};

namespace config {

// One override of the table, behind its types.
struct Override {
  std::string name;                             // what override.imports says
  std::string origin;                           // the file that registered it
  std::string target;                           // readable name of the target type
  const std::type_info* target_type = nullptr;  // its RTTI, to find derived and related types
  OverrideOptions options;                      // which nodes it is for
  // Whether the node's type is the target's, or derived from it unless exact.
  std::function<bool(const Config& node)> is_target;
  // Throws Error for arguments that it does not take; `arguments` is a JSON object or empty.
  std::function<void(const std::string& arguments)> check_arguments;
  // What comes in the place of `node`, which is a target. Throws what the factory throws.
  std::function<std::unique_ptr<SlotBase>(const Config& node, const std::string& arguments)> make;
};

namespace detail {

// Argument types of a factory: (const Target&) or (const Target&, const Arguments&).
template <class F>
struct Factory : Factory<decltype(&F::operator())> {};
template <class R, class C>
struct Factory<R (*)(C)> {
  using Arguments = void;
};
template <class R, class C, class A>
struct Factory<R (*)(C, A)> {
  using Arguments = std::remove_cvref_t<A>;
};
template <class R, class F, class... A>
struct Factory<R (F::*)(A...) const> : Factory<R (*)(A...)> {};
template <class R, class F, class... A>
struct Factory<R (F::*)(A...)> : Factory<R (*)(A...)> {};

// Sets the fields of an override's arguments from JSON; throws Error naming the override.
void read_arguments(Config& arguments, const std::string& json, const std::string& override_name);
// Throws Error where `json` holds any: the override takes none.
void refuse_arguments(const std::string& json, const std::string& override_name);

}  // namespace detail

// The table: added to by plugins, read when a run applies its overrides.
class OverrideRegistry {
 public:
  // `factory` makes the replacement of a Target node: a config (or a Slot of one) from
  // (const Target&), or from (const Target&, const Arguments&), where Arguments is a Config whose
  // fields are what the override accepts in override.imports, with their defaults.
  //
  // Throws Error for a name that is taken (both origins are named) or has other characters than
  // [A-Za-z0-9_.], and for a target that no slot can hold.
  template <std::derived_from<Config> Target, class F>
  void add(std::string_view name, OverrideOptions options, F factory, std::string_view origin) {
    using Arguments = typename detail::Factory<std::decay_t<F>>::Arguments;
    Override made;
    made.name = name;
    made.origin = origin;
    made.target = rhea::detail::type_name(typeid(Target));
    made.target_type = &typeid(Target);
    made.options = std::move(options);
    made.is_target = [exact = made.options.exact](const Config& node) {
      return exact ? typeid(node) == typeid(Target) : dynamic_cast<const Target*>(&node) != nullptr;
    };
    if constexpr (std::is_void_v<Arguments>) {
      made.check_arguments = [id = made.name](const std::string& json) {
        detail::refuse_arguments(json, id);
      };
      made.make = [factory](const Config& node, const std::string&) {
        return boxed(factory(dynamic_cast<const Target&>(node)));
      };
    } else {
      made.check_arguments = [id = made.name](const std::string& json) {
        Arguments arguments;
        detail::read_arguments(arguments, json, id);
      };
      made.make = [factory, id = made.name](const Config& node, const std::string& json) {
        Arguments arguments;
        detail::read_arguments(arguments, json, id);
        return boxed(factory(dynamic_cast<const Target&>(node), arguments));
      };
    }
    add(std::move(made), typeid(Target));
  }

  // In the order of adding.
  const std::vector<Override>& overrides() const { return overrides_; }

 private:
  template <class R>
  static std::unique_ptr<SlotBase> boxed(const R& made) {
    if constexpr (std::derived_from<R, SlotBase>)
      return std::make_unique<R>(made);
    else
      return std::make_unique<Slot<Config>>(made);
  }
  void add(Override made, const std::type_info& target);

  std::vector<Override> overrides_;
};

// The table of this process, filled at the start: by plugins as they are loaded, by a program that
// calls the trainer as a library before it makes one. Not to be changed while others read.
OverrideRegistry& override_registry();

}  // namespace config
}  // namespace rhea
