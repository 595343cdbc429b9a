// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace vlmest::tool {
namespace {

/// write(2) until everything is written. False: errno says why not.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // the reader's end was made non-blocking
      pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
      if (poll(&waiting, 1, -1) < 0 && errno != EINTR) return false;
      continue;
    }
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // open(2) gives the lowest number that is free, which is this one. Opened the wrong way round it still fails.
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
}

bool put(std::string_view text) { return write_all(STDOUT_FILENO, text); }

void write_answer(std::string_view text) {
  if (put(text)) return;
  const std::error_code why(errno, std::generic_category());
  if (why.value() == EPIPE) {  // only where the caller ignores SIGPIPE
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw WriteError("standard output", "cannot be written: " + why.message());
}

void say_part(std::string_view text) {
  // A pipe that nobody reads must not end the process: what it says there is not its answer.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  (void)write_all(STDERR_FILENO, text);
  std::signal(SIGPIPE, before);
}

void say(std::string_view line) { say_part(std::string(line) + "\n"); }

}  // namespace vlmest::tool
