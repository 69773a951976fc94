// Rows made of documents: reads, tokenises (side by side when asked) and packs.
#pragma once
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <variant>

#include "rhea/base/thread_pool.h"
#include "rhea/components/data/document_stream.h"
#include "rhea/components/data/packer.h"

namespace rhea::data {

class PackedRows : public RowSource {
 public:
  PackedRows(DocumentStream documents, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
             const DataLoaderOptions& options);

  bool next_row(const RowView& row) override;
  Snapshot snapshot() const override;
  void restore(std::span<const nlohmann::json> ranks) override;
  DataStats stats() const override { return stats_; }
  std::string description() const override { return documents_.description(); }

 private:
  // A document that was read ahead, and where the stream stood after it. A failure keeps its place
  // in the order.
  struct Encoded {
    std::string text;
    Tokens tokens;
    DocumentStream::Cursor cursor;
    int64_t num_empty = 0;
    int64_t num_bad_rows = 0;
    std::exception_ptr failure;
  };
  bool next_document(Tokens& tokens);
  void read_ahead();
  void encode(Encoded& document) const;

  DocumentStream documents_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  tokenizer::EncodeOptions encode_options_;
  size_t dp_rank_, dp_size_;
  std::optional<ThreadPool> pool_;
  std::variant<ConcatPacker, BinPacker> packer_;
  std::deque<Encoded> ahead_;
  DocumentStream::Cursor cursor_;  // after the last document that the packer has
  DataStats stats_;
};

}  // namespace rhea::data
