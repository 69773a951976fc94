// Lists of nodes, which of them serve this process, and the policy that pages get.
#include "rhea/base/numa.h"

#include <gmock/gmock.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace rhea {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Numa, ListsOfNodes) {
  EXPECT_THAT(parse_node_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_node_list("0-2,5\n"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_node_list(""), IsEmpty());
  EXPECT_THAT(parse_node_list("none"), IsEmpty());
  EXPECT_THAT(parse_node_list("1,-3"), ElementsAre(1));
  EXPECT_THAT(parse_node_list("3-x"), IsEmpty());
  EXPECT_LT(parse_node_list("0-2000000000").size(), 5000U);
}

class NumaFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::filesystem::path& file, const char* text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("rhea_numa_" + std::to_string(getpid()));
};

TEST_F(NumaFiles, NodesThatAreAllowedAndHaveMemory) {
  EXPECT_THAT(memory_nodes(root_), IsEmpty());
  write("proc/self/status", "Name:\trhea\nMems_allowed:\t0000000f\nMems_allowed_list:\t0-3\n");
  EXPECT_THAT(memory_nodes(root_), IsEmpty());
  write("sys/devices/system/node/has_memory", "0,2-7\n");
  EXPECT_THAT(memory_nodes(root_), ElementsAre(0, 2, 3));
}

TEST_F(NumaFiles, NodesWithTheCpusOfTheProcess) {
  EXPECT_THAT(cpu_nodes({0, 1}, root_), IsEmpty());
  write("sys/devices/system/node/online", "0-2,4\n");
  write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
  write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
  write("sys/devices/system/node/node2/cpulist", "\n");  // memory only
  write("sys/devices/system/node/node4/cpulist", "16\n");
  EXPECT_THAT(cpu_nodes({2, 3, 4, 9, 12}, root_),
              ElementsAre(CpuNode{0, {2, 3, 9}}, CpuNode{1, {4, 12}}));
  EXPECT_THAT(cpu_nodes({16}, root_), ElementsAre(CpuNode{4, {16}}));
}

TEST(Numa, WorkersInProportionToTheCpus) {
  const std::vector<CpuNode> two = {{0, {0, 1, 2, 3}}, {1, {4, 5}}};
  EXPECT_THAT(nodes_of_workers(6, two), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(nodes_of_workers(3, two), ElementsAre(0, 0, 1));
  EXPECT_THAT(nodes_of_workers(1, two), ElementsAre(0));
  EXPECT_THAT(nodes_of_workers(9, two), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(nodes_of_workers(2, {{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}}), ElementsAre(0, 2));
  EXPECT_THAT(nodes_of_workers(4, {{0, {0, 1, 2, 3}}}), IsEmpty());
  EXPECT_THAT(nodes_of_workers(4, {}), IsEmpty());
}

TEST(Numa, AThreadKeepsToItsCpus) {
  const std::vector<int> before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  std::thread([&] {
    if (!keep_thread_on({before.back()})) return;  // a sandbox may forbid it
    EXPECT_THAT(allowed_cpus(), ElementsAre(before.back()));
    EXPECT_FALSE(keep_thread_on({}));
  }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Numa, PagesFollowThePolicy) {
  const std::vector<int> nodes = memory_nodes();
  if (nodes.empty()) GTEST_SKIP() << "this kernel or container does not say which nodes it has";
  int policy = -1;
  if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0 || policy != MPOL_DEFAULT)
    GTEST_SKIP() << "this container or numactl forbids another memory policy";
  constexpr size_t kBytes = 1 << 16;
  void* data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  EXPECT_TRUE(interleave_pages(data, kBytes, nodes));
  ASSERT_EQ(syscall(SYS_get_mempolicy, &policy, nullptr, 0, data, MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, MPOL_INTERLEAVE);
  EXPECT_FALSE(interleave_pages(data, kBytes, {}));
  munmap(data, kBytes);
}

}  // namespace
}  // namespace rhea
