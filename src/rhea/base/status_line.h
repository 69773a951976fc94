// One line at the bottom of a terminal that is rewritten in place, such as the progress of a run.
#pragma once
#include <string_view>

namespace rhea::log {

// Every line of the log takes the place of the status, so the two never share a line.
void show_status(std::string_view text);
void clear_status();

}  // namespace rhea::log
