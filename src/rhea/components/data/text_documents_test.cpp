// Rules of JSON lines and plain text files, compressed or not.
#include "rhea/components/data/text_documents.h"

#include <gmock/gmock.h>

#include <random>

#include "rhea/base/mapped_file.h"
#include "rhea/components/data/open_dataset.h"
#include "rhea/components/data/record_index.h"
#include "rhea/components/data/test_files.h"

namespace rhea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Texts of all documents; a problem stands in angle brackets.
std::vector<std::string> read_all(DocumentSource& source) {
  std::vector<std::string> documents;
  Document document;
  const auto count = source.num_documents();
  for (int64_t number = 0; (!count || number < *count) && source.read(number, document); ++number)
    documents.push_back(document.problem.empty() ? document.text : "<" + document.problem + ">");
  return documents;
}

std::vector<std::string> read_all(const std::string& dataset, const std::string& path,
                                  bool whole_files = false) {
  return read_all(*open_documents({dataset, path, true, 1}, {"text", whole_files, {}}));
}

TEST(JsonLines, D1_line_ends) {
  const TestFolder folder;
  const std::vector<std::string> expected = {"a", "b\n"};
  EXPECT_EQ(read_all("jsonl", folder.write("lf", "{\"text\":\"a\"}\n{\"text\":\"b\\n\"}\n")),
            expected);
  EXPECT_EQ(read_all("jsonl", folder.write("crlf", "{\"text\":\"a\"}\r\n{\"text\":\"b\\n\"}\r\n")),
            expected);
  EXPECT_EQ(
      read_all("jsonl", folder.write("bom", "\xef\xbb\xbf{\"text\":\"a\"}\n{\"text\":\"b\\n\"}")),
      expected);
}

TEST(JsonLines, compressed_parts_follow_each_other_and_nothing_else_does) {
  const TestFolder folder;
  const std::string row = "{\"text\":\"a\"}\n";
  for (const std::string& path :
       {folder.write_gzip("one.gz", row), folder.write_zstd("one.zst", row)}) {
    const std::string part = read_file(path);
    EXPECT_THAT(read_all("jsonl", folder.write("two", part + part)), ElementsAre("a", "a"));
    const std::string damaged = folder.write("rest", part + "garbage" + part);
    EXPECT_THAT(error_of([&] { read_all("jsonl", damaged); }),
                testing::AllOf(HasSubstr(damaged), HasSubstr("damaged near byte")));
  }
  const std::string part = read_file(folder.write_gzip("padded.gz", row));
  EXPECT_THAT(read_all("jsonl", folder.write("padded", part + std::string(512, '\0'))),
              ElementsAre("a"));
}

TEST(JsonLines, D2_a_bad_byte_is_named_with_file_and_line) {
  const TestFolder folder;
  const std::string path = folder.write("bad", "{\"text\":\"\xff\"}\n{\"text\":\"b\"}\n");
  EXPECT_THAT(read_all("jsonl", path),
              ElementsAre("<" + path + ":1: invalid UTF-8: byte 0xFF>", "b"));
}

TEST(JsonLines, D3_wrong_types_are_reported_one_by_one) {
  const TestFolder folder;
  const std::string path = folder.write(
      "types",
      "{\"text\":null}\n{\"text\":5}\n{\"other\":\"x\"}\n[1]\n{\"text\":\"good\"}\n{\"text\":\n");
  EXPECT_THAT(read_all("jsonl", path),
              ElementsAre("<" + path + ":1: field \"text\" is null, not a string>",
                          "<" + path + ":2: field \"text\" is number, not a string>",
                          "<" + path + ":3: field \"text\" is absent>",
                          "<" + path + ":4: the row is a JSON array, not an object>", "good",
                          HasSubstr(path + ":6: malformed JSON")));
}

TEST(JsonLines, D4_only_lf_ends_a_line) {
  const TestFolder folder;
  EXPECT_THAT(
      read_all("jsonl",
               folder.write("ls", "{\"text\":\"a\u2028b\"}\n{\"text\":\"c\u0085d\\u0000\"}\n")),
      ElementsAre("a\u2028b", std::string("c\u0085d\0", 5)));
}

