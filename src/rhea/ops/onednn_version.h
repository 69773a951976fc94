// Which oneDNN products may go through.
#pragma once
#include <string>

namespace rhea::ops {

// Version of the oneDNN that is loaded, "2.6.3"; "not built in" where Rhea was built without it.
std::string onednn_version();

}  // namespace rhea::ops
