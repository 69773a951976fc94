// Which compiler a source is compiled with.
#include "rhea/plugin/toolchain.h"

#include <sys/stat.h>

#include "tests/plugin/plugin_test.h"
#include "tests/support/error_of.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Compiler : public PluginTest {
 protected:
  // A program of that name in the folder.
  std::string program(const std::string& name) const {
    write(name, "#!/bin/sh\n");
    ::chmod((folder() / name).c_str(), 0700);
    return (folder() / name).string();
  }
  std::string absent(const std::string& name) const { return (folder() / name).string(); }
};

TEST_F(Compiler, AnotherOfItsKindComesWhereTheBuildsOwnIsNotThere) {
  const std::string other = program("g++-12"), last = program("g++");
  const std::vector<std::string> names = {absent("c++"), other, last};
  testing::internal::CaptureStdout();
  EXPECT_EQ(plugin::choose_compiler("my_runs.cpp", "", names), other);
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, HasSubstr("my_runs.cpp is compiled by " + other));
  EXPECT_THAT(log, HasSubstr("the compiler of Rhea's build, " + absent("c++") + ", is not here"));
  EXPECT_EQ(plugin::choose_compiler("my_runs.cpp", "", {absent("c++"), absent("h++"), last}), last);
  const std::string own = program("c++");
  EXPECT_EQ(plugin::choose_compiler("my_runs.cpp", "", names), own);
  // RHEA_CXX comes before them, and nothing comes in its place.
  EXPECT_EQ(plugin::choose_compiler("my_runs.cpp", last, names), last);
  EXPECT_THAT(
      support::error_of([&] { plugin::choose_compiler("my_runs.cpp", absent("h++"), names); }),
      AllOf(HasSubstr("RHEA_CXX=" + absent("h++")), HasSubstr("(a .so)")));
}

TEST_F(Compiler, WithoutAnyAllThatWereTriedAreNamed) {
  EXPECT_THAT(support::error_of([&] {
                plugin::choose_compiler("my_runs.cpp", "", {absent("a"), absent("b")});
              }),
              AllOf(HasSubstr("my_runs.cpp cannot be compiled: there is no C++ compiler"),
                    HasSubstr(absent("a") + ", " + absent("b")), HasSubstr("RHEA_CXX"),
                    HasSubstr("pass the .so")));
}

}  // namespace
}  // namespace rhea
