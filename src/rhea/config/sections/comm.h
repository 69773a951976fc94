// Section `comm`: limits and records of collectives.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Collectives of runs with several ranks.
struct CommConfig : Config {
  int64_t init_timeout_seconds = 300;
  int64_t train_timeout_seconds = 100;
  int64_t trace_buf_size = 20000;
  std::string save_traces_folder = "comm_traces";
  std::string save_traces_file_prefix = "rank_";
  std::string mode = "default";
  int64_t port = 0;

  void fields(Visitor& v) override {
    v("init_timeout_seconds", init_timeout_seconds,
      "limit of one collective until the first step is done", at_least(1));
    v("train_timeout_seconds", train_timeout_seconds, "limit of one collective afterwards",
      at_least(1));
    v("trace_buf_size", trace_buf_size,
      "recent collectives kept for the dump on a timeout; 0 = none", at_least(0));
    v("save_traces_folder", save_traces_folder, "folder of that dump, under dump_folder");
    v("save_traces_file_prefix", save_traces_file_prefix, "file name before the rank");
    v("mode", mode,
      "transport; threads (also local_tensor) = ranks as threads, fake_backend = one rank of NGPU "
      "alone",
      one_of{"default", "threads", "fake_backend", "local_tensor"});
    v("port", port, "rendezvous port; 0 = MASTER_PORT + 1 or the next free one", between{0, 65535});
  }
};

}  // namespace rhea
