// Compiled plugins are found again, and nothing that goes wrong leaves a bad one.
#include <algorithm>
#include <csignal>
#include <memory>
#include <thread>

#include "rhea/plugin/cache_entry.h"
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class Cache : public PluginTest {
 protected:
  bool compiles(const std::string& module) const {
    const Ended ended = load(module);
    EXPECT_EQ(ended.code, 0) << ended.output;
    return count(ended.output, "Compiling ") > 0;
  }
  std::vector<std::filesystem::path> workshops() const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(cache()))
      if (file.is_directory()) found.push_back(file.path());
    return found;
  }
};

TEST_F(Cache, WhatACompilerReadsDecides) {
  write_runs();
  EXPECT_TRUE(compiles("my_runs"));
  EXPECT_FALSE(compiles("my_runs"));
  EXPECT_FALSE(compiles("./my_runs.cpp"));

  write("my_sizes.h", "#include \"deeper.h\"\n");
  write("deeper.h", "inline constexpr int kSteps = 8;\n");
  EXPECT_THAT(config("my_runs", "small").output, has_steps(8));
  EXPECT_FALSE(compiles("my_runs"));
  write("deeper.h", "inline constexpr int kSteps = 9;\n");
  EXPECT_THAT(config("my_runs", "small").output, has_steps(9));
  EXPECT_FALSE(compiles("my_runs"));

  write("my_runs.cpp", std::string(kRuns) + "// changed\n");
  EXPECT_TRUE(compiles("my_runs"));
  const Ended with_flags = load("my_runs", {{"RHEA_CXXFLAGS", "-DMINE"}});
  EXPECT_THAT(with_flags.output, HasSubstr("Compiling "));
}

TEST_F(Cache, ASecondStartIsQuick) {
  write_runs();
  EXPECT_TRUE(compiles("my_runs"));
  // The best of several: other processes of the machine take their share of the clock.
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(load("my_runs").code, 0);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best, 0.05);
#endif
}

