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
  // A program of the user in the place of the compiler.
  std::string script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder() / name, std::filesystem::perms::owner_all);
    return (folder() / name).string();
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
  // A compiler that takes its time, so that the others are waiting when it refuses; asked what it
  // is, it answers.
  const std::string slow =
      script("slow.sh", "case \"$*\" in *-dM*) exec c++ \"$@\";; esac\necho x >> " +
                            (folder() / "calls").string() + "\nsleep 2\nexec c++ \"$@\"\n");
  std::vector<std::unique_ptr<support::Process>> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(std::make_unique<support::Process>(
        std::vector<std::string>{"train", "--help", "--module", "broken"},
        folder() / ("log" + std::to_string(i)), options({{"RHEA_CXX", slow}})));
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

// What a driver starts (cc1plus) lives in the same process group, and dies with us.
TEST_F(Cache, AKilledProcessTakesItsCompilerWithIt) {
  write_runs();
  const std::string pid_file = (folder() / "pid").string();
  const std::string driver =
      script("driver.sh", "sleep 100 &\necho $! > " + pid_file + ".new\nmv " + pid_file + ".new " +
                              pid_file + "\nwait\n");
  support::Process process({"train", "--help", "--module", "my_runs"}, folder() / "log",
                           options({{"RHEA_CXX", driver}}));
  for (int i = 0; i < 600 && !std::filesystem::exists(pid_file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(std::filesystem::exists(pid_file)) << process.output();
  const pid_t child = std::stoi(read_file(pid_file));
  EXPECT_EQ(::kill(child, 0), 0);
  process.signal(SIGKILL);
  process.wait();
  // Gone, or dead and not yet collected by whoever inherits it.
  const auto runs = [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string number, name, state;
    return stat >> number >> name >> state && state != "Z";
  };
  for (int i = 0; i < 100 && runs(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(runs());
}

TEST_F(Cache, WhatIsNoFaultOfTheSourceIsNamedAndNotRemembered) {
  write_runs();
  struct Failure {
    std::string compiler;
    int code;
    const char* said;
  };
  const Failure failures[] = {
      {"/bin/true", 2, "/bin/true ended with exit code 0, but made no library; is it a C++"},
      {"/bin/false", 2, "/bin/false ended with exit code 1, and said nothing; is it a C++"},
      {script("full.sh",
              "echo 'fatal error: error writing to x.s: No space left on device' >&2\n"
              "exit 1\n"),
       4, "is full, so the compiler could not write; free some space, or set RHEA_CACHE_DIR"},
      {script("clang.sh",
              "case \"$*\" in *-dM*) echo '#define __clang_major__ 99'; exit 0;; esac\n"
              "echo 'error.h:1:2: error: an unknown flag' >&2\nexit 1\n"),
       2, "is Clang 99, Rhea was built by "},
  };
  for (const Failure& failure : failures) {
    SCOPED_TRACE(failure.compiler);
    const Ended ended = load("my_runs", {{"RHEA_CXX", failure.compiler}});
    EXPECT_EQ(ended.code, failure.code);
    EXPECT_THAT(ended.output, HasSubstr(failure.said));
    EXPECT_THAT(ended.output, Not(HasSubstr("does not compile")));
    EXPECT_TRUE(cached(".failed").empty());
  }
}

// No fault of the source: nothing is remembered of it.
TEST_F(Cache, AKilledCompilerIsNotASourceThatIsWrong) {
  write_runs();
  const Ended ended = load("my_runs", {{"RHEA_CXX", script("killed.sh", "kill -9 $$\n")}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("my_runs.cpp: the compiler "),
                                  HasSubstr("was ended by signal 9"), HasSubstr("start again")));
  EXPECT_THAT(ended.output, Not(HasSubstr("does not compile")));
  EXPECT_TRUE(cached(".failed").empty());
}

// The compiler read what no longer is there; which of the two the library holds, no start can tell.
TEST_F(Cache, FilesSavedWhileTheyAreCompiledAreCompiledAgain) {
  write_runs();
  const std::string header = (folder() / "my_sizes.h").string();
  const auto start = [&](const std::string& compiler) {
    const Ended ended = rhea({"train", "--help", "--module", "my_runs", "--config", "small"},
                             {{"RHEA_CXX", compiler}});
    EXPECT_EQ(ended.code, 0) << ended.output;
    return ended.output;
  };
  // Saved once, with the time of an old copy: the second try sees the new content.
  const std::string once = script("once.sh",
                                  "c++ \"$@\" || exit 1\n[ -e saved ] && exit 0\ntouch saved\n"
                                  "echo 'inline constexpr int kSteps = 21;' > " +
                                      header +
                                      "\n"
                                      "touch -d 2020-01-01 " +
                                      header + "\n");
  EXPECT_THAT(start(once), has_steps(21));
  EXPECT_THAT(load("my_runs", {{"RHEA_CXX", once}}).output, Not(HasSubstr("Compiling ")));
  // Saved at every try: nothing is kept, so that the next start compiles what is there by then.
  const std::string always =
      script("always.sh",
             "c++ \"$@\" || exit 1\necho \"inline constexpr int kSteps = $$;\" > " + header + "\n");
  start(always);
  EXPECT_THAT(load("my_runs", {{"RHEA_CXX", always}}).output, HasSubstr("Compiling "));
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
  // Left by another content of the same source, or by another Rhea.
  write("cache/plugins/old-0123456789abcdef-0123456789abcdef.so", "old");
  write("cache/plugins/old-0123456789abcdef.record", "rhea plugin cache 0\n");
  EXPECT_THAT(rhea({"cache", "list"}).output,
              AllOf(HasSubstr("(left over)  old-"), HasSubstr("2 compiled plugin(s)")));
  const std::vector<std::string> foreign = {
      "notes.txt",        "libmine.so", "mine.record", "a.lock", "x-0123456789abcdef-0123.so",
      "mine.tmp.abcdef/x"};
  std::filesystem::create_directory(cache() / "mine.tmp.abcdef");
  for (const std::string& name : foreign) write("cache/plugins/" + name, "not ours");
  EXPECT_THAT(rhea({"cache", "clear"}).output, HasSubstr("removed 2 compiled plugin(s)"));
  int64_t left = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache()))
    left += file.is_regular_file();
  EXPECT_EQ(left, static_cast<int64_t>(foreign.size()));
  for (const std::string& name : foreign)
    EXPECT_TRUE(std::filesystem::exists(cache() / name)) << name;
  EXPECT_EQ(rhea({"cache"}).code, 2);
}

TEST_F(Cache, WhatIsNotUsedForAMonthGoesWithTheNextCompile) {
  write_runs();
  EXPECT_TRUE(compiles("my_runs"));
  const auto age = [&](int days) {
    for (const auto& file : std::filesystem::directory_iterator(cache()))
      std::filesystem::last_write_time(file.path(), std::filesystem::file_time_type::clock::now() -
                                                        std::chrono::hours(24 * days));
  };
  write("cache/plugins/libmine.so", "not ours");
  write("other.cpp", std::string(kRuns) + "// another\n");
  age(29);
  EXPECT_TRUE(compiles("other"));
  EXPECT_THAT(cached(".record"), SizeIs(2));
  age(31);
  write("other.cpp", std::string(kRuns) + "// a third\n");
  EXPECT_TRUE(compiles("other"));
  EXPECT_THAT(cached(".record"), SizeIs(1));
  EXPECT_THAT(cached(".so"), SizeIs(2));  // and the one that is not ours
  EXPECT_FALSE(compiles("other"));
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
