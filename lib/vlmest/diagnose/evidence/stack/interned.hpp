// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::diagnose {

/// Open addressing over things that are kept elsewhere: from a hash to a 32-bit number.
class NumberIndex {
 public:
  /// The number of an equal thing, or the one that `add` gives it.
  template <class Equal, class Add>
  std::uint32_t find_or_add(std::size_t hash, Equal equal, Add add) {
    if (slots_.empty() || 2 * (count_ + 1) > slots_.size()) grow();
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (auto i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& s = slots_[i];
      if (s.number == empty) {
        s = {add(), tag, hash};
        ++count_;
        return s.number;
      }
      if (s.tag == tag && equal(s.number)) return s.number;
    }
  }

 private:
  static constexpr std::uint32_t empty = UINT32_MAX;
  struct Slot {
    std::uint32_t number = empty, tag = 0;
    std::size_t hash = 0;
  };
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.number == empty) continue;
      auto i = s.hash & (slots_.size() - 1);
      while (slots_[i].number != empty) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = s;
    }
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// Every string once, by number.
class StringTable {
 public:
  std::uint32_t add(std::string_view s) {
    return index_.find_or_add(
        std::hash<std::string_view>{}(s), [&](std::uint32_t i) { return (*this)[i] == s; },
        [&] {
          if (ends_.size() >= UINT32_MAX - 1) throw Overflow{};
          chars_.append(s);
          ends_.push_back(chars_.size());
          return static_cast<std::uint32_t>(ends_.size() - 1);
        });
  }
  std::string_view operator[](std::uint32_t i) const {
    const auto begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(chars_).substr(begin, ends_[i] - begin);
  }
  std::size_t size() const { return ends_.size(); }

 private:
  std::string chars_;
  std::vector<std::size_t> ends_;
  NumberIndex index_;
};

/// Stack frames and stacks of them, each once, by number. Stack 0 is the empty one. A stack's first frame is the
/// innermost, as torch.cuda.memory._snapshot() gives them. Frames name their strings by number: a million frames may
/// share one long file name.
class StackTable {
 public:
  using Stack = std::uint32_t;
  struct FrameWords {
    std::uint32_t file = 0, function = 0;
    std::int64_t line = 0;
    bool operator==(const FrameWords&) const = default;
  };
  /// Frames of a stack beyond these, the outermost, are dropped.
  static constexpr std::size_t deepest = 512;

  StackTable() { add_stack({}); }

  std::uint32_t add_frame(const FrameWords& f) {
    const auto hash = mix(mix(mix(0, f.file), f.function), static_cast<std::uint64_t>(f.line));
    return frame_index_.find_or_add(
        hash, [&](std::uint32_t i) { return frames_[i] == f; },
        [&] {
          frames_.push_back(f);
          return static_cast<std::uint32_t>(frames_.size() - 1);
        });
  }
  Stack add_stack(std::span<const std::uint32_t> frames) {
    frames = frames.first(std::min(frames.size(), deepest));
    std::uint64_t hash = frames.size();
    for (const auto f : frames) hash = (std::rotl(hash, 5) ^ f) * 0x9e3779b97f4a7c15u;
    return stack_index_.find_or_add(
        mix(hash, 0), [&](std::uint32_t i) { return std::ranges::equal(stack(i), frames); },
        [&] {
          in_stacks_.insert(in_stacks_.end(), frames.begin(), frames.end());
          ends_.push_back(in_stacks_.size());
          return static_cast<Stack>(ends_.size() - 1);
        });
  }

  /// Numbers of the frames of a stack, innermost first.
  std::span<const std::uint32_t> stack(Stack s) const {
    const auto begin = s == 0 ? 0 : ends_[s - 1];
    return std::span(in_stacks_).subspan(begin, ends_[s] - begin);
  }
  const FrameWords& words(std::uint32_t frame) const { return frames_[frame]; }
  std::string_view file(std::uint32_t frame) const { return strings[frames_[frame].file]; }
  std::string_view function(std::uint32_t frame) const { return strings[frames_[frame].function]; }
  Frame frame(std::uint32_t f) const { return {std::string(file(f)), frames_[f].line, std::string(function(f)), {}}; }
  std::size_t frame_count() const { return frames_.size(); }
  std::size_t stack_count() const { return ends_.size(); }
  std::size_t frames_in_stacks() const { return in_stacks_.size(); }

  StringTable strings;

 private:
  /// The finalizer of MurmurHash3 (public domain) over a running value.
  static std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
    h = (h ^ x) * 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 29);
  }
  std::vector<FrameWords> frames_;
  std::vector<std::uint32_t> in_stacks_;
  std::vector<std::size_t> ends_;
  NumberIndex frame_index_, stack_index_;
};

}  // namespace vlmest::diagnose
