// A recording in the trace format of Chrome and Perfetto.
#pragma once
#include <string>

#include "rhea/components/profiler/recording.h"

namespace rhea::profiler {

// JSON with one complete event for each step, phase, run of a graph and kernel call, nested on one
// track, and a track per worker with its share of each phase of a call and what it stole of others;
// times in microseconds from the beginning of the first step.
std::string chrome_trace(const Recording& recording, int rank);
std::string gzip(const std::string& text);

}  // namespace rhea::profiler
