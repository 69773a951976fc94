// Where in a plugin an exception came from. While a plugin is loaded, every throw of the process
// leaves the calls that led to it; the line is looked up only when somebody reports the exception.
#pragma once
#include <exception>
#include <filesystem>
#include <string>

namespace rhea::plugin {

// From now on throws are remembered, and frames inside `library` are those of a plugin.
void watch_throws(const std::filesystem::path& library);

// Inside a handler: "my_runs.cpp:12" for the innermost line of a plugin that
// led to the exception being handled; "" where no plugin was involved. Lines come from the line
// table of the plugin through addr2line; without it the text is the name of the function and of the
// library.
// Of an exception with others nested in it, the line of the innermost one.
std::string throw_site();

// The same for the calls that are being made now: the innermost line of a plugin among them.
std::string call_site();

// Inside a handler of `error`: what it says, and in a line below "thrown at <throw_site()>" where
// there is one.
std::string with_throw_site(const std::exception& error);

}  // namespace rhea::plugin
