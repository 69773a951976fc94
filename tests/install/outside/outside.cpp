// Uses installed headers and libraries; prints the version, which the test compares with the
// program's.
#include <cstdio>
#include <string>

#include "rhea/base/thread_pool.h"
#include "rhea/base/version.h"
#include "rhea/ir/graph.h"

int main() {
  rhea::ThreadPool pool(2);
  pool.parallel_for(8, [](int64_t, int64_t, int) {});
  std::printf("rhea %s\n", std::string(rhea::version()).c_str());
  return 0;
}
