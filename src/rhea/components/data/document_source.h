// Numbered documents of a data set, before they are tokenised.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rhea::data {

// One text of a data set.
struct Document {
  std::string text;     // UTF-8
  std::string problem;  // not empty: a bad row, "file:line: reason"
};

// Documents by number, from 0.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;
  // Number of documents where it is known without reading all of them; otherwise the source is a
  // stream: read() is cheap only for growing numbers.
  virtual std::optional<int64_t> num_documents() const = 0;
  // Document `number`; false past the end of a stream.
  virtual bool read(int64_t number, Document& document) = 0;
  // Where the documents are, for messages and the log.
  virtual std::string description() const = 0;
};

}  // namespace rhea::data
