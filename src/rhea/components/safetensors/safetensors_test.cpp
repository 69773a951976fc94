// The rules of the format, conversions, damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/export.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::safetensors {
namespace {

namespace fs = std::filesystem;
using support::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  support::TempFolder temporary_;
  fs::path folder_ = temporary_.path();
};

std::string length_bytes(uint64_t length) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(length >> (8 * i) & 0xff);
  return out;
}
std::string file_of(const std::string& json, const std::string& data) {
  return length_bytes(json.size()) + json + data;
}
std::string floats(std::initializer_list<float> values) {
  std::string out;
  for (const float value : values) out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}
TensorView view(const std::string& name, const std::vector<float>& values) {
  return {name,
          ElementType::F32,
          {static_cast<int64_t>(values.size())},
          std::as_bytes(std::span(values))};
}

TEST_F(Safetensors, S1HeaderLengthIsCheckedFirst) {
  const auto open = [&](const std::string& content) {
    return error_of([&] { File(write("x.safetensors", content)); });
  };
  EXPECT_THAT(open(length_bytes(~0ULL) + "{}"), HasSubstr("above the limit"));
  EXPECT_THAT(open(length_bytes(99'000'000) + "{}"), HasSubstr("past the end"));
  EXPECT_THAT(open("1234567"), HasSubstr("too few"));
  EXPECT_THAT(open(""), HasSubstr("is empty"));
  EXPECT_THAT(open(length_bytes(2) + "{}"), "no error");
}

TEST_F(Safetensors, S2LfsPointerIsNamed) {
  const auto path = write("model.safetensors",
                          "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_THAT(error_of([&] { Weights{folder_}; }),
              AllOf(HasSubstr(path.string()), HasSubstr("Git LFS pointer")));
}

TEST_F(Safetensors, S3DuplicateNamesAreRefused) {
  const std::string entry = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(
      error_of([&] { File(write("x", file_of("{" + entry + "," + entry + "}", floats({1})))); }),
      AllOf(HasSubstr("duplicate"), HasSubstr("'a'")));
  EXPECT_THAT(
      error_of([&] {
        File(write(
            "x", file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                         floats({1}))));
      }),
      AllOf(HasSubstr("duplicate"), HasSubstr("'dtype'")));
}

TEST_F(Safetensors, S4S5RangesTileTheData) {
  const auto open = [&](const std::string& json, const std::string& data) {
    return error_of([&] { File(write("x", file_of(json, data))); });
  };
  EXPECT_THAT(open(R"({"k_proj":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                       "v_proj":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                   floats({1, 2})),
              AllOf(HasSubstr("overlap"), HasSubstr("k_proj"), HasSubstr("v_proj")));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                       "b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                   floats({1, 2, 3})),
              AllOf(HasSubstr("gap"), HasSubstr("'b'")));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", floats({1, 2})),
              HasSubstr("4 bytes follow"));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", floats({1})),
              HasSubstr("truncated"));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", floats({1})),
              HasSubstr("data_offsets are [0, 4]"));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", floats({1})),
              HasSubstr("data_offsets are [4, 0]"));
  EXPECT_THAT(
      open(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", ""),
      HasSubstr("overflows"));
  EXPECT_THAT(
      open(R"({"a":{"dtype":"F32","shape":[4611686018427387904,0,4],"data_offsets":[0,0]}})", ""),
      HasSubstr("overflows"));
  EXPECT_THAT(open(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", ""),
              HasSubstr("-1"));
  EXPECT_THAT(
      open(R"({"a":{"dtype":"F32","shape":[99999999999999999999999],"data_offsets":[0,0]}})", ""),
      HasSubstr("99999999999999999999999"));
}

TEST_F(Safetensors, S6UnknownDtypeIsNamed) {
  EXPECT_THAT(error_of([&] {
                File(write("x", file_of(R"({"w":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})",
                                        floats({1}))));
              }),
              AllOf(HasSubstr("'F31'"), HasSubstr("'w'")));
}

TEST_F(Safetensors, S7ScalarAndEmptyLoad) {
  const File file(write("x", file_of(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
    "e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"v":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"
                                     "   ",
                                     floats({7, 5}))));
  EXPECT_THAT(read_vector<float>(file.at("s")), ElementsAre(7));
  EXPECT_THAT(read_vector<float>(file.at("e")), ElementsAre());
  EXPECT_THAT(file.at("e").shape, ElementsAre(0, 3));
  EXPECT_THAT(read_vector<float>(file.at("v")), ElementsAre(5));
}

TEST_F(Safetensors, S8HeaderOrderIsFree) {
  const File file(write("x", file_of(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},
    "a":{"shape":[2],"data_offsets":[0,8],"dtype":"F32"},"__metadata__":{"k":"v"}})",
                                     floats({1, 2, 3, 4}))));
  EXPECT_THAT(read_vector<float>(file.at("a")), ElementsAre(1, 2));
  EXPECT_THAT(read_vector<float>(file.at("b")), ElementsAre(3, 4));
  EXPECT_EQ(file.metadata().at("k"), "v");
  EXPECT_THAT(error_of([&] { file.at("c"); }), HasSubstr("'c'"));
}

