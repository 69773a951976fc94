// Signals of a child process, and durations.
#include "rhea/components/signals/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "rhea/base/error.h"

namespace rhea::signals {
namespace {

using std::chrono::seconds;

int status_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(StopSignals, TheFirstSignalIsRememberedAndMoreChangeNothing) {
  const int status = status_of_child([] {
    const StopSignals handlers;
    StopRequest request;
    if (request.poll() != StopRequest::Cause::none) return 1;
    ::raise(SIGUSR1);
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    ::raise(SIGINT);
    if (received() != SIGUSR1 || signal_name(received()) != "SIGUSR1") return 2;
    return request.poll() == StopRequest::Cause::signal ? 0 : 3;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, TheSecondInterruptStopsAtOnce) {
  const int status = status_of_child([] {
    const StopSignals handlers;
    ::raise(SIGINT);
    ::raise(SIGINT);
    return 1;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(StopSignals, HandlersArePutBack) {
  const int status = status_of_child([] {
    { const StopSignals handlers; }
    ::raise(SIGTERM);
    return 1;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(WallTime, Parses) {
  EXPECT_EQ(parse_wall_time(""), std::nullopt);
  EXPECT_EQ(parse_wall_time("3h30m"), seconds(12600));
  EXPECT_EQ(parse_wall_time("900s"), seconds(900));
  EXPECT_EQ(parse_wall_time("1d2h3m4s"), seconds(93784));
  for (const char* bad :
       {"900", "h", "30m3h", "1h1h", "3 h", "-5s", "0s", "1w", "99999999999999999999s", "1.5h"})
    EXPECT_THROW(parse_wall_time(bad), Error) << bad;
}

TEST(WallTime, EndsTheRunWhenItIsOver) {
  const auto now = StopRequest::Clock::now();
  StopRequest waiting(seconds(3600), now);
  EXPECT_EQ(waiting.poll(), StopRequest::Cause::none);
  StopRequest over(seconds(3600), now - seconds(3601));
  EXPECT_EQ(over.poll(), StopRequest::Cause::wall_time);
}

}  // namespace
}  // namespace rhea::signals
