// Runs a fuzz target without libFuzzer: every file of a corpus, then mutations of them for a given
// time. The random numbers are fixed, so a failure comes again. usage: TARGET_fuzz SECONDS
// CORPUS_FOLDER | TARGET_fuzz FILE
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxBytes = 1 << 16;
// An input of 64 KiB has no right to more; a length taken from the input unchecked runs into this.
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;
constexpr unsigned kMaxSecondsPerInput = 10;

std::string current;  // the input that runs now, for the crash handler

extern "C" void save_crash(int signal_number) {
  const int file = open("fuzz-crash", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    if (write(file, current.data(), current.size()) < 0) _exit(1);
    close(file);
  }
  constexpr std::string_view kMessage =
      "the input was saved as fuzz-crash in the working directory\n";
  if (write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) _exit(1);
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void run(std::string input) {
  current = std::move(input);
  alarm(kMaxSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
  alarm(0);
}

// Small changes that parsers trip over: bits, numbers at the edges, lost and repeated parts, parts
// of another input.
class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string text = pick(corpus_);
    const size_t num_changes = 1 + below(4);
    for (size_t i = 0; i < num_changes; ++i) change(text);
    if (text.size() > kMaxBytes) text.resize(kMaxBytes);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }

  void change(std::string& text) {
    static const std::vector<std::string> kSnippets = {"0",
                                                       "-1",
                                                       "18446744073709551616",
                                                       "9223372036854775807",
                                                       "1e999",
                                                       "nan",
                                                       "\"",
                                                       "\\",
                                                       "\\u0000",
                                                       "\\ud800",
                                                       "{",
                                                       "}",
                                                       "[",
                                                       "]",
                                                       ",",
                                                       ":",
                                                       "null",
                                                       "true",
                                                       "\xff",
                                                       std::string(1, '\0'),
                                                       "\xe2\x82",
                                                       std::string(64, '[')};
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(text.size() - at, 1 + below(16));
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, pick(kSnippets));
        break;
      case 5: {
        const std::string& other = pick(corpus_);
        const size_t from = below(other.size() + 1);
        text.insert(at, other.substr(from, 1 + below(64)));
        break;
      }
      default:
        text.resize(at);
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_{1};
};

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int fuzz(double seconds, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(read(path));
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no file to start from\n", folder.c_str());
    return 2;
  }
  for (const std::string& input : corpus) run(input);
  Mutator mutator(corpus);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int64_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) run(mutator.next());
  std::printf("%zu saved inputs, %lld mutations\n", corpus.size(), static_cast<long long>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM})
    std::signal(number, save_crash);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these reserve terabytes of address space
  const rlimit limit{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
  if (argc == 2) {
    run(read(argv[1]));
    return 0;
  }
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SECONDS CORPUS_FOLDER | %s FILE\n", argv[0], argv[0]);
    return 2;
  }
  return fuzz(std::atof(argv[1]), argv[2]);
}
