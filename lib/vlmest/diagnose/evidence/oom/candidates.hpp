// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/size_text.hpp>

namespace vlmest::diagnose {

namespace oom_candidates {

/// Five letters of which every message has some unbroken, however it is wrapped.
inline constexpr std::array<std::string_view, 9> stems{"memor", "alloc", "capac", "exhau", "cubla",
                                                       "cudnn", "kille", "buffe", "neede"};
/// What must stand around one of them, in lower case and without blanks.
inline constexpr auto signs = std::to_array<std::string_view>(
    {"outofmemory",        "out_of_memory",     "triedtoalloc",        "tryingtoalloc",     "unabletoalloc",
     "attemptingtoalloc",  "failedtoalloc",     "cannotalloc",         "errormemoryalloc",  "outofmemoryallocat",
     "exceedallowedmemor", "totalcapac",        "alreadyalloc",        "allocatedbypy",     "status_alloc_f",
     "cublas_status_not",  "resource_exhau",    "mpsallocated:",       "currentlyalloc",    "bad_alloc",
     "defaultcpualloc",    "buffer:allocating", "memoryinuse",         "allocationondev",   "metal::malloc",
     "device_memor",       "fft_alloc_f",       "whenalloc",           "oomkilled",         "lowonmemory",
     "tomemorypressure",   "sharedmemory",      "availablememory",     "notenoughmemory",   "enoughgpumemory",
     "freememoryondev",    "alloc_req_slots",   "increasinggpu_memor", "validcudnn",        "memoryerror",
     "failtoalloc",        "spacetoalloc",      "allocationfailedfor", "invalidbuffersize", "memoryobjectalloc",
     "cacheisneeded",      "devicememoryalloc", "devicememory"});

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

/// The bits of first characters.
inline constexpr std::uint64_t first_places = [] {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < stems.size(); ++i) bits |= std::uint64_t{1} << (5 * i);
  return bits;
}();

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
bool has_sign(std::string_view text, std::size_t at, std::size_t stem);

}  // namespace oom_candidates

/// A part of a text, [begin, end).
struct TextRange {
  std::size_t begin = 0, end = 0;
};

/// The parts of a log that may hold an out-of-memory message, with what stands around them, in one pass and without a
/// copy: no stem is missed by looking at every fifth byte. Parts do not overlap and are at most 256 KiB long.
std::vector<TextRange> oom_candidates_in(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/candidates.hpp>
#endif
