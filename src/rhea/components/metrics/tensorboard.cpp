// TFRecord: u64 length, masked CRC of it, data, masked CRC of the data; CRC-32C (Castagnoli).
#include "rhea/components/metrics/tensorboard.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <ctime>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_file.h"

namespace rhea::metrics {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0);
    table[i] = value;
  }
  return table;
}

// The mask keeps a CRC that is stored inside checked data from looking like the CRC of it.
uint32_t masked_crc(std::string_view data) {
  static constexpr auto kTable = crc_table();
  uint32_t crc = ~0U;
  for (const char byte : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  crc = ~crc;
  return std::rotr(crc, 15) + 0xa282ead8U;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T take(std::string_view& in) {
  if (in.size() < sizeof(T)) throw Error("a record ends too early");
  T value;
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}
static_assert(std::endian::native == std::endian::little, "event files are little-endian");

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
uint64_t take_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = take<uint8_t>(in);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  throw Error("a number is longer than 64 bits");
}

// Wire types of protobuf.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void put_key(std::string& out, uint32_t field, Wire wire) { put_varint(out, field << 3 | wire); }
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

// Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary summary}
std::string event(double unix_time, int64_t step) {
  std::string out;
  put_key(out, 1, kFixed64);
  put(out, unix_time);
  if (step != 0) {  // protobuf leaves zeros out
    put_key(out, 2, kVarint);
    put_varint(out, static_cast<uint64_t>(step));
  }
  return out;
}

// Calls f(field, wire, bytes or number) for each field of a message.
template <class F>
void for_each_field(std::string_view message, const F& f) {
  while (!message.empty()) {
    const uint64_t key = take_varint(message);
    const auto field = static_cast<uint32_t>(key >> 3);
    std::string_view bytes;
    uint64_t number = 0;
    switch (key & 7) {
      case kVarint:
        number = take_varint(message);
        break;
      case kFixed64:
        number = take<uint64_t>(message);
        break;
      case kFixed32:
        number = take<uint32_t>(message);
        break;
      case kBytes: {
        const uint64_t size = take_varint(message);
        if (size > message.size()) throw Error("a field ends too late");
        bytes = message.substr(0, size);
        message.remove_prefix(size);
        break;
      }
      default:
        throw Error("unknown wire type {}", key & 7);
    }
    f(field, bytes, number);
  }
}

void read_event(std::string_view message, std::vector<ScalarEvent>& out) {
  ScalarEvent base;
  std::string_view summary;
  for_each_field(message, [&](uint32_t field, std::string_view bytes, uint64_t number) {
    if (field == 1) base.unix_time = std::bit_cast<double>(number);
    if (field == 2) base.step = static_cast<int64_t>(number);
    if (field == 5) summary = bytes;
  });
  for_each_field(summary, [&](uint32_t field, std::string_view value, uint64_t) {
    if (field != 1) return;
    ScalarEvent scalar = base;
    for_each_field(value, [&](uint32_t inner, std::string_view bytes, uint64_t number) {
      if (inner == 1) scalar.tag = bytes;
      if (inner == 2) scalar.value = std::bit_cast<float>(static_cast<uint32_t>(number));
    });
    out.push_back(std::move(scalar));
  });
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

std::filesystem::path tensorboard_folder(const std::filesystem::path& dump_folder,
                                         const std::string& save_tb_folder, int64_t unix_seconds,
                                         std::optional<int> rank) {
  const std::time_t seconds = static_cast<std::time_t>(unix_seconds);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M", &local);
  std::filesystem::path folder = dump_folder / save_tb_folder / stamp.data();
  if (rank) folder /= fmt::format("rank_{}", *rank);
  return folder;
}

EventWriter::EventWriter(const std::filesystem::path& folder, double unix_time) {
  // Two writers of one process in the same second must not share a file.
  static std::atomic<int> count = 0;
  std::filesystem::create_directories(folder);
  path_ = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                               static_cast<int64_t>(unix_time), host_name(), ::getpid(), count++);
  file_ = std::fopen(path_.c_str(), "wbe");
  if (file_ == nullptr) throw_file_error(path_, "create");
  std::string version = event(unix_time, 0);
  put_bytes(version, 3, "brain.Event:2");
  record(version);
}

EventWriter::~EventWriter() { std::fclose(file_); }

void EventWriter::record(std::string_view message) {
  std::string frame;
  put(frame, static_cast<uint64_t>(message.size()));
  put(frame, masked_crc(frame));
  frame.append(message);
  put(frame, masked_crc(message));
  if (std::fwrite(frame.data(), 1, frame.size(), file_) != frame.size())
    throw_file_error(path_, "write");
}

void EventWriter::scalar(std::string_view tag, double value, int64_t step, double unix_time) {
  // Summary {1: Value {1: string tag, 2: float simple_value}}
  std::string inner;
  put_bytes(inner, 1, tag);
  put_key(inner, 2, kFixed32);
  put(inner, static_cast<float>(value));
  std::string summary;
  put_bytes(summary, 1, inner);
  std::string message = event(unix_time, step);
  put_bytes(message, 5, summary);
  record(message);
}

void EventWriter::flush() {
  if (std::fflush(file_) != 0) throw_file_error(path_, "write");
}

std::vector<ScalarEvent> read_events(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view rest = file.text();
  std::vector<ScalarEvent> events;
  while (rest.size() >= 12) {
    const size_t offset = file.text().size() - rest.size();
    const std::string_view head = rest.substr(0, 8);
    const auto length = take<uint64_t>(rest);
    if (take<uint32_t>(rest) != masked_crc(head))
      throw Error("{}: damaged record at byte {}", path.string(), offset);
    if (rest.size() < 4 || length > rest.size() - 4)
      break;  // a killed writer leaves a torn last record
    std::string_view message = rest.substr(0, length);
    rest.remove_prefix(length);
    if (take<uint32_t>(rest) != masked_crc(message))
      throw Error("{}: damaged record at byte {}", path.string(), offset);
    try {
      read_event(message, events);
    } catch (const Error& error) {
      throw Error("{}: record at byte {}: {}", path.string(), offset, error.what());
    }
  }
  return events;
}

}  // namespace rhea::metrics
