#include "rhea/config/json.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "rhea/config/leaf_text.h"
#include "rhea/config/visitor.h"

namespace rhea::config {
namespace {

// Bytes of the UTF-8 sequence that starts at `text`, 0 where there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t n) {
    if (text.size() < n) return false;
    for (size_t i = 1; i < n; ++i)
      if ((byte(i) & 0xC0U) != 0x80U) return false;
    return true;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF && follows(2)) return 2;
  if ((first & 0xF0U) == 0xE0U && follows(3)) {
    // Neither overlong nor a surrogate.
    if (!(first == 0xE0 && byte(1) < 0xA0) && !(first == 0xED && byte(1) >= 0xA0)) return 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && follows(4)) {
    if (!(first == 0xF0 && byte(1) < 0x90) && !(first == 0xF4 && byte(1) >= 0x90)) return 4;
  }
  return 0;
}

std::string json_of(bool value) { return value ? "true" : "false"; }
std::string json_of(int64_t value) { return std::to_string(value); }
// JSON has no NaN and no infinity: they are written as the words that validation refuses.
std::string json_of(double value) {
  if (!std::isfinite(value)) return json_string(double_text(value));
  const std::string text = double_text(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string json_of(const std::string& value) { return json_string(value); }
template <class T>
std::string json_of(const std::vector<T>& value) {
  std::string out = "[";
  for (size_t i = 0; i < value.size(); ++i) out += (i > 0 ? ", " : "") + json_of(value[i]);
  return out + "]";
}
template <class T>
std::string json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : "null";
}

class JsonWriter final : public Visitor {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}
  std::string take() { return std::move(out_); }

  void object(Config& config, const std::string& type) {
    open('{');
    if (!type.empty()) {
      key("_type");
      out_ += json_string(type);
    }
    config.fields(*this);
    close('}');
  }

  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

 private:
  void leaf(const FieldInfo& info, Leaf value) override {
    key(info.name);
    out_ += std::visit([](const auto* v) { return json_of(*v); }, value);
  }
  void section(const FieldInfo& info, Config& config) override {
    key(info.name);
    object(config, "");
  }
  void slot(const FieldInfo& info, SlotBase& slot) override {
    key(info.name);
    held(slot);
  }
  void list(const FieldInfo& info, ConfigList& list) override {
    key(info.name);
    open('[');
    for (size_t i = 0; i < list.size(); ++i) {
      separate();
      if (SlotBase* slot = list.slot(i))
        held(*slot);
      else
        object(list.at(i), "");
    }
    close(']');
  }

  void held(SlotBase& slot) {
    if (slot)
      object(*slot.get(), type_name(*slot.get()));
    else
      out_ += "null";
  }
  void key(std::string_view name) {
    separate();
    out_ += json_string(name);
    out_ += ": ";
  }
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) new_line();
    out_ += bracket;
    first_ = false;
  }
  void separate() {
    if (!first_) out_ += indent_ < 0 ? ", " : ",";
    first_ = false;
    new_line();
  }
  void new_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(depth_ * indent_), ' ');
  }

  std::string out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const size_t length = utf8_length(text);
    if (length == 0)
      out += "\\ufffd";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::string to_json(const Config& config, int indent) {
  JsonWriter writer(indent);
  // fields() is not const because other visitors write; this one only reads.
  writer.object(const_cast<Config&>(config), "");
  return writer.take();
}

void save_json(const Config& config, const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    throw Error("cannot make the folder {} for the config: {}", folder.string(), error.message());
  std::ofstream file(path);
  file << to_json(config) << '\n';
  file.close();
  if (!file) throw Error("cannot write the config to {}", path);
}

}  // namespace rhea::config
