// Signals of a child process, and the wall time.
#include "rhea/components/signals/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

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

TEST(WallTime, EndsTheRunWhenItIsOver) {
  const auto now = StopRequest::Clock::now();
  StopRequest waiting(seconds(3600), now);
  EXPECT_EQ(waiting.poll(), StopRequest::Cause::none);
  StopRequest over(seconds(3600), now - seconds(3601));
  EXPECT_EQ(over.poll(), StopRequest::Cause::wall_time);
}

}  // namespace
}  // namespace rhea::signals
