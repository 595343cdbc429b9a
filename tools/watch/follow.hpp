// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace vlmest::tool {

/// Cuts text that comes in pieces into lines. A line ends with \n, or with \r as progress bars and Windows end it;
/// empty lines are left out, and so are lines of more than a MiB, which no log of memory has.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view)>;
  static constexpr std::size_t longest = std::size_t{1} << 20;
  static constexpr std::size_t most_without_an_end = std::size_t{64} << 20;

  /// Bytes since a line ended last: of what is no text there may be no end.
  std::size_t since_last_end() const { return since_; }
  void feed(std::string_view text, const Sink& sink);
  /// The end of the text: what came after the last line's end is a line too.
  void finish(const Sink& sink);

 private:
  void append(std::string_view text);
  void hand_on(const Sink& sink);

  std::string line_;
  bool too_long_ = false;
  std::size_t since_ = 0;
};

/// Who takes what a followed file gives.
struct FollowSinks {
  LineSplitter::Sink line;
  std::function<void()> restarted;                  ///< before the first line of a file that took another's place
  std::function<void(const std::string&)> noticed;  ///< what a person should know: the file has gone, was truncated
};

/// A file that grows, followed by its name as `tail -F` does: where another file takes the name (logs are rotated so),
/// the old one is read to its end and the new one from its beginning; a file that got shorter is read from its
/// beginning; a file that is not there is waited for. Asked, never waiting: call read() from time to time.
class FollowedFile {
 public:
  explicit FollowedFile(std::string path);
  ~FollowedFile();
  FollowedFile(const FollowedFile&) = delete;
  FollowedFile& operator=(const FollowedFile&) = delete;

  /// Hands on the lines that are new, of at most `most` bytes (rounded up to a piece of 64 KiB). True: there is more.
  /// Throws Error where the file is there and cannot be read.
  bool read(const FollowSinks& sinks, std::size_t most = std::size_t{8} << 20);

 private:
  void open(const FollowSinks& sinks);
  void close(const FollowSinks& sinks);
  bool read_on(const FollowSinks& sinks, std::size_t most);

  std::string path_;
  LineSplitter lines_;
  int fd_ = -1;
  std::size_t offset_ = 0;
  bool opened_ = false, missed_ = false;
};

/// Reads once what is there to be read now, at most 64 KiB, and blocks where there is nothing yet. Returns false at the
/// end. `where` names the file in an Error.
bool read_some(int fd, const std::string& where, LineSplitter& lines, const LineSplitter::Sink& sink);

/// The lines of a file from its beginning to its end, or of standard input for "-". Throws Error.
void read_lines(const std::string& path, const LineSplitter::Sink& sink);

/// A pipe, a terminal or a device: what is read ends, nothing takes its place. A path that leads nowhere is none.
bool is_stream(const std::string& path);

/// A file descriptor that reads the stream `path`, without waiting for a writer; 0 for "-". Throws Error.
int open_stream(const std::string& path);

}  // namespace vlmest::tool