TEST_F(Safetensors, MetadataIsStringToString) {
  EXPECT_THAT(error_of([&] { File(write("x", file_of(R"({"__metadata__":{"k":1}})", ""))); }),
              HasSubstr("not a string"));
  EXPECT_THAT(error_of([&] { File(write("x", file_of(R"([])", ""))); }),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of([&] { File(write("x", file_of("{\"\xff\":1}", ""))); }),
              HasSubstr("not valid JSON"));
}

TEST_F(Safetensors, S9AbsentShardsAreListed) {
  write_file(folder_ / "model-00001-of-00002.safetensors", std::vector{view("a", {1})});
  write(
      kIndexName,
      R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors","e":"model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(
      error_of([&] { Weights{folder_}; }),
      AllOf(HasSubstr("model-00002-of-00002.safetensors"), HasSubstr("incomplete download?")));
  write_file(folder_ / "model-00002-of-00002.safetensors", std::vector{view("c", {1})});
  EXPECT_THAT(
      error_of([&] { Weights{folder_}; }),
      AllOf(HasSubstr("'b' into model"), HasSubstr("'e' into model"), HasSubstr("do not hold")));
  write_file(folder_ / "model-00002-of-00002.safetensors",
             std::vector{view("b", {1}), view("c", {1}), view("e", {1})});
  const Weights weights(folder_);
  EXPECT_THAT(error_of([&] { weights.at("c"); }),
              AllOf(HasSubstr("'c' is not in the index"), HasSubstr("model-00002")));
  EXPECT_THAT(error_of([&] { weights.at("d"); }), HasSubstr("'d' is not in the index"));
}

TEST_F(Safetensors, S10StrayFileIsIgnored) {
  write_file(folder_ / "model-1.safetensors", std::vector{view("norm", {1})});
  write_file(folder_ / "model-2.safetensors", std::vector{view("w", {2})});
  write_file(folder_ / "a.safetensors", std::vector{view("norm", {99})});
  EXPECT_THAT(error_of([&] { Weights{folder_}; }),
              AllOf(HasSubstr("'norm'"), HasSubstr("a.safetensors")));
  write(kIndexName, R"({"weight_map":{"norm":"model-1.safetensors","w":"model-2.safetensors"}})");
  const Weights weights(folder_);
  EXPECT_THAT(read_vector<float>(weights.at("norm")), ElementsAre(1));
  EXPECT_THAT(weights.names(), ElementsAre("norm", "w"));
}

TEST_F(Safetensors, IndexStaysInItsFolder) {
  write(kIndexName, R"({"weight_map":{"norm":"../x.safetensors"}})");
  EXPECT_THAT(error_of([&] { Weights{folder_}; }), HasSubstr("not a plain file name"));
  write(kIndexName, R"({"weight_map":{"norm":"x","norm":"y"}})");
  EXPECT_THAT(error_of([&] { Weights{folder_}; }), HasSubstr("duplicate"));
  write(kIndexName, R"({"weight":{}})");
  EXPECT_THAT(error_of([&] { Weights{folder_}; }), HasSubstr("no weight_map"));
  write(kIndexName, R"({"weight_map":{"a":{}}})");
  EXPECT_THAT(error_of([&] { Weights{folder_}; }), HasSubstr("not to a file name"));
}

std::vector<TensorSource> sources(const Weights& weights) {
  std::vector<TensorSource> out;
  for (const std::string& name : weights.names()) {
    const TensorView* tensor = weights.find(name);
    out.push_back({{name, tensor->dtype, tensor->shape},
                   [tensor](const Sink& sink) { sink(tensor->bytes); }});
  }
  return out;
}

TEST_F(Safetensors, S11S12OddShardNamesLoadAndExportHasAnIndex) {
  write_file(folder_ / "model.safetensors-00001-of-00002.safetensors",
             std::vector{view("a", {1}), view("c", {3})});
  write_file(folder_ / "model.safetensors-00002-of-00002.safetensors", std::vector{view("b", {2})});
  write(kIndexName, R"({"weight_map":{"a":"model.safetensors-00001-of-00002.safetensors",
    "c":"model.safetensors-00001-of-00002.safetensors","b":"model.safetensors-00002-of-00002.safetensors"}})");
  const Weights weights(folder_);
  const fs::path out = folder_ / "out";
  fs::create_directory(out);
  write_sharded(out, sources(weights), {.like = read_index(folder_ / kIndexName)});
  EXPECT_THAT(read_index(out / kIndexName),
              ElementsAre(std::pair("a", "model-00001-of-00002.safetensors"),
                          std::pair("b", "model-00002-of-00002.safetensors"),
                          std::pair("c", "model-00001-of-00002.safetensors")));
  EXPECT_THAT(read_file(out / kIndexName), HasSubstr("\"total_size\": 12"));
  const Weights again(out);
  EXPECT_THAT(read_vector<float>(again.at("b")), ElementsAre(2));
  EXPECT_EQ(again.files().front().metadata().at("format"), "pt");

  write_sharded(out, sources(weights), {.max_shard_bytes = 8});
  EXPECT_EQ(read_index(out / kIndexName).at("c"), "model-00002-of-00002.safetensors");
  write_sharded(out, sources(weights));
  EXPECT_FALSE(fs::exists(out / kIndexName));
  EXPECT_EQ(Weights(out).names().size(), 3U);
}

