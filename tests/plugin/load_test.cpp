// What the loader says and refuses.
#include <sys/stat.h>

#include <functional>

#include "rhea/plugin/stamp.h"
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Load : public PluginTest {
 protected:
  // The library of `source`, as a user would build it elsewhere, after `change` of its bytes.
  void build_library(const std::string& name, const std::string& source,
                     const std::function<void(std::string&)>& change) const {
    write("elsewhere.cpp", source);
    EXPECT_EQ(load("elsewhere.cpp").code, 0);
    std::string bytes = read_file(cached(".so").at(0));
    change(bytes);
    write(name, bytes);
  }
};

void replace(std::string& bytes, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
}

TEST_F(Load, RunsOfAFileAreFoundByFileNameAndByName) {
  write_runs();
  const Ended by_file = config("my_runs.cpp", "small");
  EXPECT_EQ(by_file.code, 0) << by_file.output;
  EXPECT_THAT(by_file.output, has_steps(7));
  const Ended by_name = config("my_runs", "longer");
  EXPECT_THAT(by_name.output, has_steps(70));
  EXPECT_THAT(rhea({"train", "--help", "--module", "my_runs"}).output,
              HasSubstr("my_runs\n  small"));

  EXPECT_THAT(config("my_runs", "smal").output,
              HasSubstr("Config function 'smal' not found in my_runs. Available config functions: "
                        "[small, longer]"));
  // Without --config every command says what there is.
  for (const char* module : {"my_runs.cpp", "my_runs"}) {
    const std::string listed = std::string(
                                   "--config is required. Example: --module llama3 "
                                   "--config llama3_debugmodel. Available config "
                                   "functions of ") +
                               module + ": [small, longer]";
    for (const std::vector<std::string>& command : {std::vector<std::string>{"train"},
                                                    {"run", "--nproc_per_node=1", "train"},
                                                    {"plan"},
                                                    {"check"},
                                                    {"config"}}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--module", module});
      const Ended ended = rhea(words);
      EXPECT_EQ(ended.code, 2) << command[0];
      EXPECT_THAT(ended.output, HasSubstr(listed)) << command[0];
    }
  }
  // Another folder through RHEA_PLUGIN_PATH.
  std::filesystem::create_directory(folder() / "other");
  std::filesystem::rename(folder() / "my_runs.cpp", folder() / "other/their_runs.cpp");
  std::filesystem::rename(folder() / "my_sizes.h", folder() / "other/my_sizes.h");
  EXPECT_THAT(config("their_runs", "small").output, HasSubstr("Cannot load module 'their_runs'"));
  const Ended elsewhere = load("their_runs", {{"RHEA_PLUGIN_PATH", (folder() / "other").string()}});
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.output;
}

TEST_F(Load, BuiltInModulesComeFirstAndTwoFilesOfOneNameAreRefused) {
  write("qwen3.cpp", "#error \"never compiled\"\n");
  EXPECT_EQ(config("qwen3", "qwen3_debugmodel").code, 0);
  write("twice.cpp", "");
  write("twice.so", "");
  EXPECT_THAT(config("twice", "f").output,
              AllOf(HasSubstr("twice.cpp"), HasSubstr("twice.so"), HasSubstr("say which")));
}

TEST_F(Load, WhatIsNoFileIsNamed) {
  std::filesystem::create_directory(folder() / "runs.cpp");
  std::filesystem::create_directory(folder() / "some");
  std::filesystem::create_symlink("loop.cpp", folder() / "loop.cpp");
  ASSERT_EQ(::mkfifo((folder() / "pipe.cpp").c_str(), 0600), 0);
  const std::pair<const char*, const char*> modules[] = {
      {"runs.cpp", "runs.cpp is a folder; a module is a file"},
      {"runs", "runs.cpp is a folder; a module is a file"},
      {"some", "Cannot load module 'some', which is a folder"},
      {"loop.cpp", "loop.cpp cannot be opened: Too many levels of symbolic links"},
      {"pipe.cpp", "pipe.cpp is no regular file; a module is a file"},
  };
  for (const auto& [module, said] : modules) {
    const Ended ended = load(module);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, HasSubstr(said));
    EXPECT_THAT(rhea({"plan", "--module", "qwen3", "--config", "qwen3_debugmodel",
                      "--override.imports", module})
                    .code,
                2);
  }
}

