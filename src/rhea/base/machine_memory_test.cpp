// Bounds of memory from files as kernels write them.
#include "rhea/base/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "rhea/base/error.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

class MachineMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("rhea_machine_memory_{}", ::getpid());
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void expect(int64_t total, int64_t available, const std::string& bound) {
    const MachineMemory memory = machine_memory(root_);
    EXPECT_EQ(memory.total, total) << memory.bound;
    EXPECT_EQ(memory.available, available) << memory.bound;
    EXPECT_THAT(memory.bound, HasSubstr(bound));
  }
  fs::path root_;
};

TEST_F(MachineMemoryTest, WithoutGroupsTheMachineBounds) {
  expect(16 * kGiB, 8 * kGiB, "the machine: 8.00 of 16.00 GiB are free");
}

TEST_F(MachineMemoryTest, ControlGroupVersion2ItsFileCacheIsFree) {
  write("proc/self/cgroup", "0::/job.slice/run\n");
  write("sys/fs/cgroup/job.slice/run/memory.max", "4294967296\n");
  write("sys/fs/cgroup/job.slice/run/memory.current", "3221225472\n");
  write("sys/fs/cgroup/job.slice/run/memory.stat",
        "anon 1073741824\ninactive_file 1073741824\nactive_file 1073741824\n");
  expect(4 * kGiB, 3 * kGiB, "the control group's memory.max: 3.00 of 4.00 GiB are free");
}

TEST_F(MachineMemoryTest, TheGroupAboveMayBeTighter) {
  write("proc/self/cgroup", "0::/job.slice/run\n");
  write("sys/fs/cgroup/job.slice/run/memory.max", "max\n");
  write("sys/fs/cgroup/job.slice/memory.max", "2147483648\n");
  write("sys/fs/cgroup/job.slice/memory.current", "0\n");
  expect(2 * kGiB, 2 * kGiB, "memory.max: 2.00 of 2.00 GiB");
}

// The path is the host's; in the container only the mount is there.
TEST_F(MachineMemoryTest, InAContainerTheMountIsTheGroup) {
  write("proc/self/cgroup", "0::/kubepods/pod1/abc\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  write("sys/fs/cgroup/memory.current", "536870912\n");
  expect(kGiB, kGiB / 2, "memory.max: 0.50 of 1.00 GiB");
}

TEST_F(MachineMemoryTest, ControlGroupVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "805306368\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.stat",
        "inactive_file 1\ntotal_inactive_file 268435456\ntotal_active_file 0\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  expect(kGiB, kGiB / 2, "memory.limit_in_bytes: 0.50 of 1.00 GiB");
}

TEST_F(MachineMemoryTest, AFullGroupLeavesNothingAndAFullMachineIsTighterThanItsGroup) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  write("sys/fs/cgroup/memory.current", "2147483648\n");
  expect(kGiB, 0, "memory.max");
  write("sys/fs/cgroup/memory.max", "12884901888\n");
  write("sys/fs/cgroup/memory.current", "0\n");
  expect(12 * kGiB, 8 * kGiB, "the machine");
}

TEST_F(MachineMemoryTest, UnreadableFilesSetNoBound) {
  fs::remove_all(root_);
  const MachineMemory memory = machine_memory(root_);
  EXPECT_GT(memory.total, 0);
  EXPECT_EQ(memory.available, memory.total);
}

TEST(KernelFormats, NumbersAndKeys) {
  const char* meminfo =
      "MemTotal:       16303428 kB\nMemAvailable:    2 kB\nHugePages_Total:       3\n";
  EXPECT_EQ(meminfo_bytes(meminfo, "MemTotal"), int64_t{16303428} * 1024);
  EXPECT_EQ(meminfo_bytes(meminfo, "HugePages_Total"), 3);
  EXPECT_EQ(meminfo_bytes(meminfo, "Mem"), std::nullopt);
  EXPECT_EQ(leading_integer("max\n"), std::nullopt);
  EXPECT_EQ(leading_integer(" 1048576\n"), 1048576);
}

}  // namespace
}  // namespace rhea
