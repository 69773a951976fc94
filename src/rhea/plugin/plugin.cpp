// Where the registrations of a plugin go.
#include "rhea/plugin/plugin.h"

#include <utility>

namespace rhea::plugin {

Plugin::Plugin(std::string origin) : origin_(std::move(origin)) {}

}  // namespace rhea::plugin