TEST_F(Load, PathsMayBeAbsoluteOrBeginAtHome) {
  write_runs();
  for (const std::string& module :
       {(folder() / "my_runs.cpp").string(), (folder() / "my_runs").string(),
        std::string("~/my_runs.cpp")}) {
    const Ended ended = load(module, {{"HOME", folder().string()}});
    EXPECT_EQ(ended.code, 0) << ended.output;
    const Ended imported = rhea({"plan", "--module", "qwen3", "--config", "qwen3_debugmodel",
                                 "--training.seq_len=64", "--override.imports", module},
                                {{"HOME", folder().string()}});
    EXPECT_EQ(imported.code, 0) << imported.output;
    EXPECT_THAT(imported.output, HasSubstr("my_runs.cpp registers no override"));
  }
}

TEST_F(Load, AnExceptionOfAConfigFunctionNamesFileAndLine) {
  write("throws.cpp", R"(#include "rhea/models/qwen3/qwen3.h"
#include "rhea/nn/feed_forward.h"
#include "rhea/plugin/plugin.h"
#include <stdexcept>
static void helper(int n) {
  if (n > 2) throw std::runtime_error("n is too large");  // line 6
}
rhea::TrainerConfig own() {
  helper(3);
  return {};
}
rhea::TrainerConfig of_rhea() {
  rhea::TrainerConfig c;
  c.model_spec = rhea::models::qwen3::model_registry("5B");  // line 14
  return c;
}
rhea::TrainerConfig number() {
  throw 42;  // line 18
}
rhea::TrainerConfig of_a_template() {
  using Config = rhea::nn::FeedForward::Config;
  auto derived = rhea::derive<Config>(Config{}, {{"no", 1}});  // line 22
  return {};
}
RHEA_CONFIG(own)
RHEA_CONFIG(of_rhea)
RHEA_CONFIG(number)
RHEA_CONFIG(of_a_template)
)");
  EXPECT_THAT(config("throws", "of_a_template").output,
              HasSubstr("throws.cpp:22: of_a_template() threw: "));
  EXPECT_THAT(config("throws", "own").output,
              HasSubstr("throws.cpp:6: own() threw: n is too large"));
  EXPECT_THAT(config("throws", "of_rhea").output,
              AllOf(HasSubstr("throws.cpp:14: of_rhea() threw: "), HasSubstr("'5B'")));
  EXPECT_THAT(config("throws", "number").output, HasSubstr("throws.cpp:18: number() threw: "));
}

TEST_F(Load, AnExceptionOfThePluginFunctionNamesFileAndLine) {
  write("bad.cpp", R"(#include "rhea/plugin/plugin.h"
RHEA_PLUGIN(p) {
  throw rhea::Error("{} is not for this machine", p.origin());
}
)");
  const Ended ended = load("bad.cpp");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("bad.cpp:3: RHEA_PLUGIN threw: "));
}

TEST_F(Load, CompilerErrorsAreShownAsTheyAreThenWhatToDo) {
  write("broken.cpp", "#include \"rhea/plugin/plugin.h\"\nint f() { return undeclared; }\n");
  const Ended ended = config("broken", "f");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("broken.cpp:2:18: error: "), HasSubstr("undeclared")));
  EXPECT_THAT(ended.output, HasSubstr("does not compile: the messages above are those of "));
}

TEST_F(Load, AModuleThatRegistersNothingSaysHowTo) {
  write("nothing.cpp", "int f() { return 1; }\n");
  EXPECT_THAT(config("nothing", "f").output,
              AllOf(HasSubstr("nothing.cpp registers nothing"), HasSubstr("RHEA_CONFIG(my_run)"),
                    HasSubstr("RHEA_PLUGIN(p)")));
  write("kernels.cpp", "#include \"rhea/plugin/plugin.h\"\nRHEA_PLUGIN(p) {}\n");
  EXPECT_THAT(config("kernels", "f").output, HasSubstr("has no config function"));
}

