// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace vlmest::diagnose {

/// Bytes read once, from front to back: all of them in memory, or piece by piece as a file or an inflater gives them.
class ByteSource {
 public:
  /// The next piece, empty at the end. It stays where it is until the next call.
  using Refill = std::function<std::string_view()>;

  explicit ByteSource(std::string_view all) : at_(all.data()), end_(all.data() + all.size()) {}
  explicit ByteSource(Refill refill) : refill_(std::move(refill)) {}

  std::uint64_t position() const { return before_ + static_cast<std::uint64_t>(at_ - begin_of_piece()); }
  bool done() { return at_ == end_ && !more(); }

  /// The next byte, or -1 at the end.
  int get() { return at_ == end_ && !more() ? -1 : static_cast<unsigned char>(*at_++); }

  /// The next n bytes, valid until the next call; fewer where the source ends before. Bytes that lie in several pieces
  /// are put together as they arrive, so a false length costs no memory.
  std::string_view take(std::uint64_t n) {
    if (static_cast<std::uint64_t>(end_ - at_) >= n) {
      const std::string_view piece(at_, static_cast<std::size_t>(n));
      at_ += n;
      return piece;
    }
    return join(n);
  }
  /// Passes over the next byte where it is this one and lies in the same piece.
  bool skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

 private:
  std::string_view join(std::uint64_t n) {
    joined_.clear();
    while (joined_.size() < n && !done()) {
      const auto part = std::min<std::uint64_t>(n - joined_.size(), static_cast<std::uint64_t>(end_ - at_));
      joined_.append(at_, static_cast<std::size_t>(part));
      at_ += part;
    }
    return joined_;
  }
  const char* begin_of_piece() const { return end_ - piece_; }
  bool more() {
    if (!refill_) return false;
    before_ += piece_;
    const auto next = refill_();
    at_ = next.data();
    end_ = at_ + next.size();
    piece_ = next.size();
    return !next.empty();
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t piece_ = static_cast<std::size_t>(end_ - at_);
  std::uint64_t before_ = 0;  ///< bytes of the pieces that are gone
  Refill refill_;
  std::string joined_;
};

}  // namespace vlmest::diagnose
