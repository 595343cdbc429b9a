// SPDX-License-Identifier: Apache-2.0
#include "evidence/gzip_source.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <zlib.h>

#include <vlmest/unit/error.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 18, head_size = std::size_t{1} << 16;

/// Traces and snapshots inflate to 5 to 40 times their size; deflate reaches 1032 with nothing but zeros. Below this
/// no ratio is refused.
constexpr std::uint64_t always_allowed = std::uint64_t{64} << 20;

}  // namespace

struct FileSource::State {
  struct Closer {
    void operator()(std::FILE* f) const {
      if (f != nullptr && f != stdin) std::fclose(f);
    }
  };

  std::string path;
  std::unique_ptr<std::FILE, Closer> file;
  std::vector<unsigned char> in = std::vector<unsigned char>(piece_size), out;
  std::string head;
  bool head_taken = false, head_given = false;
  bool compressed = false, truncated = false, ended = false, between_members = false;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // of the file and of its content
  SourceLimit limit;
  z_stream stream{};

  ~State() {
    if (compressed) inflateEnd(&stream);
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const { throw Error(path, what, hint); }

  std::size_t read() {
    const std::size_t n = std::fread(in.data(), 1, in.size(), file.get());
    if (n == 0 && std::ferror(file.get()) != 0)
      fail("cannot be read: " + std::error_code(errno, std::generic_category()).message(), "check what it is");
    bytes_in += n;
    return n;
  }

  void open() {
    std::size_t n = read();
    stream.next_in = in.data();
    stream.avail_in = static_cast<uInt>(n);
    if (n < 2 || in[0] != 0x1f || in[1] != 0x8b) return;
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail("cannot be inflated", "inflate it first: gzip -d");
    compressed = true;
    out.resize(piece_size);
  }

  std::string_view plain() {
    if (stream.avail_in == 0) {
      stream.next_in = in.data();
      stream.avail_in = static_cast<uInt>(read());
    }
    const std::string_view piece(reinterpret_cast<const char*>(stream.next_in), stream.avail_in);
    stream.avail_in = 0;
    bytes_out += piece.size();
    check();
    return piece;
  }

  std::string_view inflated() {
    if (ended) return {};
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    while (stream.avail_out == out.size()) {
      if (stream.avail_in == 0) {
        stream.next_in = in.data();
        stream.avail_in = static_cast<uInt>(read());
        if (stream.avail_in == 0) {
          ended = true;
          truncated = !between_members;
          break;
        }
      }
      if (between_members) {  // another member, or the padding that some tools write
        if (*stream.next_in != 0x1f) {
          ended = true;
          break;
        }
        inflateReset(&stream);
        between_members = false;
      }
      const int r = inflate(&stream, Z_NO_FLUSH);
      if (r == Z_STREAM_END)
        between_members = true;
      else if (r != Z_OK && r != Z_BUF_ERROR)
        fail(std::string("is damaged gzip data") + (stream.msg != nullptr ? std::string(": ") + stream.msg : ""),
             "copy or record the file again");
    }
    const std::size_t n = out.size() - stream.avail_out;
    bytes_out += n;
    check();
    return {reinterpret_cast<const char*>(out.data()), n};
  }

  void check() const {
    if (bytes_out > limit.bytes) fail("larger than " + show(Bytes(static_cast<std::int64_t>(limit.bytes))), limit.hint);
    if (compressed && bytes_out > always_allowed && bytes_out / limit.ratio > bytes_in)
      fail("inflates to more than " + std::to_string(limit.ratio) + " times its size",
           "no such file does; inflate it to see what it is: gzip -d");
  }

  std::string_view next() { return compressed ? inflated() : plain(); }
};

FileSource::FileSource(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path == "-" ? "standard input" : path;
  std::error_code ignored;
  if (path == "-")
    s.file.reset(stdin);
  else if (!std::filesystem::is_directory(path, ignored))
    s.file.reset(std::fopen(path.c_str(), "rb"));
  if (!s.file) s.fail("cannot be read", "check the path");
  s.open();
}
FileSource::FileSource(FileSource&&) noexcept = default;
FileSource& FileSource::operator=(FileSource&&) noexcept = default;
FileSource::~FileSource() = default;

std::string_view FileSource::head() {
  State& s = *state_;
  if (!s.head_taken) {
    s.head_taken = true;
    while (s.head.size() < head_size) {
      const std::string_view piece = s.next();
      if (piece.empty()) break;
      s.head += piece;  // a piece may be larger than the head: it is given as it came
    }
  }
  return std::string_view(s.head).substr(0, head_size);
}

std::string_view FileSource::operator()() {
  State& s = *state_;
  if (s.head_taken && !s.head_given) {
    s.head_given = true;
    if (!s.head.empty()) return s.head;
  }
  return s.next();
}

void FileSource::limit(const SourceLimit& l) {
  state_->limit = l;
  state_->check();
}
bool FileSource::compressed() const { return state_->compressed; }
bool FileSource::truncated() const { return state_->truncated; }
std::uint64_t FileSource::bytes_read() const { return state_->bytes_in; }

}  // namespace vlmest::tool