TEST(JsonLines, D5_blank_lines_are_no_rows) {
  const TestFolder folder;
  EXPECT_THAT(
      read_all(
          "jsonl",
          folder.write("blank", "{\"text\":\"ab a\"}\n\n \t\n{\"text\":\"c\"}\n{\"text\":\"\"}\n")),
      ElementsAre("ab a", "c", ""));
}

TEST(JsonLines, compressed_files_give_the_same_rows) {
  const TestFolder folder;
  std::string content;
  for (int i = 0; i < 20000; ++i)
    content += "{\"text\":\"document " + std::to_string(i) + "\"}\n" + (i % 7 ? "" : "\n");
  const auto plain = read_all("jsonl", folder.write("a.jsonl", content));
  EXPECT_EQ(plain.size(), 20000U);
  EXPECT_EQ(read_all("jsonl", folder.write_gzip("a.jsonl.gz", content)), plain);
  EXPECT_EQ(read_all("jsonl", folder.write_zstd("a.jsonl.zst", content)), plain);
}

TEST(JsonLines, a_compressed_file_that_is_cut_off_is_named) {
  const TestFolder folder;
  std::string content;
  for (int i = 0; i < 2000; ++i) content += "{\"text\":\"" + std::to_string(i * 7919) + "\"}\n";
  for (const std::string& path :
       {folder.write_gzip("a.gz", content), folder.write_zstd("a.zst", content)}) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    EXPECT_THAT(error_of([&] { read_all("jsonl", path); }),
                testing::AllOf(HasSubstr(path), HasSubstr("cut off")));
  }
}

