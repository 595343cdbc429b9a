// SPDX-License-Identifier: Apache-2.0
#include "event_loop.hpp"

#include <csignal>
#include <new>
#include <utility>

#include <event2/event.h>

namespace vlmest::tool {
namespace {

constexpr timeval now{};

timeval duration(std::chrono::milliseconds t) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  return {.tv_sec = seconds.count(), .tv_usec = (t - seconds).count() * 1000};
}

}  // namespace

void EventLoop::Free::operator()(event_base* b) const { event_base_free(b); }
void EventLoop::Free::operator()(event* e) const { event_free(e); }

EventLoop::EventLoop() : base_(event_base_new()) {
  if (!base_) throw std::bad_alloc();
  event_set_log_callback([](int, const char*) {});  // what matters comes back as an error
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM}) {
    Watched& w = add([](Watched& self) { self.loop->stop(); });
    w.event.reset(evsignal_new(base_.get(), signal, called, &w));
    if (!w.event || evsignal_add(w.event.get(), nullptr) != 0) throw std::bad_alloc();
  }
}

EventLoop::~EventLoop() = default;

EventLoop::Watched& EventLoop::add(std::function<void(Watched&)> what) {
  watched_.push_back(std::make_unique<Watched>());
  Watched& w = *watched_.back();
  w.loop = this;
  w.what = std::move(what);
  return w;
}

void EventLoop::called(int, short, void* watched) {
  auto& w = *static_cast<Watched*>(watched);
  w.loop->guarded([&w] { w.what(w); });
}

void EventLoop::repeat(std::function<std::chrono::milliseconds()> what, std::chrono::milliseconds first) {
  Watched& w = add([what = std::move(what)](Watched& self) {
    const timeval t = duration(what());
    evtimer_add(self.event.get(), &t);
  });
  w.event.reset(evtimer_new(base_.get(), called, &w));
  const timeval t = duration(first);
  if (!w.event || evtimer_add(w.event.get(), &t) != 0) throw std::bad_alloc();
}

void EventLoop::when_readable(int fd, std::function<bool()> what) {
  Watched& w = add([what = std::move(what)](Watched& self) {
    if (what()) event_add(self.event.get(), self.always_ready ? &now : nullptr);
  });
  w.event.reset(event_new(base_.get(), fd, EV_READ, called, &w));
  if (!w.event) throw std::bad_alloc();
  if (event_add(w.event.get(), nullptr) == 0) return;
  // The kernel does not wait for such a file (epoll_ctl(2), EPERM): each turn of the loop reads on.
  w.always_ready = true;
  w.event.reset(evtimer_new(base_.get(), called, &w));
  if (!w.event || evtimer_add(w.event.get(), &now) != 0) throw std::bad_alloc();
}

void EventLoop::run() {
  if (!failed_) event_base_dispatch(base_.get());
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void EventLoop::stop() { event_base_loopbreak(base_.get()); }

void EventLoop::guarded(const std::function<void()>& what) {
  try {
    what();
  } catch (...) {
    failed_ = std::current_exception();
    stop();
  }
}

}  // namespace vlmest::tool
