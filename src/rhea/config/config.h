// Config: base of every plain struct that describes a component, and Slot: an owning, copyable
// place for one.
#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "rhea/base/error.h"

namespace rhea {

class Visitor;
struct Replaced;

// A config is data: public members with defaults, plus fields(), which names every member once
// (rhea/config/visitor.h). Command line, help, JSON, traversal and overrides all come from that one
// function.
struct Config {
  virtual ~Config() = default;
  // Calls v(name, member, meaning, attributes...) for every field, in the order of the help.
  virtual void fields(Visitor& v) = 0;

  // What stood here before an override; null where none did. Shared: copies of a tree have the same
  // history, and nothing changes it.
  std::shared_ptr<const Replaced> replaced;

 protected:
  Config() = default;
  Config(const Config&) = default;
  Config& operator=(const Config&) = default;
};

// Name of the dynamic type as logs show it: `rhea::nn::RMSNorm::Config` is "RMSNorm.Config",
// `rhea::TrainingConfig` is "TrainingConfig".
std::string type_name(const Config& config);

// What Slot<T> is for code that does not know T: the place in the tree that an override may fill
// with another config.
class SlotBase {
 public:
  virtual ~SlotBase() = default;
  // What it holds; null where it is empty.
  Config* get() { return value_.get(); }
  const Config* get() const { return value_.get(); }
  // Whether it holds anything.
  explicit operator bool() const { return value_ != nullptr; }
  // Takes a copy of what `other` holds. Throws Error, and changes nothing, where this slot is for
  // another type.
  void replace(const SlotBase& other);
  // Throws as replace() does, and changes nothing.
  void check_fits(const SlotBase& other) const;
  // Empties it.
  void clear() { value_.reset(); }

 protected:
  // Copies a config as the type that it was stored with.
  using Copy = std::unique_ptr<Config> (*)(const Config&);
  SlotBase() = default;
  // Copies deeply.
  SlotBase(const SlotBase& other) : value_(other.clone()), copy_(other.copy_) {}
  SlotBase(SlotBase&&) = default;
  // Copies deeply.
  SlotBase& operator=(const SlotBase& other);
  SlotBase& operator=(SlotBase&&) = default;
  // A deep copy of what it holds; null where it is empty.
  std::unique_ptr<Config> clone() const { return value_ ? copy_(*value_) : nullptr; }
  // Whether a config is of the type that this slot is for.
  virtual bool accepts(const Config& config) const = 0;
  // The readable name of that type, for messages.
  virtual std::string accepted_type() const = 0;

  // Stores a copy. Throws Error where `value` is of a type derived from D.
  template <class D>
  void hold(const D& value) {
    // A copy through a base reference would silently lose the derived fields.
    if (typeid(value) != typeid(D)) throw_cut(value, typeid(D));
    value_ = std::make_unique<D>(value);
    copy_ = [](const Config& c) -> std::unique_ptr<Config> {
      return std::make_unique<D>(static_cast<const D&>(c));
    };
  }

  // Throws the Error of a slot that holds nothing.
  [[noreturn]] void throw_empty() const;

 private:
  [[noreturn]] static void throw_cut(const Config& value, const std::type_info& type);

  std::unique_ptr<Config> value_;
  Copy copy_ = nullptr;
};

// Holds a T or a config derived from T; copies deeply, so a tree of slots behaves like a value.
// Empty only when T is abstract and nothing was assigned, or after a move; what it holds is asked
// for with an Error then.
template <class T>
class Slot : public SlotBase {
 public:
  Slot() {
    if constexpr (std::default_initializable<T> && !std::is_abstract_v<T>) hold(T{});
  }
  template <std::derived_from<T> D>
  Slot(const D& value) {  // NOLINT: implicit, so that `config.loss = CrossEntropyLossConfig{}`
                          // reads well
    hold(value);
  }
  Slot(const Slot&) = default;
  Slot(Slot&&) = default;
  Slot& operator=(const Slot&) = default;
  Slot& operator=(Slot&&) = default;

  // What it holds. Throws Error where it is empty.
  T* operator->() { return checked(); }
  const T* operator->() const { return checked(); }
  T& operator*() { return *checked(); }
  const T& operator*() const { return *checked(); }
  // The held config as a D, or null where it is something else.
  template <class D>
  const D* as() const {
    return dynamic_cast<const D*>(get());
  }
  // The same, to be changed.
  template <class D>
  D* as() {
    return dynamic_cast<D*>(get());
  }

 private:
  T* checked() const {
    if (get() == nullptr) throw_empty();
    return static_cast<T*>(const_cast<Config*>(get()));
  }
  bool accepts([[maybe_unused]] const Config& config) const override {
    if constexpr (std::is_same_v<T, Config>)
      return true;
    else
      return dynamic_cast<const T*>(&config) != nullptr;
  }
  std::string accepted_type() const override;
};

// The node that an override took out of the tree.
struct Replaced {
  std::string by;      // name of the override
  std::string path;    // of the node
  Slot<Config> stock;  // the node as it was
};

namespace detail {
std::string type_name(const std::type_info& type);
}

template <class T>
std::string Slot<T>::accepted_type() const {
  return detail::type_name(typeid(T));
}

}  // namespace rhea