TEST(JsonLines, a_stream_can_go_back) {
  const TestFolder folder;
  const auto source = open_documents(
      {"jsonl", folder.write_gzip("a.gz", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n"),
       true, 1},
      {});
  Document document;
  for (const auto& [number, text] : {std::pair{2, "c"}, {0, "a"}, {1, "b"}, {1, "b"}}) {
    ASSERT_TRUE(source->read(number, document));
    EXPECT_EQ(document.text, text);
  }
  EXPECT_FALSE(source->read(3, document));
}

TEST(PlainText, blocks_end_at_blank_lines) {
  const TestFolder folder;
  const std::vector<std::string> expected = {"a\nb", "c", "d"};
  const std::string lf = "\n\na\nb\n\n \t\nc\n\nd";
  EXPECT_EQ(read_all("text", folder.write("lf.txt", lf)), expected);
  EXPECT_EQ(read_all("text", folder.write("crlf.txt", "a\r\nb\r\n\r\nc\r\n\r\nd\r\n")), expected);
  EXPECT_EQ(read_all("text", folder.write("bom.txt",
                                          "\xef\xbb\xbf"
                                          "a\nb\n\nc\n\nd\n")),
            expected);
  EXPECT_EQ(read_all("text", folder.write_gzip("lf.gz", lf)), expected);
  EXPECT_EQ(read_all("text", folder.write_zstd("lf.zst", lf)), expected);
}

TEST(PlainText, whole_files) {
  const TestFolder folder;
  folder.write("2.txt", "c\n");
  folder.write("1.txt", "a\n\nb\n");
  folder.write("notes.log", "not text");
  folder.write(".hidden.txt", "nor this");
  EXPECT_THAT(read_all("text", folder.path(), /*whole_files=*/true), ElementsAre("a\n\nb", "c"));
}

TEST(PlainText, a_bad_byte_inside_a_block_names_its_own_line) {
  const TestFolder folder;
  const std::string path = folder.write("bad.txt", "x\n\na\nb\xff\n");
  EXPECT_THAT(read_all("text", path),
              ElementsAre("x", "<" + path + ":4: invalid UTF-8: byte 0xFF>"));
}

TEST(DatasetPath, folders_and_globs_are_sorted_and_checked) {
  const TestFolder folder;
  folder.write("b.jsonl", "{\"text\":\"b\"}\n");
  folder.write("a.json", "{\"text\":\"a\"}\n");
  folder.write_gzip("c.json.gz", "{\"text\":\"c\"}\n");
  folder.write("readme.txt", "x");
  EXPECT_THAT(read_all("jsonl", folder.path()), ElementsAre("a", "b", "c"));
  EXPECT_THAT(read_all("jsonl", folder.path() + "/[ab].json*"), ElementsAre("a", "b"));
  EXPECT_THAT(error_of([&] { read_all("jsonl", folder.path() + "/*.none"); }),
              HasSubstr("no file matches"));
  EXPECT_THAT(error_of([&] { read_all("jsonl", folder.path() + "/absent"); }),
              HasSubstr("no such file or folder"));
  std::filesystem::create_symlink("a.json", folder.path() + "/z.json");
  EXPECT_THAT(error_of([&] { read_all("jsonl", folder.path()); }),
              HasSubstr("in the list already"));
}

TEST(Datasets, errors_say_what_to_do) {
  const auto error = [](const std::string& name) {
    return error_of([&] { open_documents({name, {}, true, 1}, {}); });
  };
  EXPECT_THAT(error("c5"),
              HasSubstr("Dataset c5 is not supported. Supported datasets are: [debug_text, "
                        "debug_text_validation, c4, c4_test, c4_validation, tokens, jsonl, text, "
                        "random"));
  EXPECT_THAT(error("C4"), HasSubstr("set dataloader.dataset_path to local files of allenai/c4"));
  EXPECT_THAT(error("c4_test"), HasSubstr("Rhea ships no copy"));
  EXPECT_THAT(error("jsonl"), HasSubstr("dataloader.dataset_path must name"));
  const TestFolder folder;
  const SourceOptions empty{"debug_text", folder.path(), true, 1};
  EXPECT_THAT(error_of([&] { open_documents(empty, {}); }),
              HasSubstr("install the Debian packages fortunes and fortunes-min"));
}

TEST(RecordIndex, a_big_file_is_indexed_once_for_all_processes) {
  const TestFolder folder;
  std::string content;
  while (content.size() < RecordIndex::kCachedFrom)
    content += "{\"text\":\"" + std::to_string(content.size()) + "\"}\n";
  const std::string path = folder.write("big.jsonl", content);
  const MappedFile file(path);
  const RecordIndex in_memory(path, file, RecordKind::json_line, {});
  const std::filesystem::path cache = folder.path() + "/index";
  for (int process = 0; process < 2; ++process) {
    const RecordIndex index(path, file, RecordKind::json_line, cache);
    ASSERT_EQ(index.size(), in_memory.size());
    for (size_t i = 0; i < index.size(); i += 1001) {
      ASSERT_EQ(index[i].begin, in_memory[i].begin);
      ASSERT_EQ(index[i].line, i + 1);
    }
  }
  size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    if (entry.path().extension() != ".idx") continue;
    ++num_files;
    // A place beyond the file, as bad memory or disk makes it, is named and never read.
    std::string bytes = read_file(entry.path());
    bytes[bytes.size() - sizeof(RecordPlace) + 13] = 1;  // of its end
    write_file_atomic(entry.path(), bytes);
    const RecordIndex damaged(path, file, RecordKind::json_line, cache);
    EXPECT_EQ(damaged[0].line, 1U);
    EXPECT_THAT(error_of([&] { [[maybe_unused]] const auto& place = damaged[damaged.size() - 1]; }),
                testing::AllOf(HasSubstr(entry.path().string()), HasSubstr("remove it")));
    std::filesystem::resize_file(entry.path(), 100);  // a torn one is made again
  }
  EXPECT_EQ(num_files, 1U);
  EXPECT_EQ(RecordIndex(path, file, RecordKind::json_line, cache).size(), in_memory.size());
}

// Whatever the bytes are, reading gives documents, problems or an Error.
TEST(JsonLines, random_bytes_never_crash) {
  const TestFolder folder;
  std::mt19937 random(7);
  const std::string_view pieces[] = {"{\"text\":", "\"a\"", "}",       "\n",   "\r\n",
                                     "[",          "\\u",   "\\ud800", "\xff", "\xe2\x80\xa8",
                                     "\0",         "{",     ",",       "1e9"};
  for (int round = 0; round < 300; ++round) {
    std::string content;
    const size_t count = random() % 60;
    for (size_t i = 0; i < count; ++i) {
      if (random() % 4 == 0)
        content.push_back(static_cast<char>(random()));
      else
        content += pieces[random() % std::size(pieces)];
    }
    if (round % 5 == 0) content.insert(0, "\x1f\x8b\x08");
    if (round % 7 == 0) content.insert(0, "\x28\xb5\x2f\xfd");
    const std::string path = folder.write("random", content);
    for (const char* dataset : {"jsonl", "text"}) error_of([&] { read_all(dataset, path); });
  }
}

}  // namespace
}  // namespace rhea::data
