// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace vlmest::tool {

/// How much of a file is read, and how much may come out of how little.
struct SourceLimit {
  std::uint64_t bytes = std::uint64_t{16} << 30;  ///< of the content, inflated
  std::uint64_t ratio = 128;                      ///< of the content to the gzip file, above 64 MiB of content
  const char* hint = "check that it is the file that was meant";
};

/// The bytes of a file, piece by piece: a plain file as it is, a gzip file (RFC 1952, several members too) inflated,
/// whichever its first bytes say; "-" is standard input. Moves, and cannot be copied.
class FileSource {
 public:
  /// Throws Error where the file cannot be read.
  explicit FileSource(const std::string& path);
  FileSource(FileSource&&) noexcept;
  FileSource& operator=(FileSource&&) noexcept;
  ~FileSource();

  /// The next piece, empty at the end; it stays until the next call. Throws Error for a file that cannot be read on,
  /// for damaged gzip data, and beyond the limit.
  std::string_view operator()();

  /// The first bytes of the content, up to 64 KiB, which operator() gives again.
  std::string_view head();

  /// From here on, and for what was read already. Without a call that of SourceLimit{}.
  void limit(const SourceLimit& l);

  bool compressed() const;
  /// The gzip data ended before its end: the file was cut. Known once the last piece was given.
  bool truncated() const;
  std::uint64_t bytes_read() const;  ///< of the file itself

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vlmest::tool
