// Sections `compile` and `executor`: what runs the graph.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// What is compiled, and by what.
struct CompileConfig : Config {
  bool enable = true;
  std::vector<std::string> components = {"model", "loss"};
  std::string backend = "native";
  bool enable_async_tensor_parallel = false;

  void fields(Visitor& v) override {
    v("enable", enable, "off = interpret the graph node by node, for debugging; same bits");
    v("components", components, "parts that are compiled; without model the rest has no effect",
      one_of{"model", "loss", "grad_clip", "optimizer"});
    v("backend", backend,
      "native (inductor, aot_eager mean the same), pjrt, or neuron = pjrt with its preset",
      one_of{"native", "inductor", "aot_eager", "neuron", "pjrt"});
    v("enable_async_tensor_parallel", enable_async_tensor_parallel,
      "overlap tensor-parallel collectives with matrix products");
  }
};

// What runs the graph, and on how much of the machine.
struct ExecutorConfig : Config {
  std::string plugin;
  std::vector<std::string> plugin_options;
  std::vector<std::string> compile_options;
  std::string cache_dir = "$XDG_CACHE_HOME/rhea";
  int64_t devices_per_process = 1;
  int64_t num_threads = 0;

  void fields(Visitor& v) override {
    v("plugin", plugin, "path of the PJRT plugin");
    v("plugin_options", plugin_options,
      "name=value create options; i: f: b: s: before the value fixes its type");
    v("compile_options", compile_options, "xla_flag=value, stored in the compile options");
    v("cache_dir", cache_dir,
      "folder of what is kept between runs, such as the measured peak of this CPU; empty = keep "
      "nothing; a leading $XDG_CACHE_HOME is ~/.cache where unset");
    v("devices_per_process", devices_per_process, "PJRT: devices that this process drives",
      at_least(1));
    v("num_threads", num_threads,
      "CPU: 0 = the cores of this process' affinity divided by the local ranks", between{0, 1024});
  }
};

}  // namespace rhea
