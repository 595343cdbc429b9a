// SPDX-License-Identifier: Apache-2.0
// The loop and the server of metrics, asked over sockets: good requests, bad ones, and how it ends.
#include "watch/metrics_server.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vlmest/unit/error.hpp>

#include "http_client.hpp"

namespace vlmest::tool::metrics_server_test {
namespace {
using namespace std::chrono_literals;

/// A server in a thread of its own, while this lives.
class Served {
 public:
  explicit Served(std::function<std::string()> text)
      : server_(loop_, 0, std::move(text)), thread_([this] {
          loop_.repeat([this] {
            if (end_) loop_.stop();
            return 10ms;
          });
          try {
            loop_.run();
          } catch (const std::exception& e) {
            failed_ = e.what();
          }
        }) {}
  ~Served() {
    end_ = true;
    join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::uint16_t port() const { return server_.port(); }
  /// Waits until run() has failed, and says with what.
  std::string join() {
    if (thread_.joinable()) thread_.join();
    return failed_;
  }

 private:
  EventLoop loop_;
  MetricsServer server_;
  std::atomic<bool> end_ = false;
  std::string failed_;
  std::thread thread_;
};

TEST(MetricsServer, AnswersWithTheTextOfTheMoment) {
  int asked = 0;
  Served s([&asked] { return "a " + std::to_string(++asked) + "\n"; });
  const std::string first = http::get(s.port(), "/metrics");
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK\r\n")) << first;
  EXPECT_NE(first.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), std::string::npos) << first;
  EXPECT_NE(first.find("Content-Length: 4\r\n"), std::string::npos) << first;
  EXPECT_EQ(http::body(first), "a 1\n");
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics?x=1")), "a 2\n");
}

TEST(MetricsServer, KeepsAConnectionForFurtherScrapes) {
  Served s([] { return std::string("a 1\n"); });
  const std::string r = http::ask(s.port(),
                                  "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
                                  "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(r.find("a 1\nHTTP/1.1 200 OK"), std::string::npos) << r;
}

TEST(MetricsServer, RefusesEverythingElse) {
  Served s([] { return std::string("a 1\n"); });
  const auto status = [&](const std::string& request) {
    const std::string r = http::ask(s.port(), request);
    return r.substr(0, r.find("\r\n"));
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status("GET /metrics/../etc HTTP/1.1\r\nConnection: close\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_TRUE(
      status("POST /metrics HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx").starts_with("HTTP/1.1 4"));
  EXPECT_TRUE(status("DELETE /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 501"));
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/9.9.9\r\n\r\n",
                          "\x16\x03\x01\x02\r\n\r\n", "GET /metrics HTTP/1.1\r\nno colon\r\n\r\n"}) {
    const std::string r = status(bad);
    EXPECT_TRUE(r.empty() || r.starts_with("HTTP/1.1 4")) << bad << " " << r;
  }
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics")), "a 1\n");
}

TEST(MetricsServer, ListensToThisMachineAlone) {
  Served s([] { return std::string("a 1\n"); });
  EXPECT_EQ(http::connect(s.port(), "127.0.0.2"), -1);  // who listens on all addresses is reached here too
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics")), "a 1\n");
}

TEST(MetricsServer, OutlivesHeadersWithoutEndAndClientsThatGo) {
  Served s([] { return std::string(1 << 20, 'a'); });
  const std::string r = http::ask(s.port(), "GET /metrics HTTP/1.1\r\nX: " + std::string(1 << 20, 'x'));
  EXPECT_TRUE(r.empty() || r.starts_with("HTTP/1.1 4")) << r.substr(0, 80);
  for (int i = 0; i < 50; ++i) {
    const int fd = http::connect(s.port());
    ASSERT_GE(fd, 0);
    http::say(fd, i % 2 == 0 ? "GET /met" : "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    close(fd);  // the answer meets a closed connection
  }
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics")).size(), std::size_t{1} << 20);
}

TEST(MetricsServer, AsksOnWhileAnotherClientSaysNothing) {
  Served s([] { return std::string("a 1\n"); });
  const int silent = http::connect(s.port());
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics")), "a 1\n");
  close(silent);
}

TEST(MetricsServer, SaysThatAPortIsTaken) {
  Served s([] { return std::string(); });
  EventLoop loop;
  try {
    const MetricsServer second(loop, s.port(), [] { return std::string(); });
    FAIL() << second.port();
  } catch (const vlmest::Error& e) {
    EXPECT_EQ(e.where, "--port");
    EXPECT_EQ(e.what_happened, "cannot listen on 127.0.0.1:" + std::to_string(s.port()) + ": Address already in use");
  }
}

TEST(MetricsServer, WaitsForFileDescriptorsWithoutTurningInCircles) {
  Served s([] { return std::string("a 1\n"); });
  EXPECT_EQ(http::body(http::get(s.port(), "/metrics")), "a 1\n");  // everything that it opens is open
  const int client = http::open_socket();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const auto cpu = std::clock();
  const bool connected = http::connect(client, s.port());
  std::this_thread::sleep_for(300ms);
  const auto used = std::clock() - cpu;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(connected);  // by the kernel, to whom the server listens
  EXPECT_LT(used, CLOCKS_PER_SEC / 30);
  http::say(client, "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(http::body(http::answer(client)), "a 1\n");
}

TEST(MetricsServer, AFailureOfTheTextEndsTheLoop) {
  Served s([]() -> std::string { throw std::runtime_error("no text"); });
  const int fd = http::connect(s.port());
  http::say(fd, "GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_EQ(s.join(), "no text");
  close(fd);
}

TEST(EventLoop, SignalsEndIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EventLoop loop;
    int turns = 0;
    loop.repeat([&] {
      if (++turns == 2) std::raise(signal);
      return 1ms;
    });
    loop.run();
    EXPECT_GE(turns, 2);
  }
}

TEST(EventLoop, ReadsPipesAndFilesToTheirEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fputs("file", file);
  std::rewind(file);
  ASSERT_EQ(write(ends[1], "pipe", 4), 4);
  close(ends[1]);
  EventLoop loop;
  std::string got[2];
  int open = 2;
  const int fds[2] = {ends[0], fileno(file)};
  for (int i = 0; i < 2; ++i)
    loop.when_readable(fds[i], [&, i] {
      char c = 0;
      if (read(fds[i], &c, 1) == 1) {
        got[i] += c;
        return true;
      }
      if (--open == 0) loop.stop();
      return false;
    });
  loop.run();
  EXPECT_EQ(got[0], "pipe");
  EXPECT_EQ(got[1], "file");
  close(ends[0]);
  std::fclose(file);
}

TEST(EventLoop, SleepsWhileNothingHappens) {
  EventLoop loop;
  int turns = 0;
  loop.repeat([&] {
    if (++turns == 3) loop.stop();
    return 100ms;
  });
  const auto cpu = std::clock();
  const auto began = std::chrono::steady_clock::now();
  loop.run();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 200ms);
  EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC / 20);
}

}  // namespace
}  // namespace vlmest::tool::metrics_server_test