TEST_F(Safetensors, S13LinksAreReplacedNotFollowed) {
  const fs::path source = folder_ / "readonly";
  fs::create_directory(source);
  write_file(source / "model.safetensors", std::vector{view("a", {1, 2})});
  const std::string before = read_file(source / "model.safetensors");
  fs::create_symlink(source / "model.safetensors", folder_ / "model.safetensors");
  const Weights weights(folder_);
  const std::vector<float> changed = {8, 9};
  write_sharded(folder_, {{{"a", ElementType::F32, {2}}, [&](const Sink& sink) {
                             write_converted(ElementType::F32, std::as_bytes(std::span(changed)),
                                             DType::f32, sink);
                           }}});
  EXPECT_EQ(read_file(source / "model.safetensors"), before);
  EXPECT_FALSE(fs::is_symlink(folder_ / "model.safetensors"));
  EXPECT_THAT(read_vector<float>(Weights(folder_).at("a")), ElementsAre(8, 9));
  EXPECT_THAT(read_vector<float>(weights.at("a")), ElementsAre(1, 2))
      << "an open map keeps the old file";
}

TEST_F(Safetensors, WriterAlignsAndStreamsInPieces) {
  const std::vector<TensorSpec> specs = {{"byte", ElementType::U8, {3}},
                                         {"wide", ElementType::F64, {2}},
                                         {"none", ElementType::F32, {0}}};
  const fs::path path = folder_ / "x.safetensors";
  {
    Writer writer(path, specs, {{"k", "v"}});
    const double wide[2] = {1.5, -2};
    writer.write(1, std::as_bytes(std::span(wide)).first(8));
    const uint8_t bytes[3] = {1, 2, 3};
    writer.write(0, std::as_bytes(std::span(bytes)));
    writer.write(1, std::as_bytes(std::span(wide)).subspan(8));
    EXPECT_EQ(writer.file_offset(1) % 8, 0U);
    EXPECT_FALSE(fs::exists(path));
    writer.finish();
    EXPECT_EQ(writer.file_size(), fs::file_size(path));
  }
  const File file(path);
  EXPECT_THAT(read_vector<double>(file.at("wide")), ElementsAre(1.5, -2));
  EXPECT_THAT(read_vector<uint8_t>(file.at("byte")), ElementsAre(1, 2, 3));
  { Writer abandoned(path, specs); }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1)
      << "the temporary is gone";
  EXPECT_THAT(error_of([&] {
                Writer(path, std::vector<TensorSpec>{specs[0], specs[0]});
              }),
              HasSubstr("second tensor 'byte'"));
}