TEST_F(Cache, EightProcessesOnAnEmptyCacheCompileOnce) {
  write_runs();
  std::vector<std::unique_ptr<support::Process>> processes;
  for (int i = 0; i < 8; ++i)
    processes.push_back(std::make_unique<support::Process>(
        std::vector<std::string>{"train", "--help", "--module", "my_runs"},
        folder() / ("log" + std::to_string(i)), options()));
  int compiled = 0;
  for (auto& process : processes) {
    EXPECT_EQ(process->wait(), 0) << process->output();
    compiled += count(process->output(), "Compiling ");
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_THAT(cached(".so"), SizeIs(1));
}

TEST_F(Cache, ASourceThatIsRefusedIsCompiledOnceForAllWhoWait) {
  write("broken.cpp", "#include <vector>\nint f() { return undeclared; }\n");
  // A compiler that takes its time, so that the others are waiting when it refuses.
  write("slow.sh",
        "#!/bin/sh\necho x >> " + (folder() / "calls").string() + "\nsleep 2\nexec c++ \"$@\"\n");
  std::filesystem::permissions(folder() / "slow.sh", std::filesystem::perms::owner_all);
  std::vector<std::unique_ptr<support::Process>> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(std::make_unique<support::Process>(
        std::vector<std::string>{"train", "--help", "--module", "broken"},
        folder() / ("log" + std::to_string(i)),
        options({{"RHEA_CXX", (folder() / "slow.sh").string()}})));
  for (auto& process : processes) {
    EXPECT_EQ(process->wait(), 2);
    EXPECT_THAT(process->output(), HasSubstr("undeclared"));
  }
  EXPECT_EQ(count(read_file(folder() / "calls"), "x"), 1);
}

TEST_F(Cache, AKilledCompileLeavesAWorkingCache) {
  write_runs();
  for (int i = 0; i < 3; ++i) {
    support::Process process({"train", "--help", "--module", "my_runs"}, folder() / "log",
                             options());
    ASSERT_TRUE(process.wait_for("Compiling "));
    std::this_thread::sleep_for(std::chrono::milliseconds(200 * i));
    process.signal(SIGKILL);
    EXPECT_EQ(process.wait(), 128 + SIGKILL) << process.output();
    EXPECT_THAT(cached(".record"), IsEmpty());
  }
  EXPECT_FALSE(workshops().empty());
  EXPECT_TRUE(compiles("my_runs"));
  EXPECT_FALSE(compiles("my_runs"));
  EXPECT_THAT(workshops(), IsEmpty());
}

// No fault of the source: nothing is remembered of it.
TEST_F(Cache, AKilledCompilerIsNotASourceThatIsWrong) {
  write_runs();
  write("killed.sh", "#!/bin/sh\nkill -9 $$\n");
  std::filesystem::permissions(folder() / "killed.sh", std::filesystem::perms::owner_all);
  const Ended ended = load("my_runs", {{"RHEA_CXX", (folder() / "killed.sh").string()}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("my_runs.cpp: the compiler "),
                                  HasSubstr("was ended by signal 9"), HasSubstr("start again")));
  EXPECT_THAT(ended.output, Not(HasSubstr("does not compile")));
  EXPECT_TRUE(cached(".failed").empty());
}

TEST_F(Cache, DamagedEntriesAreMadeAgain) {
  write_runs();
  EXPECT_TRUE(compiles("my_runs"));
  const auto library = cached(".so").at(0), record = cached(".record").at(0);
  std::filesystem::resize_file(library, std::filesystem::file_size(library) / 2);
  EXPECT_TRUE(compiles("my_runs"));
  std::filesystem::resize_file(record, std::filesystem::file_size(record) - 3);
  EXPECT_TRUE(compiles("my_runs"));
  std::filesystem::remove(library);
  EXPECT_TRUE(compiles("my_runs"));
  EXPECT_FALSE(compiles("my_runs"));
}

TEST_F(Cache, ListAndClear) {
  write_runs();
  EXPECT_THAT(rhea({"cache", "list"}).output, HasSubstr("0 compiled plugin(s)"));
  EXPECT_TRUE(compiles("my_runs"));
  const std::string list = rhea({"cache", "list"}).output;
  EXPECT_THAT(list, HasSubstr((folder() / "my_runs.cpp").string()));
  EXPECT_THAT(list, HasSubstr("1 compiled plugin(s)"));
  write("cache/plugins/notes.txt", "not ours");
  EXPECT_THAT(rhea({"cache", "clear"}).output, HasSubstr("removed 1 compiled plugin(s)"));
  EXPECT_THAT(cached(".so"), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(cache() / "notes.txt"));
  EXPECT_EQ(rhea({"cache"}).code, 2);
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsNamed) {
  write_runs();
  write("file", "");
  const Ended ended = load("my_runs", {{"RHEA_CACHE_DIR", (folder() / "file").string()}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("set RHEA_CACHE_DIR to a folder that can be written"));
}

TEST(CacheEntry, DependenciesOfACompiler) {
  EXPECT_THAT(
      plugin::parse_dependencies("plugin.o: /a/my_runs.cpp \\\n /a/my\\ sizes.h /b/$$x.h\n"),
      ElementsAre("/a/my_runs.cpp", "/a/my sizes.h", "/b/$x.h"));
}

TEST(CacheEntry, ARecordIsReadBackAndACutOneIsNone) {
  const plugin::CacheRecord record{
      "/a/b.cpp", "b.so", "12", {{"/a/b.cpp", "34"}, {"/a/c d.h", "56"}}};
  const std::string text = record.text();
  EXPECT_EQ(plugin::parse_record(text).value().text(), text);
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(plugin::parse_record(text.substr(0, size))) << size;
}

}  // namespace
}  // namespace rhea
