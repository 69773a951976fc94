// model.safetensors.index.json: which shard holds which tensor.
#include <nlohmann/json.hpp>

#include "rhea/base/downloaded.h"
#include "rhea/base/error.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::safetensors {
namespace {

using Json = nlohmann::json;

// Collects {"weight_map": {name: file}} and skips everything else in the file.
class IndexHandler : public nlohmann::json_sax<Json> {
 public:
  explicit IndexHandler(std::string where) : where_(std::move(where)) {}
  std::map<std::string, std::string> weight_map;
  bool found = false;

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return scalar("a number"); }
  bool binary(binary_t&) override { return scalar("binary data"); }
  bool string(string_t& file) override {
    if (!inside()) return true;
    // The index may come from anywhere: it must not reach outside its folder.
    if (file.empty() || file.find('/') != std::string::npos || file == "." || file == "..")
      throw Error("{}: '{}' of tensor '{}' is not a plain file name", where_, file, key_);
    if (!weight_map.emplace(key_, file).second)
      throw Error("{}: duplicate name '{}' in weight_map", where_, key_);
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool start_object(size_t) override {
    if (inside()) scalar("an object");
    if (depth_ == 1 && key_ == "weight_map") found = in_map_ = true;
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (inside()) scalar("a list");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error("{}: not valid JSON at byte {}", where_, position);
  }

 private:
  bool inside() const { return in_map_ && depth_ == 2; }
  bool scalar(const char* found_value) const {
    if (inside())
      throw Error("{}: tensor '{}' maps to {}, not to a file name", where_, key_, found_value);
    return true;
  }

  std::string where_;
  std::string key_;
  int depth_ = 0;
  bool in_map_ = false;
};

}  // namespace

std::map<std::string, std::string> read_index(const std::filesystem::path& index) {
  const MappedFile file(index);
  IndexHandler handler(index.string());
  const std::string_view text = file.text();
  check_downloaded(text, index.string());
  Json::sax_parse(text.begin(), text.end(), &handler);
  if (!handler.found) throw Error("{}: has no weight_map", index.string());
  return std::move(handler.weight_map);
}

}  // namespace rhea::safetensors
