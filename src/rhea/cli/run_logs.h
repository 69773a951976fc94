// The output of the rank in files: --redirects and --tee of `rhea run`.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "rhea/cli/run_flags.h"

namespace rhea::cli {

// While it lives, standard output and standard error of this process go where the flags say: into
// <log_dir>/<run_id>_<random>/attempt_0/0/{stdout,stderr}.log, and for --tee to the console, too,
// line by line with the prefix. A process of its own copies, so that what the rank wrote before it
// was killed arrives. Without --redirects and --tee nothing changes. To be made before there are
// threads. Throws Error where the files cannot be made.
class RankLogs {
 public:
  explicit RankLogs(const RunFlags& flags);
  ~RankLogs();
  RankLogs(const RankLogs&) = delete;
  RankLogs& operator=(const RankLogs&) = delete;

 private:
  struct Stream {
    int number;        // 1 or 2
    int console = -1;  // what the number meant before
    pid_t copier = -1;
  };
  void redirect(int number, const std::filesystem::path& file, bool tee, const std::string& prefix);

  std::vector<Stream> streams_;
};

// The template with the macros of torchrun filled in for rank 0.
std::string line_prefix(const RunFlags& flags);

}  // namespace rhea::cli
