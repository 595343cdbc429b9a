// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

struct event;
struct event_base;

namespace vlmest::tool {

/// Waits for what comes next: a point in time, input, a request, a signal. One thread, and it sleeps in between.
/// Everything that is called may throw: run() ends then, and throws it on.
class EventLoop {
 public:
  /// From here on SIGINT and SIGTERM end run() instead of the process, and a closed pipe is an error of write().
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `what` after `first`, and then again and again, each time after as long as it asks for.
  void repeat(std::function<std::chrono::milliseconds()> what, std::chrono::milliseconds first = {});
  /// Calls `what` whenever `fd` has bytes to read or has ended, until it returns false. What never blocks, such as a
  /// regular file, always has.
  void when_readable(int fd, std::function<bool()> what);

  /// Returns after stop(), or when a signal asks to end.
  void run();
  void stop();
  /// Runs `what` for the loop: an exception does not pass through libevent's C, it ends the loop.
  void guarded(const std::function<void()>& what);

  event_base* base() const { return base_.get(); }

 private:
  struct Free {
    void operator()(event_base* b) const;
    void operator()(event* e) const;
  };
  using Event = std::unique_ptr<event, Free>;
  struct Watched {
    EventLoop* loop = nullptr;
    std::function<void(Watched&)> what;
    Event event;
    bool always_ready = false;
  };
  Watched& add(std::function<void(Watched&)> what);
  static void called(int fd, short events, void* watched);

  std::unique_ptr<event_base, Free> base_;
  std::vector<std::unique_ptr<Watched>> watched_;
  std::exception_ptr failed_;
};

}  // namespace vlmest::tool