TEST_F(Safetensors, FullDiskLeavesNothing) {
  const std::vector<float> many(100'000);
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  ExitCode code = ExitCode::ok;
  try {
    write_file(folder_ / "x.safetensors", std::vector{view("a", many)});
  } catch (const ExitError& error) {
    message = error.what();
    code = error.code();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ExitCode::out_of_memory);
  EXPECT_THAT(message, AllOf(HasSubstr("x.safetensors"), HasSubstr("needs 4000")));
  EXPECT_TRUE(fs::is_empty(folder_));
}

template <class To>
std::vector<To> converted(ElementType type, const auto& from) {
  TensorView tensor{"t", type, {}, std::as_bytes(std::span(from))};
  return read_vector<To>(tensor);
}

TEST(Convert, FloatsRoundOnceAndKeepNan) {
  const float nan = std::bit_cast<float>(0x7f800001U);
  const std::vector<float> f32 = {1.0F, std::bit_cast<float>(0x3f808000U),
                                  std::bit_cast<float>(0x3f818000U), nan, 1e30F};
  const auto b = converted<bf16>(ElementType::F32, f32);
  EXPECT_EQ(b[0].bits, 0x3f80);
  EXPECT_EQ(b[1].bits, 0x3f80);
  EXPECT_EQ(b[2].bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(b[3])));
  EXPECT_TRUE(std::isinf(static_cast<float>(converted<f16>(ElementType::F32, f32)[4])));
  // Just above the tie between two bf16: through f32 by nearest it would become the tie and round
  // down.
  const std::vector<double> f64 = {1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40),
                                   -(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)),
                                   1.0 + std::ldexp(1.0, -8) - std::ldexp(1.0, -40), 1e300,
                                   std::nan("")};
  const auto d = converted<bf16>(ElementType::F64, f64);
  EXPECT_EQ(d[0].bits, 0x3f81);
  EXPECT_EQ(d[1].bits, 0xbf81);
  EXPECT_EQ(d[2].bits, 0x3f80);
  EXPECT_TRUE(std::isinf(static_cast<float>(d[3])));
  EXPECT_TRUE(std::isnan(static_cast<float>(d[4])));
}

TEST(Convert, EightBitFloats) {
  const std::vector<uint8_t> e4m3 = {0x00, 0x01, 0x08, 0x38, 0x7e, 0x7f, 0xb8, 0xff};
  const auto a = converted<float>(ElementType::F8_E4M3, e4m3);
  EXPECT_EQ(a[1], std::ldexp(1.0F, -9));
  EXPECT_EQ(a[2], std::ldexp(1.0F, -6));
  EXPECT_EQ(a[3], 1);
  EXPECT_EQ(a[4], 448);
  EXPECT_TRUE(std::isnan(a[5]));
  EXPECT_EQ(a[6], -1);
  EXPECT_TRUE(std::isnan(a[7]));
  const std::vector<uint8_t> e5m2 = {0x01, 0x3c, 0x7b, 0x7c, 0x7d, 0xbc};
  const auto b = converted<float>(ElementType::F8_E5M2, e5m2);
  EXPECT_EQ(b[0], std::ldexp(1.0F, -16));
  EXPECT_EQ(b[1], 1);
  EXPECT_EQ(b[2], 57344);
  EXPECT_TRUE(std::isinf(b[3]));
  EXPECT_TRUE(std::isnan(b[4]));
  EXPECT_EQ(b[5], -1);
  const std::vector<uint8_t> e8m0 = {0, 127, 128, 254, 255};
  const auto c = converted<float>(ElementType::F8_E8M0, e8m0);
  EXPECT_EQ(c[0], std::ldexp(1.0F, -127));
  EXPECT_EQ(c[1], 1);
  EXPECT_EQ(c[2], 2);
  EXPECT_EQ(c[3], std::ldexp(1.0F, 127));
  EXPECT_TRUE(std::isnan(c[4]));
}

