// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/text/size_text.hpp>

namespace vlmest::diagnose {

namespace oom_candidates {

/// Five letters of which every message has some unbroken, however it is wrapped.
inline constexpr std::array<std::string_view, 8> stems{"memor", "alloc", "capac", "exhau",
                                                       "cubla", "cudnn", "kille", "buffe"};
/// What must stand around one of them, in lower case and without blanks.
inline constexpr auto signs = std::to_array<std::string_view>(
    {"outofmemory",        "out_of_memory",     "triedtoalloc",        "tryingtoalloc",    "unabletoalloc",
     "attemptingtoalloc",  "failedtoalloc",     "cannotalloc",         "errormemoryalloc", "outofmemoryallocat",
     "exceedallowedmemor", "totalcapac",        "alreadyalloc",        "allocatedbypy",    "status_alloc_f",
     "cublas_status_not",  "resource_exhau",    "mpsallocated:",       "currentlyalloc",   "bad_alloc",
     "defaultcpualloc",    "buffer:allocating", "memoryinuse",         "allocationondev",  "metal::malloc",
     "device_memor",       "fft_alloc_f",       "whenalloc",           "oomkilled",        "lowonmemory",
     "tomemorypressure",   "sharedmemory",      "availablememory",     "notenoughmemory",  "enoughgpumemory",
     "freememoryondev",    "alloc_req_slots",   "increasinggpu_memor", "validcudnn",       "memoryerror",
     "failtoalloc",        "spacetoalloc",      "allocationfailedfor", "invalidbuffersize"});

/// For each character a bit for each place in a stem where it may stand: bit 5 * stem + place.
consteval std::array<std::uint64_t, 256> places() {
  std::array<std::uint64_t, 256> in{};
  static_assert(5 * stems.size() <= 64);
  for (std::size_t i = 0; i < 5 * stems.size(); ++i) {
    const char c = stems[i / 5][i % 5];
    in[static_cast<unsigned char>(c)] |= std::uint64_t{1} << i;
    in[static_cast<unsigned char>(c - 'a' + 'A')] |= std::uint64_t{1} << i;
  }
  return in;
}

/// Where the stem of a sign begins in it, and which it is.
struct SignStem {
  std::size_t stem = 0, at = 0;
};
consteval auto stems_of_signs() {
  std::array<SignStem, signs.size()> of{};
  for (std::size_t i = 0; i < signs.size(); ++i) {
    bool found = false;
    for (std::size_t k = 0; k < stems.size() && !found; ++k)
      if (const auto at = signs[i].find(stems[k]); at != std::string_view::npos) {
        of[i] = {k, at};
        found = true;
      }
    if (!found) throw "a sign without a stem";
  }
  return of;
}

/// Whether one of the signs stands around the stem at `at`; up to 24 characters on each side are looked at.
inline bool has_sign(std::string_view text, std::size_t at, std::size_t stem) {
  static constexpr auto stem_of = stems_of_signs();
  std::array<char, 64> near{};
  const auto counts = [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == ':'; };
  std::size_t first = 24, last = 24;
  for (auto i = at; i > 0 && at - i < 60 && first > 0; --i)
    if (counts(text[i - 1])) near[--first] = lower(text[i - 1]);
  for (auto i = at; i < text.size() && i - at < 60 && last < near.size(); ++i)
    if (counts(text[i])) near[last++] = lower(text[i]);
  const std::string_view squeezed(near.data() + first, last - first);
  for (std::size_t i = 0; i < signs.size(); ++i)
    if (stem_of[i].stem == stem && stem_of[i].at <= 24 - first &&
        squeezed.substr(24 - first - stem_of[i].at).starts_with(signs[i]))
      return true;
  return false;
}

}  // namespace oom_candidates

/// A part of a text, [begin, end).
struct TextRange {
  std::size_t begin = 0, end = 0;
};

/// The parts of a log that may hold an out-of-memory message, with what stands around them, in one pass and without a
/// copy: no stem is missed by looking at every fifth byte. Parts do not overlap and are at most 256 KiB long.
inline std::vector<TextRange> oom_candidates_in(std::string_view text) {
  using namespace oom_candidates;
  static constexpr auto in = places();
  constexpr std::size_t before = 1500, after = 2500, most = 256 << 10;
  std::vector<TextRange> ranges;
  std::size_t known = 0;  // nothing is asked again before this
  for (std::size_t p = 4; p < text.size(); p += 5) {
    auto bits = in[static_cast<unsigned char>(text[p])];
    if (bits == 0 || p < known) continue;
    for (; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(bits));
      const auto stem = stems[place / 5];
      const auto at = p - place % 5;
      if (!size_text::same_letters(text, at, stem) || !has_sign(text, at, place / 5)) continue;
      TextRange r{at > before ? at - before : 0, std::min(text.size(), at + after)};
      // A line is not cut where its ends are near.
      const auto back = std::min<std::size_t>(r.begin, 4096);
      if (const auto line = text.substr(r.begin - back, back).rfind('\n'); line != std::string_view::npos)
        r.begin = r.begin - back + line + 1;
      if (const auto line = text.substr(r.end, 4096).find('\n'); line != std::string_view::npos) r.end += line;
      if (!ranges.empty() && r.begin <= ranges.back().end && r.end - ranges.back().begin <= most)
        ranges.back().end = std::max(ranges.back().end, r.end);
      else if (!ranges.empty() && r.begin < ranges.back().end)
        ranges.push_back({ranges.back().end, std::max(r.end, ranges.back().end)});
      else
        ranges.push_back(r);
      known = at + 40;
    }
  }
  return ranges;
}

}  // namespace vlmest::diagnose
