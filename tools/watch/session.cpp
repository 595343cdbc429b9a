// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include <vlmest/unit/error.hpp>

#include "event_loop.hpp"
#include "follow.hpp"
#include "lines.hpp"
#include "log_readings.hpp"
#include "metrics_server.hpp"
#include "nvml.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

/// Where updates are written.
class Updates {
 public:
  explicit Updates(const WatchOptions& o) : file_(o.output), replaces_(o.format == WatchFormat::prometheus) {
    if (!file_.empty() && !replaces_) {
      out_.open(file_, std::ios::binary);
      check(out_.good());
    }
  }

  /// False: nobody reads standard output any more.
  bool write(const std::string& text) {
    if (file_.empty()) {
      if (put(text)) return true;
      const std::error_code why(errno, std::generic_category());
      if (why.value() != EPIPE) throw WriteError("standard output", "cannot be written: " + why.message());
      return false;
    }
    if (replaces_)
      replace(text);
    else
      check(static_cast<bool>(out_ << text << std::flush));
    return true;
  }

 private:
  void check(bool good) const {
    if (!good) throw Error("--output", "cannot write " + file_, "check the folder and its permissions");
  }
  /// At no time is there half a file: a collector reads it when it likes.
  void replace(const std::string& text) const {
    const std::string next = file_ + ".next";
    std::ofstream out(next, std::ios::binary);
    check(static_cast<bool>(out << text << std::flush));
    std::error_code failed;
    std::filesystem::rename(next, file_, failed);
    check(!failed);
  }

  std::string file_;
  bool replaces_;
  std::ofstream out_;
};

class Session {
 public:
  explicit Session(const WatchOptions& o) : options_(o), monitor_(o.expected), updates_(o) {}

  void run() {
    if (options_.file.empty())
      watch_driver();
    else if (options_.once)
      read_to_the_end();
    else if (is_stream(options_.file))
      watch_stream();
    else
      watch_file();
  }

 private:
  void watch_driver() {
    source_ = {.name = "nvml", .whole_device = true};
    const Nvml nvml;
    const auto ask = [&] {
      for (const NvmlReading& r : nvml.read())
        monitor_.add({.gpu = std::to_string(r.index),
                      .step = {},
                      .used = r.used,
                      .reserved = {},
                      .total = r.total,
                      .utilization = r.utilization});
    };
    if (options_.once) {
      ask();
      report();
      return;
    }
    EventLoop loop;
    const auto server = serve(loop);
    loop.repeat([&] {
      ask();
      if (!report()) loop.stop();
      return options_.interval;
    });
    loop.run();
  }

  void read_to_the_end() {
    read_lines(options_.file, [this](std::string_view line) { take(line); });
    end();
  }

  void watch_stream() {
    EventLoop loop;
    const auto server = serve(loop);
    const int fd = open_stream(options_.file);
    LineSplitter lines;
    loop.when_readable(fd, [&] {
      const bool more = read_some(fd, where(), lines, [this](std::string_view line) { take(line); });
      if (!more) {
        end();
        loop.stop();
      }
      return more;
    });
    const auto update = [&] {
      if (!report()) loop.stop();
      return options_.interval;
    };
    loop.repeat(update, options_.interval);
    loop.run();
    if (fd != STDIN_FILENO) ::close(fd);
  }

  void watch_file() {
    EventLoop loop;
    const auto server = serve(loop);
    FollowedFile file(options_.file);
    const FollowSinks sinks{.line = [this](std::string_view line) { take(line); },
                            .restarted = [this] { readings_.restart(); },
                            .noticed = [](const std::string& what) { say("note: " + what); }};
    loop.repeat([&] {
      if (file.read(sinks)) return std::chrono::milliseconds(0);
      if (!report()) loop.stop();
      return options_.interval;
    });
    loop.run();
  }

  std::unique_ptr<MetricsServer> serve(EventLoop& loop) {
    if (!options_.port) return nullptr;
    auto server = std::make_unique<MetricsServer>(loop, *options_.port, [this] { return metrics(); });
    say(fmt::format("note: serving http://127.0.0.1:{}/metrics", server->port()));
    return server;
  }

  std::string where() const { return options_.file == "-" ? "standard input" : options_.file; }

  void take(std::string_view line) {
    const LogContent before = readings_.content();
    for (const diagnose::MemoryReading& r : readings_.read(line)) monitor_.add(r);
    source_ = readings_.source();
    if (readings_.content() == before) return;
    if (readings_.content() == LogContent::binary)
      throw Error(where(), "is binary, no log of memory",
                  "give a training log with memory per step; 'vlmest diagnose' reads snapshots and traces");
    say(fmt::format("note: {} has lines that are no text, which are passed over", where()));
  }

  std::string metrics() const { return metrics_text(monitor_.gpus(), source_, options_.expected); }

  /// Writes about the GPUs that have a reading since the last time. False: nobody reads it.
  bool report() {
    if (monitor_.readings() == reported_) return true;
    std::string text;
    if (options_.format == WatchFormat::prometheus) {
      text = metrics();
    } else {
      for (const auto& gpu : monitor_.gpus(reported_))
        text += (options_.format == WatchFormat::json ? json_line(gpu, source_, options_.expected)
                                                      : text_line(gpu, source_, options_.expected)) +
                "\n";
    }
    reported_ = monitor_.readings();
    return updates_.write(text);
  }

  void end() {
    if (monitor_.readings() == 0)
      throw Error(where(), "has no line that tells a GPU's memory",
                  "give a training log with memory per step, or nvidia-smi --query-gpu=index,memory.used,memory.total "
                  "--format=csv -l 1");
    report();
  }

  const WatchOptions& options_;
  diagnose::MemoryMonitor monitor_;
  Updates updates_;
  LogReadings readings_;
  WatchedSource source_;
  std::int64_t reported_ = 0;
};

}  // namespace

void watch(const WatchOptions& options) { Session(options).run(); }

}  // namespace vlmest::tool
