// An entry is looked up, compiled and put in place; cache_files.h has the layout of the folder.
#include "rhea/plugin/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/sha256.h"
#include "rhea/plugin/cache_files.h"
#include "rhea/plugin/run_program.h"
#include "rhea/plugin/stamp.h"

namespace rhea::plugin {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// One source under one build and one set of flags.
struct Key {
  fs::path source;
  Toolchain toolchain;
  std::string name;

  fs::path file(std::string_view suffix) const {
    return plugins_folder() / (name + std::string(suffix));
  }
};

Key make_key(const fs::path& source) {
  Key key{source, find_toolchain(source), {}};
  // The path is part of it: relative includes and the lines that errors name depend on it.
  const std::string hash =
      tokenizer::sha256_hex(fmt::format("{}\n{}\n{}\n{}", source.string(), file_hash(source),
                                        key.toolchain.identity, RHEA_PLUGIN_STAMP));
  key.name = fmt::format("{}-{}", source.stem().string(), hash.substr(0, 16));
  return key;
}

// The library of a whole entry whose source and headers still have the content that was compiled.
std::optional<fs::path> find_entry(const Key& key) {
  const auto record = read_record(key.file(".record"));
  if (!record) return std::nullopt;
  const fs::path library = plugins_folder() / record->library;
  if (file_hash(library) != record->library_hash) return std::nullopt;
  for (const CacheRecord::File& file : record->files)
    if (file_hash(file.path) != file.hash) return std::nullopt;
  return library;
}

// Held while compiling. The system lets go of it when the process ends, however that happens; the
// compiler does not inherit it.
class Lock {
 public:
  explicit Lock(const Key& key) {
    const fs::path file = key.file(".lock");
    fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0)
      throw Error(
          "the cache of compiled plugins cannot be used: {}: {}; set RHEA_CACHE_DIR to a "
          "folder that can be written",
          file.string(), std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    log::info("plugin", "Waiting for another process that compiles {}", key.source.string());
    waited_ = true;
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool waited() const { return waited_; }

 private:
  int fd_ = -1;
  bool waited_ = false;
};

// Where a compiler writes, gone at the end. The names of one key begin alike.
class Workshop {
 public:
  explicit Workshop(const Key& key) {
    // Whoever holds the lock is alone: other workshops of this key belong to processes that died.
    // Their compilers may still be writing, which is why the new one has a name of its own.
    const std::string prefix = key.name + ".tmp.";
    for (const fs::directory_entry& found : fs::directory_iterator(plugins_folder()))
      if (found.path().filename().string().starts_with(prefix)) remove(found.path());
    std::string name = (plugins_folder() / (prefix + std::string(6, 'X'))).string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error("cannot create a folder in {}: {}", plugins_folder().string(),
                  std::strerror(errno));
    folder_ = name;
  }
  ~Workshop() { remove(folder_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  fs::path file(const char* name) const { return folder_ / name; }

 private:
  static void remove(const fs::path& folder) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  fs::path folder_;
};

[[noreturn]] void throw_refused(const Key& key, std::string_view messages) {
  std::fflush(stdout);
  std::fwrite(messages.data(), 1, messages.size(), stderr);
  throw Error(
      "{} does not compile: the messages above are those of {}; correct the file and start again",
      key.source.string(), key.toolchain.compiler.string());
}

// Throws where the compiler is of another kind than the one that built Rhea: a plugin of it would
// not be loaded, and what it says of our headers and flags is no fault of the source.
void throw_other_kind(const Key& key, std::string_view messages) {
  const std::string kind = compiler_kind(key.toolchain.compiler);
  if (kind.empty() || kind == RHEA_STAMP_COMPILER) return;
  std::fwrite(messages.data(), 1, messages.size(), stderr);
  throw Error(
      "{} was not compiled: {} is {}, Rhea was built by {}, and a plugin has to be, too; unset "
      "RHEA_CXX or set it to such a compiler",
      key.source.string(), key.toolchain.compiler.string(), kind, RHEA_STAMP_COMPILER);
}

// Throws where a disk that the compiler writes to is full: no fault of the source.
void throw_full_disk(const Key& key, std::string_view messages) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  const auto is_full = [&](const fs::path& folder) {
    constexpr std::uintmax_t kLeast = 64 << 10;
    const auto space = fs::space(folder, error);
    return !error && space.available < kLeast;
  };
  const bool said = messages.find(std::strerror(ENOSPC)) != std::string_view::npos;
  const bool cache_full = is_full(plugins_folder()), temporary_full = is_full(temporary);
  if (!said && !cache_full && !temporary_full) return;
  const std::string folders =
      cache_full == temporary_full
          ? fmt::format("{} or of {}", plugins_folder().string(), temporary.string())
          : (cache_full ? plugins_folder() : temporary).string();
  throw ExitError(
      ExitCode::out_of_memory,
      fmt::format(
          "{}: the disk of {} is full, so the compiler could not write; free some space, or "
          "set RHEA_CACHE_DIR and TMPDIR to folders of another disk",
          key.source.string(), folders));
}

// When the file's content or name changed last, by the clock of its file system. Not the time of
// writing, which whoever copies a file may set to that of the original.
timespec changed_at(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {std::numeric_limits<time_t>::max(), 0};
  return status.st_ctim;
}

bool is_after(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// Runs the compiler in `workshop`; the source and the user's headers that it read.
std::vector<fs::path> run_compiler(const Key& key, const Workshop& workshop) {
  const fs::path dependencies = workshop.file("plugin.d");
  std::vector<std::string> words = {key.toolchain.compiler.string()};
  words.push_back(key.source.string());
  words.insert(words.end(), key.toolchain.flags.begin(), key.toolchain.flags.end());
  for (const char* word : {"-shared", "-MMD", "-MF"}) words.emplace_back(word);
  words.insert(words.end(), {dependencies.string(), "-o", workshop.file("plugin.so").string()});
  const ProgramResult result = run_program(words, Lifetime::ours);
  // Nothing of the source's making: the next start may well succeed.
  if (result.status > 128)
    throw Error("{}: the compiler {} was ended by signal {}{}; start again", key.source.string(),
                key.toolchain.compiler.string(), result.status - 128,
                result.status == 128 + SIGKILL ? ", as the system does when memory runs out" : "");
  const bool made = fs::exists(workshop.file("plugin.so")) && fs::exists(dependencies);
  if (result.status != 0 || !made) {
    throw_full_disk(key, result.output);
    if (result.output.empty() || result.status == 0)
      throw Error(
          "{}: the compiler {} ended with exit code {}, {}; is it a C++ compiler? (RHEA_CXX)",
          key.source.string(), key.toolchain.compiler.string(), result.status,
          result.status == 0 ? "but made no library" : "and said nothing");
    throw_other_kind(key, result.output);
    write_file_atomic(key.file(".failed"), result.output);
    throw_refused(key, result.output);
  }
  std::fwrite(result.output.data(), 1, result.output.size(), stderr);  // its warnings
  return parse_dependencies(read_file(dependencies));
}

fs::path compile(const Key& key) {
  log::info("plugin", "Compiling {} with {}", key.source.string(), key.toolchain.compiler.string());
  const auto start = Clock::now();
  const Workshop workshop(key);
  CacheRecord record{key.source, {}, {}, {}};
  // An editor may save in the middle of it: once more then, and never for ever.
  bool stayed = false;
  for (int tries = 0; !stayed && tries < 2; ++tries) {
    write_file_atomic(workshop.file("began"), "");
    const timespec began = changed_at(workshop.file("began"));
    const auto files = run_compiler(key, workshop);
    record.files.clear();
    for (const fs::path& file : files)
      record.files.push_back({fs::absolute(file), file_hash(file)});
    stayed = std::ranges::none_of(
        files, [&](const fs::path& file) { return is_after(changed_at(file), began); });
  }

  record.library_hash = file_hash(workshop.file("plugin.so"));
  record.library = fmt::format("{}-{}.so", key.name, record.library_hash.substr(0, 16));
  const fs::path library = plugins_folder() / record.library;
  fs::rename(workshop.file("plugin.so"), library);
  // Which content was compiled is not known where it kept changing: the next start compiles.
  if (stayed) write_file_atomic(key.file(".record"), record.text());
  trim_cache();
  log::info("plugin", "Compiled {} in {:.1f} s, cached in {}", key.source.string(),
            std::chrono::duration<double>(Clock::now() - start).count(), plugins_folder().string());
  return library;
}

}  // namespace

fs::path cache_folder() {
  if (const std::string own = environment("RHEA_CACHE_DIR"); !own.empty()) return own;
  if (const std::string base = environment("XDG_CACHE_HOME"); !base.empty())
    return fs::path(base) / "rhea";
  if (const std::string home = environment("HOME"); !home.empty())
    return fs::path(home) / ".cache/rhea";
  throw Error(
      "there is no folder for compiled plugins: set RHEA_CACHE_DIR, XDG_CACHE_HOME or HOME");
}

fs::path compiled(const fs::path& source) {
  const Key key = make_key(source);
  if (const auto library = find_entry(key)) {
    std::error_code ignored;  // a cache that cannot be written is as good
    fs::last_write_time(key.file(".record"), fs::file_time_type::clock::now(), ignored);
    return *library;
  }
  std::error_code error;  // Lock says what is wrong with the folder
  fs::create_directories(plugins_folder(), error);
  const auto asked = fs::file_time_type::clock::now();
  const Lock lock(key);
  if (lock.waited()) {
    if (const auto library = find_entry(key)) return *library;
    const auto refused = fs::last_write_time(key.file(".failed"), error);
    if (!error && refused >= asked) throw_refused(key, read_file(key.file(".failed")));
  }
  return compile(key);
}

}  // namespace rhea::plugin