// Every type of the format is read; several elements may share a byte, and only whole bytes count.
TEST_F(Safetensors, EveryTypeOfTheFormatIsListed) {
  const auto open = [&](const std::string& dtype, int64_t count, size_t bytes) {
    return error_of([&] {
      File(write(
          "x", file_of(fmt::format(R"({{"w":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})",
                                   dtype, count, bytes),
                       std::string(bytes, '\0'))));
    });
  };
  const std::pair<const char*, size_t> sizes[] = {
      {"F64", 64},    {"F32", 32},        {"F16", 16},        {"BF16", 16},   {"I64", 64},
      {"I32", 32},    {"I16", 16},        {"I8", 8},          {"U64", 64},    {"U32", 32},
      {"U16", 16},    {"U8", 8},          {"BOOL", 8},        {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
      {"F4", 4},      {"C64", 64}};
  for (const auto& [dtype, bits] : sizes) EXPECT_EQ(open(dtype, 8, bits), "no error") << dtype;
  EXPECT_THAT(open("F4", 3, 2), HasSubstr("3 elements of 4 bits do not fill whole bytes"));
  EXPECT_THAT(open("F8_E4M3", 8, 7), HasSubstr("data_offsets"));
}

TEST(Convert, FourBitFloatsAndTypesWithoutValues) {
  const std::vector<uint8_t> codes = {0x21, 0xa3};
  EXPECT_THAT(converted<float>(ElementType::F4, codes), ElementsAre(0.5F, 1, 1.5F, -1));
  const std::vector<uint64_t> complex = {0};
  EXPECT_THAT(error_of([&] { converted<float>(ElementType::C64, complex); }),
              AllOf(HasSubstr("C64"), HasSubstr("values of this type are not read")));
}

TEST_F(Safetensors, PagesOfATensorAreReleasedAndReadAgain) {
  const std::vector<float> many(1 << 20, 2.5F);
  write_file(folder_ / "x.safetensors", std::vector{view("a", many), view("b", many)});
  const File file(folder_ / "x.safetensors");
  EXPECT_EQ(read_vector<float>(file.at("a")), many);
  EXPECT_TRUE(file.release(file.at("a").bytes));
  EXPECT_FALSE(file.release(std::as_bytes(std::span(many))));
  EXPECT_EQ(read_vector<float>(file.at("a")), many);
  EXPECT_EQ(read_vector<float>(file.at("b")), many);
}

TEST(Convert, IntegersKeepTheirValueOrAreRefused) {
  const std::vector<int8_t> i8 = {-128, 127};
  EXPECT_THAT(converted<int64_t>(ElementType::I8, i8), ElementsAre(-128, 127));
  EXPECT_THAT(error_of([&] { converted<uint8_t>(ElementType::I8, i8); }),
              AllOf(HasSubstr("-128"), HasSubstr("u8"), HasSubstr("'t'")));
  const std::vector<uint64_t> u64 = {~0ULL};
  EXPECT_THAT(error_of([&] { converted<int64_t>(ElementType::U64, u64); }),
              HasSubstr("18446744073709551615"));
  EXPECT_THAT(error_of([&] { converted<float>(ElementType::I8, i8); }),
              HasSubstr("cannot convert I8 to f32"));
  const std::vector<int64_t> i64 = {5, -6};
  EXPECT_THAT(converted<int32_t>(ElementType::I64, i64), ElementsAre(5, -6));
}

// Files that other writers of the format made: they load, and what is written from them holds the
// same.
TEST_F(Safetensors, FilesOfOtherWritersSurviveARoundTrip) {
  const fs::path golden = fs::path(RHEA_SHARED_DIR) / "data/golden/models";
  if (!fs::exists(golden)) GTEST_SKIP() << "no " << golden << " on this machine";
  int count = 0;
  for (const auto& item : fs::directory_iterator(golden)) {
    if (!fs::exists(item.path() / "model.safetensors")) continue;
    const File file(item.path() / "model.safetensors");
    write_file(folder_ / "copy", file.tensors(), file.metadata());
    const File copy(folder_ / "copy");
    ASSERT_EQ(copy.tensors().size(), file.tensors().size()) << item.path();
    EXPECT_EQ(copy.metadata(), file.metadata());
    for (const TensorView& tensor : file.tensors()) {
      const TensorView& other = copy.at(tensor.name);
      EXPECT_EQ(other.describe(), tensor.describe());
      EXPECT_TRUE(std::equal(other.bytes.begin(), other.bytes.end(), tensor.bytes.begin(),
                             tensor.bytes.end()))
          << tensor.name;
    }
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST_F(Safetensors, DamagedFilesGiveAnErrorAndNothingElse) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {4};
  write_file(folder_ / "x", std::vector{view("model.layers.0.a", a), view("b", b)},
             {{"format", "pt"}});
  const std::string good = read_file(folder_ / "x");
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) {
      const size_t at = random() % bad.size();
      bad[at] = random() % 4 == 0 ? static_cast<char>(random())
                                  : static_cast<char>(bad[at] ^ (1 << random() % 8));
    }
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    try {
      const auto header = parse_header(std::as_bytes(std::span(bad)), "x");
      for (const Entry& entry : header.entries)
        ASSERT_LE(header.data_begin + entry.end, bad.size());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5'000);
}

}  // namespace
}  // namespace rhea::safetensors
