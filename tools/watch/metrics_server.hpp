// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "event_loop.hpp"

namespace vlmest::tool {

/// Answers GET /metrics with what `text` returns, in Prometheus' text format 0.0.4, to processes of this machine alone:
/// it listens on 127.0.0.1. Runs in `loop`, which has to outlive it and is not run again when it has gone.
class MetricsServer {
 public:
  /// Port 0 takes any that is free. Throws Error where the port cannot be had.
  MetricsServer(EventLoop& loop, std::uint16_t port, std::function<std::string()> text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vlmest::tool
