// Converters: what rewrites a model's config tree between the model's registry and the build.
#pragma once
#include <string>
#include <vector>

#include "rhea/config/visitor.h"

namespace rhea {

// What a converter did, for the log of the run that it belongs to.
struct ConversionNote {
  bool is_warning = false;  // logged as a warning
  std::string text;         // one line
};

// Base of converters: a config of its own options, which rewrites a model.
struct ModelConverter : Config {
  // The name that messages use: "LoRAConverter".
  virtual std::string name() const = 0;
  // Whether it changes the format that products are computed in. Such converters come first: the
  // others wrap layers, which these no longer find.
  virtual bool quantizes() const { return false; }
  // Rewrites nodes below `model` and adds what it did to `notes`. Throws Error where it can do
  // nothing.
  virtual void convert(Slot<Config>& model, std::vector<ConversionNote>& notes) const = 0;
};

// Of a spec, in the order in which they are applied.
using Converters = std::vector<Slot<ModelConverter>>;

}  // namespace rhea
