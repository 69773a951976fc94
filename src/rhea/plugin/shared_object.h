// What the loader reads of a shared object before it lets anything in it run.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace rhea::plugin {

struct SharedObject {
  std::vector<std::string> stamps;   // one per source file that includes rhea/plugin/plugin.h
  std::vector<std::string> symbols;  // exported ones whose names begin with "rhea_"
};

// Throws Error with the path where the file is no whole shared object of this kind of machine.
SharedObject read_shared_object(const std::filesystem::path& path);

}  // namespace rhea::plugin
