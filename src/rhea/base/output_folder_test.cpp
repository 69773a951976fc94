// Folders that are made whole, whatever lay at their place and whoever was killed before.
#include "rhea/base/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "rhea/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;

class OutputFolder : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return temporary_.path() / name; }
  static void fill(const fs::path& folder) { std::ofstream(folder / "file") << "text"; }
  void make(const fs::path& path, Existing existing = Existing::refuse) const {
    make_folder(path, fill, existing);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& item : fs::directory_iterator(temporary_.path()))
      found.push_back(item.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  // A process of this host, and its end.
  static pid_t start_sleeper() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    return pid;
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  // The name that process `pid` would give its temporary.
  static std::string name_of(pid_t pid, const std::string& name) {
    std::string own = temporary_path(name).string();
    return own.substr(0, own.rfind('-') + 1) + std::to_string(pid);
  }
  support::TempFolder temporary_;
};

TEST_F(OutputFolder, RefusesAPlaceThatIsTaken) {
  make(at("a/b/new"));
  EXPECT_TRUE(fs::exists(at("a/b/new/file")));
  fs::create_directories(at("empty"));
  make(at("empty"));
  std::ofstream(at("a_file")) << "x";
  fs::create_directory_symlink(at("a/b/new"), at("link"));
  fs::create_directory_symlink(at("nowhere"), at("dangling"));
  for (const char* taken : {"empty", "a_file", "link", "dangling"}) {
    EXPECT_THAT(error_of([&] { check_new_folder(at(taken)); }), HasSubstr("is there already"))
        << taken;
    EXPECT_THAT(error_of([&] { make(at(taken)); }), HasSubstr("is there already")) << taken;
  }
  EXPECT_THAT(error_of([&] { check_new_folder(at("a_file/below")); }),
              AllOf(HasSubstr("a_file is no folder")));
  EXPECT_THAT(error_of([&] { check_new_folder(""); }), HasSubstr("empty"));
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "a_file", "dangling", "empty", "link"}));
}

TEST_F(OutputFolder, ASlashAtTheEndAndDotsAreNoNames) {
  for (const char* spelled : {"x/", "x/.", "./x", "y/../x/"}) {
    make(folder_path(temporary_.path() / spelled));
    EXPECT_TRUE(fs::exists(at("x/file"))) << spelled;
    EXPECT_THAT(error_of([&] { check_new_folder(temporary_.path() / spelled); }),
                HasSubstr("is there already"));
    fs::remove_all(at("x"));
    EXPECT_TRUE(names().empty()) << spelled;
  }
}

TEST_F(OutputFolder, ReplacesWhereItMay) {
  make(at("x"));
  std::ofstream(at("x/older")) << "x";
  make(at("x"), Existing::replace);
  EXPECT_FALSE(fs::exists(at("x/older")));
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(OutputFolder, AFailureLeavesNothing) {
  EXPECT_THAT(error_of([&] {
                make_folder(
                    at("x"),
                    [](const fs::path& folder) {
                      fill(folder);
                      throw Error("no");
                    },
                    Existing::refuse);
              }),
              HasSubstr("no"));
  EXPECT_TRUE(names().empty());
}

// Two programs that pass the check at the same time: the second finds the place taken at the end.
TEST_F(OutputFolder, WhoComesSecondDoesNotReplaceTheFirst) {
  EXPECT_THAT(error_of([&] {
                make_folder(
                    at("x"),
                    [&](const fs::path& folder) {
                      fill(folder);
                      fs::create_directories(at("x"));
                      std::ofstream(at("x/first")) << "x";
                    },
                    Existing::refuse);
              }),
              HasSubstr("is there already"));
  EXPECT_TRUE(fs::exists(at("x/first")));
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(OutputFolder, WhatTheDeadLeftIsRemovedWhatTheLivingWriteIsNot) {
  const pid_t pid = start_sleeper();
  const std::string own = name_of(pid, "x"), other = name_of(pid, "y");
  const std::string nested = name_of(pid, name_of(pid, "x"));
  for (const std::string& name : {own, other, nested, std::string("x.tmp-elsewhere-7")})
    fs::create_directories(at(name) / "inside");
  EXPECT_THAT(error_of([&] { make(at("x")); }),
              AllOf(HasSubstr("process " + std::to_string(pid)), HasSubstr("at this moment")));
  EXPECT_TRUE(fs::exists(at(own)));
  end(pid);
  make(at("x"));
  EXPECT_EQ(names(), (std::vector<std::string>{"x", "x.tmp-elsewhere-7", other}));
}

TEST_F(OutputFolder, NamesOfTemporariesAreRead) {
  for (const char* use : {"", "old-", "hf-"}) {
    const auto found = parse_temporary(temporary_path("step-5", use).string());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->of, "step-5");
    EXPECT_TRUE(found->is_of_this_host);
    EXPECT_FALSE(found->is_in_use) << "it is this process' own";
  }
  for (const char* other :
       {"step-5", "x.tmp-", "x.tmp-7", "x.tmp-host-", "x.tmp-host-7x", ".tmp-host-7", ""})
    EXPECT_FALSE(parse_temporary(other)) << other;
}

}  // namespace
}  // namespace rhea
