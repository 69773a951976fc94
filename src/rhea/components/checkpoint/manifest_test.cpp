// Checksums, the manifest's text, slices over several files, damaged manifests.
#include "rhea/components/checkpoint/manifest.h"

#include <array>
#include <fstream>
#include <numeric>
#include <random>

#include "rhea/components/checkpoint/checksum.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/checkpoint/test_run.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

uint64_t hash(std::string_view text) { return xxh64(std::as_bytes(std::span(text))); }

TEST(Checksum, MatchesPublishedValues) {
  EXPECT_EQ(hash(""), 0xef46db3751d8e999U);
  EXPECT_EQ(hash("a"), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(hash("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1U);
}

// Two ranks, each with one half of the columns of a [2, 4] tensor, and a scalar.
Manifest two_ranks() {
  Manifest manifest;
  manifest.step = 3;
  manifest.files = {{"rank-00000.safetensors", 20}, {"rank-00001.safetensors", 16}};
  StoredTensor tensor{DType::f32, {2, 4}, {}};
  tensor.chunks.push_back({{0, 0}, {2, 2}, "rank-00000.safetensors", 4, 20, {1}});
  tensor.chunks.push_back({{0, 2}, {2, 2}, "rank-00001.safetensors", 0, 16, {2}});
  manifest.tensors["w"] = tensor;
  manifest.tensors["scalar"] = {DType::i32, {}, {{{}, {}, "rank-00000.safetensors", 0, 4, {3}}}};
  manifest.state = {{"train_state", R"({"step":3})"}};
  return manifest;
}

TEST(ManifestText, ReadsBackAndIsSealed) {
  const std::string text = format_manifest(two_ranks());
  const Manifest back = parse_manifest(text, "m");
  EXPECT_EQ(format_manifest(back), text);
  EXPECT_EQ(back.tensors.at("w").chunks[1].checksums, std::vector<uint64_t>{2});
  EXPECT_EQ(back.state.at("train_state"), R"({"step":3})");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] ^= 1;
    EXPECT_NE(error_of([&] { parse_manifest(bad, "m"); }), "no error") << at;
  }
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(error_of([&] { parse_manifest(text.substr(0, size), "m"); }), "no error") << size;
}

TEST(ManifestText, LiesAreRefused) {
  const std::string good = format_manifest(two_ranks());
  const auto lie = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    seal_manifest(bad);
    return error_of([&] { parse_manifest(bad, "m.json"); });
  };
  EXPECT_THAT(lie("[2,4]", "[2,5]"),
              AllOf(HasSubstr("m.json"), HasSubstr("'w'"), HasSubstr("32 of its 40")));
  EXPECT_THAT(lie("\"bytes\":[4,20]", "\"bytes\":[4,24]"), HasSubstr("which has 20"));
  EXPECT_THAT(lie("\"bytes\":[4,20]", "\"bytes\":[4,16]"), HasSubstr("16 bytes has a range of 12"));
  EXPECT_THAT(lie("\"offset\":[0,2]", "\"offset\":[0,3]"),
              HasSubstr("outside the tensor in dimension 1"));
  EXPECT_THAT(lie("\"file\":\"rank-00001", "\"file\":\"rank-00002"), HasSubstr("not listed"));
  EXPECT_THAT(lie("\"rank-00000.safetensors\":20", "\"../000.safetensors\":20"),
              HasSubstr("plain file name"));
  EXPECT_THAT(lie("\"f32\"", "\"f31\""), HasSubstr("f31"));
  EXPECT_THAT(lie("\"version\": 1", "\"version\": 9"), HasSubstr("another release"));
  EXPECT_THAT(lie("[2,4]", "[9223372036854775807,9223372036854775807]"), HasSubstr("overflows"));
  EXPECT_THAT(lie("{\"step\":3}", std::string(100'000, '[') + std::string(100'000, ']')),
              HasSubstr("nested"));
  EXPECT_THAT(lie("[\"0000000000000001\"]", "[]"), HasSubstr("0 checksums for 16 bytes"));
}

TEST(ManifestText, RandomDamageGivesAnErrorAndNothingElse) {
  const std::string good = format_manifest(two_ranks());
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    const size_t body = bad.size() - 45;  // the seal stays, so that the parser behind it is reached
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % body;
      if (random() % 3 == 0)
        bad[at] = "{}[]\",:0-9e"[random() % 11];
      else
        bad[at] ^= static_cast<char>(1 << random() % 8);
    }
    seal_manifest(bad);
    try {
      parse_manifest(bad, "m");
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

class StepFiles : public TestFolder {};

TEST_F(StepFiles, SlicesComeFromEveryFileThatHoldsAPart) {
  const std::array<float, 4> left = {1, 2, 5, 6};
  const std::array<float, 4> right = {3, 4, 7, 8};
  const int32_t scalar = 42;
  std::ofstream(folder_ / "rank-00000.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(&scalar), 4)
      .write(reinterpret_cast<const char*>(left.data()), 16);
  std::ofstream(folder_ / "rank-00001.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(right.data()), 16);
  Manifest manifest = two_ranks();
  manifest.tensors["w"].chunks[0].checksums = {xxh64(std::as_bytes(std::span(left)))};
  manifest.tensors["w"].chunks[1].checksums = {xxh64(std::as_bytes(std::span(right)))};
  manifest.tensors["scalar"].chunks[0].checksums = {xxh64(std::as_bytes(std::span(&scalar, 1)))};
  write_file_atomic(folder_ / kManifestName, format_manifest(manifest));
  const StepReader reader(folder_);
  std::vector<float> whole(8);
  reader.read({"w", DType::f32, {2, 4}, whole.data()});
  EXPECT_THAT(whole, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  std::array<float, 4> middle{};
  reader.read_slice("w", std::array<int64_t, 2>{0, 1}, std::array<int64_t, 2>{2, 2},
                    std::as_writable_bytes(std::span(middle)));
  EXPECT_THAT(middle, ElementsAre(2, 3, 6, 7));
  int64_t wide = 0;
  reader.read({"scalar", DType::i64, {}, &wide});
  EXPECT_EQ(wide, 42);
}

TEST_F(StepFiles, OnlyTheBlocksOfASliceAreVerified) {
  // Three checksum blocks; the last is damaged.
  const auto count = static_cast<int64_t>(kChecksumBlock / 4 * 2 + 100);
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  const std::vector<NamedTensor> tensors = {{"w", DType::f32, {count}, values.data()}};
  write_step(folder_ / "step-1", {1, Manifest::Kind::full, tensors, {}, std::nullopt});
  const fs::path data = folder_ / "step-1/rank-00000.safetensors";
  std::fstream file(data, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-2, std::ios::end);
  file.put('!');
  file.close();
  const StepReader reader(folder_ / "step-1");
  std::array<float, 2> part{};
  const auto bytes = std::as_writable_bytes(std::span(part));
  const std::array<int64_t, 1> two = {2};
  reader.read_slice("w", std::array{static_cast<int64_t>(kChecksumBlock / 4 - 1)}, two, bytes);
  EXPECT_EQ(part[1], values[kChecksumBlock / 4]);
  EXPECT_THAT(error_of([&] { reader.read_slice("w", std::array{count - 2}, two, bytes); }),
              AllOf(HasSubstr(data.string()), HasSubstr("'w'"), HasSubstr("damaged")));
}

TEST_F(StepFiles, EmptyAndScalarTensorsSurvive) {
  double scalar = 2.5;
  std::vector<NamedTensor> tensors = {{"empty", DType::f32, {0, 3}, nullptr},
                                      {"scalar", DType::f64, {}, &scalar}};
  write_step(folder_ / "step-1", {1, Manifest::Kind::full, tensors, {}, std::nullopt});
  scalar = 0;
  StepReader(folder_ / "step-1").read_all(tensors, [](const std::string&) { return true; });
  EXPECT_EQ(scalar, 2.5);
}

}  // namespace
}  // namespace rhea::checkpoint
