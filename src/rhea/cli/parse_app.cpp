// CLI11's exceptions become ours.
#include "rhea/cli/parse_app.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "rhea/base/error.h"

namespace rhea::cli {
namespace {

template <class T>
CLI::Validator in_range(T low, T high, const char* kind) {
  const std::string range = fmt::format("{} to {}", low, high);
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        T value{};
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && value >= low && value <= high) return "";
        return fmt::format("'{}' is no {} from {}", text, kind, range);
      },
      range);
}

}  // namespace

CLI::Validator integer_in(int64_t low, int64_t high) { return in_range(low, high, "integer"); }
CLI::Validator number_in(double low, double high) { return in_range(low, high, "number"); }

void add_dataset_options(CLI::App& app, std::string& dataset, std::optional<std::string>& path,
                         std::string& text_field) {
  app.add_option("--dataset", dataset, "data set")->capture_default_str();
  app.add_option("--dataset_path,--dataset-path", path, "file, folder or glob of the data set");
  app.add_option("--text_field,--text-field", text_field, "column of the text")
      ->capture_default_str();
}

void add_threads_option(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "worker threads, 0 = all cores")
      ->check(integer_in(0, 1024))
      ->capture_default_str();
}

std::optional<int> parse(CLI::App& app, Args args) {
  std::vector<std::string> words(args.rbegin(), args.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw Error("{}: {}; see `{} --help`", app.get_name(), error.what(), app.get_name());
  }
  return {};
}

}  // namespace rhea::cli