TEST_F(Load, NothingOfAMismatchedPluginRuns) {
  const std::string source = std::string(R"(#include <cstdio>
#include "rhea/plugin/plugin.h"
static const int initialised = std::puts("initialised");
rhea::TrainerConfig run() { return {}; }
RHEA_CONFIG(run)
RHEA_PLUGIN(p) {}
)");
  build_library("good.so", source, [](std::string&) {});
  EXPECT_THAT(load("good.so").output, HasSubstr("initialised"));

  build_library("old.so", source, [](std::string& bytes) {
    replace(bytes, "\n" RHEA_PLUGIN_BUILD_ID "\n", "\n" + std::string(16, '0') + "\n");
  });
  const Ended old = load("old.so");
  EXPECT_EQ(old.code, 2);
  EXPECT_THAT(old.output, AllOf(HasSubstr("old.so was built against another Rhea"),
                                HasSubstr(RHEA_PLUGIN_BUILD_ID), HasSubstr("rebuild")));
  EXPECT_THAT(old.output, Not(HasSubstr("initialised")));

  build_library("other.so", source, [](std::string& bytes) {
    replace(bytes, "\n" RHEA_STAMP_COMPILER ",",
            "\n" + std::string(sizeof(RHEA_STAMP_COMPILER) - 1, 'X') + ",");
  });
  EXPECT_THAT(load("other.so").output,
              AllOf(HasSubstr("was built by XX"), HasSubstr("this program by " RHEA_STAMP_COMPILER),
                    HasSubstr("rebuild"), Not(HasSubstr("initialised"))));

  // Every other line and word of the stamp: what differs is named, and what to do.
  const auto changed = [&](const std::string& from, const std::string& to) {
    build_library("changed.so", source, [&](std::string& bytes) { replace(bytes, from, to); });
    const Ended ended = load("changed.so");
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, AllOf(HasSubstr("changed.so was built "), HasSubstr("rebuild"),
                                    Not(HasSubstr("initialised"))));
    return ended.output;
  };
  EXPECT_THAT(
      changed("rhea plugin 1\n", "rhea plugin 7\n"),
      HasSubstr("its plugin format is rhea plugin 7, that of this program is rhea plugin 1"));
  const std::string version = RHEA_PLUGIN_VERSION;
  EXPECT_THAT(changed("\n" + version + "\n", "\n" + std::string(version.size(), '9') + "\n"),
              HasSubstr("its version is " + std::string(version.size(), '9') +
                        ", that of this program is " + version));
  EXPECT_THAT(changed(RHEA_STAMP_COMPILER RHEA_STAMP_LIBRARY, RHEA_STAMP_COMPILER ", libelsexx"),
              HasSubstr("was built by " RHEA_STAMP_COMPILER ", libelsexx"));

  build_library("cut.so", source, [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  EXPECT_THAT(load("cut.so").output, HasSubstr("cut.so cannot be loaded: the file is cut short"));
  write("text.so",
        "not a library, but long enough to hold the header of one: " + std::string(64, 'x'));
  EXPECT_THAT(load("text.so").output, HasSubstr("text.so cannot be loaded: it is no ELF file"));
}

// Real ones: flags that change the binary interface of what they compile.
TEST_F(Load, NothingOfASourceWithAnotherInterfaceRuns) {
  write("noisy.cpp", R"(#include <cstdio>
#include "rhea/plugin/plugin.h"
static const int initialised = std::puts("initialised");
rhea::TrainerConfig run() { return {}; }
RHEA_CONFIG(run)
)");
  const Ended old = load("noisy.cpp", {{"RHEA_CXXFLAGS", "-D_GLIBCXX_USE_CXX11_ABI=0"}});
  EXPECT_EQ(old.code, 2);
  EXPECT_THAT(old.output, AllOf(HasSubstr("libstdc++ of the old ABI"), HasSubstr("rebuild"),
                                Not(HasSubstr("initialised"))));
  if (std::string(RHEA_STAMP_SANITIZER).empty()) {
    const Ended sanitized = load("noisy.cpp", {{"RHEA_CXXFLAGS", "-fsanitize=address"}});
    EXPECT_EQ(sanitized.code, 2);
    EXPECT_THAT(sanitized.output, AllOf(HasSubstr("address sanitizer"), HasSubstr("rebuild"),
                                        Not(HasSubstr("initialised"))));
  }
}

TEST_F(Load, AMissingSymbolIsAnErrorBeforeAnythingRuns) {
  write("needs.cpp",
        "#include \"rhea/plugin/plugin.h\"\nvoid absent();\nRHEA_PLUGIN(p) { absent(); }\n");
  EXPECT_THAT(load("needs.cpp").output, AllOf(HasSubstr("cannot be loaded"), HasSubstr("absent"),
                                              HasSubstr("RHEA_CXXFLAGS")));
}

TEST_F(Load, OverridesOfAFileAreActivatedByNameAndByFile) {
  write("my_overrides.cpp", R"(#include "rhea/models/qwen3/qwen3.h"
#include "rhea/plugin/plugin.h"
using Norm = rhea::nn::RMSNorm::Config;
RHEA_PLUGIN(p) {
  p.override<Norm>("wider_eps", {.fqns = {"layers.1.attention_norm"}}, [](const Norm& norm) {
    Norm made = norm;
    made.eps = 0.5;
    return made;
  });
}
)");
  const auto with = [&](const std::string& import) {
    return rhea({"plan", "--module", "qwen3", "--config", "qwen3_debugmodel", "--training.seq_len",
                 "64", "--override.imports", import})
        .output;
  };
  const std::string line =
      "[Override] wider_eps: model_spec.model.layers.1.attention_norm RMSNorm.Config -> "
      "RMSNorm.Config";
  for (const char* import :
       {"my_overrides.cpp", "my_overrides", "my_overrides:wider_eps", "my_overrides.wider_eps"})
    EXPECT_THAT(with(import), AllOf(HasSubstr(line), HasSubstr("Applied 1 override(s)"))) << import;
  EXPECT_THAT(with("my_overrides:narrower"),
              AllOf(HasSubstr("names no registered override"), HasSubstr("wider_eps")));
  write("my_overrides.cpp", "#error broken\n");
  EXPECT_THAT(with("my_overrides.cpp"), HasSubstr("could not be imported: "));
}

TEST_F(Load, ATiedHeadIsNoLinearOfTheModel) {
  write("tied.cpp", R"(#include "rhea/config/derive.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/plugin/plugin.h"
using Linear = rhea::nn::Linear::Config;
rhea::TrainerConfig tied() {
  rhea::TrainerConfig c;
  c.model_spec = rhea::models::qwen3::model_registry("0.6B");
  return c;
}
RHEA_CONFIG(tied)
rhea::TrainerConfig biased() {
  rhea::TrainerConfig c = tied();
  c.model_spec.model.as<rhea::nn::Decoder::Config>()->lm_head->bias = true;
  return c;
}
RHEA_CONFIG(biased)
struct Own {
  struct Config : Linear {};
};
RHEA_PLUGIN(p) {
  const auto same = [](const Linear& stock) { return stock; };
  p.override<Linear>("all_linear", {}, same);
  p.override<Linear>("head", {.fqns = {"lm_head"}}, same);
  p.override<Linear>("own_head", {.fqns = {"lm_head"}},
                     [](const Linear& stock) { return rhea::derive<Own::Config>(stock); });
}
)");
  const auto plan = [&](const std::string& name, const std::string& config = "tied") {
    return rhea({"plan", "--module", "tied.cpp", "--config", config, "--training.seq_len", "64",
                 "--override.imports", "tied.cpp:" + name});
  };
  const std::string reason =
      "model_spec.model.lm_head{}, which this model does not use: its head is the embedding's "
      "matrix (tie_word_embeddings); override the embedding";
  const auto with = [&](const std::string& words) {
    std::string text = reason;
    return text.replace(text.find("{}"), 2, words);
  };
  const Ended all = plan("all_linear");
  EXPECT_EQ(all.code, 0) << all.output;
  EXPECT_THAT(all.output, AllOf(HasSubstr("Override 'all_linear' leaves " + with(" out")),
                                HasSubstr("Applied 196 override(s)")));
  const Ended head = plan("head");
  EXPECT_EQ(head.code, 2);
  EXPECT_THAT(head.output, HasSubstr("Override 'head' replaces " + with("")));

  // The bias of the head is used all the same; a forward of its own would not be.
  const Ended biased = plan("head", "biased");
  EXPECT_EQ(biased.code, 0) << biased.output;
  EXPECT_THAT(biased.output, HasSubstr("Applied 1 override(s)"));
  const Ended own = plan("own_head", "biased");
  EXPECT_EQ(own.code, 2);
  EXPECT_THAT(own.output,
              HasSubstr("Override 'own_head' makes model_spec.model.lm_head a Own.Config, but this "
                        "model multiplies with the embedding's matrix (tie_word_embeddings)"));
}

TEST_F(Load, WithoutACompilerALibraryIsSuggested) {
  write_runs();
  const Ended ended = load("my_runs.cpp", {{"RHEA_CXX", "/nowhere/g++"}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("RHEA_CXX=/nowhere/g++"), HasSubstr("(a .so)")));
}

}  // namespace
}  // namespace rhea
