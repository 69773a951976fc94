// Checkpoint files that are not what was written: named, refused, the one before offered.
#include <fstream>

#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

constexpr int kUserError = 2;  // exit code

class Damage : public FaultTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(run(words("run")).code, 0);
    data_ = step_folder("run", 12) / "rank-00000.safetensors";
    manifest_ = step_folder("run", 12) / "manifest.json";
    ASSERT_TRUE(fs::exists(data_) && fs::exists(manifest_));
  }

  // The same run with two steps more refuses step 12 because of `file`, offers step 10, and goes on
  // from there when told so.
  void expect_refused(const fs::path& file) {
    const auto outcome = run(words("run", 14));
    EXPECT_EQ(outcome.code, kUserError) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("rhea: error: "));
    EXPECT_THAT(outcome.output, HasSubstr(file.string()));
    EXPECT_THAT(outcome.output, HasSubstr("--checkpoint.load_step 10"));
    EXPECT_THAT(outcome.output, Not(HasSubstr("Training starts")));
    expect_ends_as_undisturbed("run", 14, {"--checkpoint.load_step=10"});
  }

  static void flip_bit(const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x10));
  }

  fs::path data_, manifest_;
};

TEST_F(Damage, TruncatedData) {
  fs::resize_file(data_, fs::file_size(data_) - 100);
  expect_refused(data_);
}

TEST_F(Damage, EmptyData) {
  fs::resize_file(data_, 0);
  expect_refused(data_);
}

TEST_F(Damage, AbsentData) {
  fs::remove(data_);
  expect_refused(data_);
}

TEST_F(Damage, FlippedBitInData) {
  flip_bit(data_, static_cast<std::streamoff>(fs::file_size(data_) * 2 / 3));
  expect_refused(data_);
}

TEST_F(Damage, FlippedBitInTheManifest) {
  flip_bit(manifest_, static_cast<std::streamoff>(fs::file_size(manifest_) / 2));
  expect_refused(manifest_);
}

TEST_F(Damage, TruncatedManifest) {
  fs::resize_file(manifest_, fs::file_size(manifest_) / 2);
  expect_refused(manifest_);
}

}  // namespace
}  // namespace rhea
