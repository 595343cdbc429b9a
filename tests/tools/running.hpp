// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef VLMEST_PROGRAM
namespace cli {

/// The program while it runs: what it has written so far, and its end. Nothing here waits for more than 20 seconds.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
    std::vector<std::string> words{"env"};
    words.insert(words.end(), environment.begin(), environment.end());
    words.emplace_back(VLMEST_PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      execvp("env", argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    in_ = in[1];
    out_.fd = out[0];
    err_.fd = err[0];
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close_input();
    close_output();
    close(err_.fd);
  }

  void say(const std::string& text) const { (void)!write(in_, text.data(), text.size()); }
  void close_input() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }
  void close_output() {
    if (out_.fd >= 0) close(out_.fd);
    out_.fd = -1;
  }

  /// The next line of standard output, or of standard error, without its end; "<none>" where none comes.
  std::string line() { return next(out_); }
  std::string error_line() { return next(err_); }

  void signal(int number) const { kill(pid_, number); }

  /// The exit code; the negative signal that ended it; -1000 where it does not end.
  int wait() {
    for (int i = 0; i < 2000; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      usleep(10000);
    }
    return -1000;
  }

 private:
  struct Stream {
    int fd = -1;
    std::string text;
  };
  static std::string next(Stream& s) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      if (const auto end = s.text.find('\n'); end != std::string::npos) {
        const std::string line = s.text.substr(0, end);
        s.text.erase(0, end + 1);
        return line;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd p{.fd = s.fd, .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || poll(&p, 1, static_cast<int>(left.count())) <= 0) return "<none>";
      char piece[4096];
      const ssize_t n = read(s.fd, piece, sizeof piece);
      if (n <= 0) return "<none>";
      s.text.append(piece, static_cast<std::size_t>(n));
    }
  }

  pid_t pid_ = -1;
  int in_ = -1;
  Stream out_, err_;
};

}  // namespace cli
#endif
