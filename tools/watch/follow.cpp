// SPDX-License-Identifier: Apache-2.0
#include "follow.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {
namespace {

constexpr std::size_t piece = std::size_t{64} << 10;

[[noreturn]] void cannot_read(const std::string& path) {
  throw Error(path, std::string("cannot be read: ") + std::strerror(errno), "check the path and its permissions");
}

/// read(2), where a signal interrupts it again.
ssize_t read_bytes(int fd, std::array<char, piece>& to) {
  ssize_t n = 0;
  do n = ::read(fd, to.data(), to.size());
  while (n < 0 && errno == EINTR);
  return n;
}

std::string_view view(const std::array<char, piece>& a, ssize_t n) { return {a.data(), static_cast<std::size_t>(n)}; }

int open_to_read(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) cannot_read(path);
  return fd;
}

/// A descriptor that is closed when its block ends, however that does.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor() {
    if (fd > 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

void LineSplitter::append(std::string_view text) {
  if (too_long_ || text.size() > longest - line_.size()) {
    too_long_ = true;
    line_.clear();
  } else {
    line_ += text;
  }
}

void LineSplitter::hand_on(const Sink& sink) {
  if (!line_.empty()) sink(line_);
  line_.clear();
  too_long_ = false;
}

void LineSplitter::feed(std::string_view text, const Sink& sink) {
  for (auto end = text.find_first_of("\r\n"); end != std::string_view::npos; end = text.find_first_of("\r\n")) {
    append(text.substr(0, end));
    text.remove_prefix(end + 1);
    hand_on(sink);
    since_ = 0;
  }
  since_ += text.size();
  append(text);
}

void LineSplitter::finish(const Sink& sink) { hand_on(sink); }

FollowedFile::FollowedFile(std::string path) : path_(std::move(path)) {}

FollowedFile::~FollowedFile() {
  if (fd_ >= 0) ::close(fd_);
}

void FollowedFile::open(const FollowSinks& sinks) {
  // Never waits: the name may have become a pipe's.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    if (errno != ENOENT) cannot_read(path_);
    if (!missed_)
      sinks.noticed(path_ + (opened_ ? " has gone, waiting for it to come back" : " is not there yet, waiting for it"));
    missed_ = true;
    return;
  }
  if (opened_) sinks.restarted();
  opened_ = true;
  missed_ = false;
  offset_ = 0;
}

void FollowedFile::close(const FollowSinks& sinks) {
  lines_.finish(sinks.line);
  ::close(fd_);
  fd_ = -1;
}

bool FollowedFile::read_on(const FollowSinks& sinks, std::size_t most) {
  std::array<char, piece> bytes;
  for (std::size_t done = 0; done < most;) {
    const ssize_t n = read_bytes(fd_, bytes);
    if (n < 0 && errno != EAGAIN) cannot_read(path_);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
    offset_ += static_cast<std::size_t>(n);
    lines_.feed(view(bytes, n), sinks.line);
  }
  return true;
}

bool FollowedFile::read(const FollowSinks& sinks, std::size_t most) {
  if (fd_ < 0) open(sinks);
  if (fd_ < 0) return false;
  struct stat here {
  }, named{};
  if (fstat(fd_, &here) != 0) cannot_read(path_);
  if (S_ISREG(here.st_mode) && static_cast<std::size_t>(here.st_size) < offset_) {
    sinks.noticed(path_ + " was truncated, reading it from its beginning");
    lines_.finish(sinks.line);
    if (lseek(fd_, 0, SEEK_SET) != 0) cannot_read(path_);
    offset_ = 0;
    sinks.restarted();
  }
  // Looked up before the reading: what the old file got until it was renamed is read then.
  const bool there = stat(path_.c_str(), &named) == 0;
  const bool moved = !there || named.st_dev != here.st_dev || named.st_ino != here.st_ino;
  if (read_on(sinks, most)) return true;
  if (!moved) return false;
  if (there) sinks.noticed(path_ + " was replaced, reading the new file");
  close(sinks);
  return there;
}

bool read_some(int fd, const std::string& where, LineSplitter& lines, const LineSplitter::Sink& sink) {
  std::array<char, piece> bytes;
  const ssize_t n = read_bytes(fd, bytes);
  if (n < 0 && errno == EAGAIN) return true;
  if (n < 0) cannot_read(where);
  if (n == 0)
    lines.finish(sink);
  else
    lines.feed(view(bytes, n), sink);
  if (lines.since_last_end() > LineSplitter::most_without_an_end)
    throw Error(where, "64 MiB without the end of a line: it is no log", "give a text log");
  return n != 0;
}

void read_lines(const std::string& path, const LineSplitter::Sink& sink) {
  const Descriptor d(path == "-" ? STDIN_FILENO : open_to_read(path, 0));
  LineSplitter lines;
  while (read_some(d.fd, path == "-" ? "standard input" : path, lines, sink)) {
  }
}

bool is_stream(const std::string& path) {
  struct stat s {};
  return path == "-" || (stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

int open_stream(const std::string& path) { return path == "-" ? STDIN_FILENO : open_to_read(path, O_NONBLOCK); }

}  // namespace vlmest::tool
