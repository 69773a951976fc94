// Handlers do nothing but store numbers; everything else happens at a step boundary.
#include "rhea/components/signals/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "rhea/base/error.h"

namespace rhea::signals {
namespace {

constexpr std::array kHandled = {SIGTERM, SIGUSR1, SIGINT};
constexpr std::array kIgnored = {SIGXFSZ, SIGPIPE};

// A handler has no other way to reach its program.
std::atomic<int> first_signal = 0;
std::atomic<int> num_interrupts = 0;
std::atomic<bool> installed = false;
static_assert(std::atomic<int>::is_always_lock_free);

std::array<struct sigaction, kHandled.size() + kIgnored.size()> previous;

void handle(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (signal == SIGINT && num_interrupts.fetch_add(1) == 1) {
    constexpr char kText[] = "\nInterrupted twice, stopping at once.\n";
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(static_cast<int>(ExitCode::interrupted));
  }
}

}  // namespace

StopSignals::StopSignals() {
  RHEA_CHECK(!installed.exchange(true), "a second StopSignals in one process");
  first_signal = 0;
  num_interrupts = 0;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a signal must not tear a write that is under way
  size_t i = 0;
  action.sa_handler = handle;
  for (const int signal : kHandled) ::sigaction(signal, &action, &previous[i++]);
  action.sa_handler = SIG_IGN;
  for (const int signal : kIgnored) ::sigaction(signal, &action, &previous[i++]);
}

StopSignals::~StopSignals() {
  // Once a stop was asked for, the process is on its way out: a further signal must not turn its
  // saved end into a death by signal.
  const bool stopping = received() != 0;
  struct sigaction ignore {};
  sigemptyset(&ignore.sa_mask);
  ignore.sa_handler = SIG_IGN;
  size_t i = 0;
  for (const int signal : kHandled) {
    ::sigaction(signal, stopping ? &ignore : &previous[i], nullptr);
    ++i;
  }
  for (const int signal : kIgnored) ::sigaction(signal, &previous[i++], nullptr);
  installed = false;
}

int received() { return first_signal.load(std::memory_order_relaxed); }

std::string_view signal_name(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGINT:
      return "SIGINT";
    default:
      return "no signal";
  }
}

StopRequest::StopRequest(std::optional<std::chrono::seconds> max_wall_time,
                         Clock::time_point start) {
  if (max_wall_time) deadline_ = start + *max_wall_time;
}

StopRequest::Cause StopRequest::poll() {
  if (cause_ != Cause::none) return cause_;
  if (received() != 0)
    cause_ = Cause::signal;
  else if (deadline_ && Clock::now() >= *deadline_)
    cause_ = Cause::wall_time;
  return cause_;
}

}  // namespace rhea::signals
