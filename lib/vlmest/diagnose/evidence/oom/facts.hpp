// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/oom/message.hpp>
#include <vlmest/diagnose/evidence/oom/words.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>

/// The figures of out-of-memory messages, found one by one: a message may be wrapped anywhere, cut short, or spelled a
/// little differently, so each figure is known by the words next to it and by nothing else. The search runs on text in
/// lower case without blanks, quotes, tags and anything beyond ASCII.
namespace vlmest::diagnose {

struct OomFact {
  OomField field = OomField::begin;
  std::size_t at = 0;   ///< in the squeezed text
  std::size_t end = 0;  ///< past the words and the figure
  std::optional<PrintedSize> size;
  std::int64_t number = 0;  ///< process id, GPU
  MemoryBackend backend = MemoryBackend::unknown;
  OomReason reason = OomReason::none;
  bool alone = false;  ///< of begin: a message even where no figure follows
  bool async_only = false;
};

namespace oom_facts {

constexpr bool ends_with(std::string_view text, std::size_t at, std::string_view word) {
  return at >= word.size() && text.substr(at - word.size(), word.size()) == word;
}

/// "CUDA out of memory" without a figure is a message where it stands as a sentence, not within one.
template <class LineBegins>
bool is_sentence(std::string_view s, std::size_t at, std::size_t end, LineBegins line_begins) {
  if (end < s.size() && is_letter(s[end]) && !line_begins(end)) return false;
  if (at == 0 || line_begins(at)) return true;
  const char c = s[at - 1];
  return std::string_view(":([>=!.,-").find(c) != std::string_view::npos || ends_with(s, at, "error") ||
         ends_with(s, at, "exception");
}

inline std::optional<std::int64_t> digits_at(std::string_view s, std::size_t at) {
  std::int64_t n = 0;
  std::size_t i = at;
  while (i < s.size() && is_digit(s[i]) && i - at < 12) n = n * 10 + (s[i++] - '0');
  return i == at ? std::nullopt : std::optional(n);
}

/// Skips what may stand between words and their figure: "Tried to allocate about 2 GiB", "approx. 2 GiB", "~2 GiB".
inline std::size_t pass_over(std::string_view s, std::size_t at) {
  for (const std::string_view word : {":", "=", "memory:", "requestfor", "about", "approximately", "~", "(", "over"})
    if (s.substr(at).starts_with(word)) at += word.size();
  return at;
}

/// The size in bytes where it stands behind the printed one: "625.00MiB (655360000B)" of XLA.
inline FoundSize in_bytes(std::string_view s, const FoundSize& found) {
  if (!found.size || found.size->exact() || !s.substr(found.at).starts_with('(')) return found;
  const auto bytes = size_at(s, found.at + 1);
  const bool same = bytes && bytes->size && bytes->size->exact() && found.size->holds(bytes->size->value);
  return same ? *bytes : found;
}

/// Words of facts that are found in ways of their own.
enum class OtherWords : std::uint8_t { tensor, device_share, cuda_malloc, process, gpu, npu, on_device, on_gpu, cuda };
inline constexpr std::array<std::string_view, 9> other_words{"oomwhenallocatingtensor",
                                                             "freememoryondevice",
                                                             ":cudamallocfailed",
                                                             "process",
                                                             "gpu",
                                                             "npu",
                                                             "ondevice",
                                                             "ongpu",
                                                             "cuda"};

/// Beginnings, anchors and the others, in this order.
inline constexpr WordScan scan([] {
  std::array<std::string_view, beginnings.size() + anchors.size() + other_words.size()> all;
  auto next = all.begin();
  for (const Beginning& b : beginnings) *next++ = b.words;
  for (const Anchor& a : anchors) *next++ = a.words;
  std::copy(other_words.begin(), other_words.end(), next);
  return all;
}());

/// What other words than beginnings and anchors tell at a place.
void add_other_facts(std::string_view s, OtherWords words, std::size_t at, std::vector<OomFact>& facts);

}  // namespace oom_facts

/// Every fact of a squeezed text, in its order. `line_begins(at)` tells whether a line begins there.
template <class LineBegins>
std::vector<OomFact> find_oom_facts(std::string_view s, LineBegins line_begins) {
  using namespace oom_facts;
  std::vector<OomFact> facts;
  const auto beginning = [&](const Beginning& b, std::size_t at) {
    const auto end = at + b.words.size();
    if (b.words == "outofmemoryerror:" && s.substr(at - std::min<std::size_t>(at, 24), 24).find("except") < 24) return;
    const bool alone =
        b.alone == Alone::always || (b.alone == Alone::as_sentence && is_sentence(s, at, end, line_begins));
    if (b.words == "memoryerror" && !alone) return;  // the end of "OutOfMemoryError"
    facts.push_back({OomField::begin, at, end, std::nullopt, 0, b.backend, b.reason, alone});
  };
  const auto anchor = [&](const Anchor& a, std::size_t at) {
    auto found = a.side == Side::before ? size_before(s, at) : size_at(s, pass_over(s, at + a.words.size()), a.bare);
    if (!found) return;
    if (a.side == Side::after) found = in_bytes(s, *found);
    // Where the text ends within a number: nothing fails for less than a MiB.
    if (a.bare && found->at == s.size() && is_digit(s.back()) && found->size && found->size->value < Bytes(1 << 20))
      return;
    const auto end = a.side == Side::before ? at + a.words.size() : found->at;
    facts.push_back({a.field, a.side == Side::before ? found->at : at, end, found->size, 0, MemoryBackend::unknown,
                     OomReason::none, false, a.async_only});
  };
  scan.each(s, [&](std::size_t i, std::size_t at) {
    if (i < beginnings.size())
      beginning(beginnings[i], at);
    else if (i -= beginnings.size(); i < anchors.size())
      anchor(anchors[i], at);
    else
      add_other_facts(s, static_cast<OtherWords>(i - anchors.size()), at, facts);
  });
  std::sort(facts.begin(), facts.end(), [](const OomFact& a, const OomFact& b) {
    if (a.at != b.at) return a.at < b.at;
    const bool begins = a.field == OomField::begin, other = b.field == OomField::begin;
    if (begins != other) return begins;  // words that are a beginning and name a figure as well
    return a.end != b.end ? a.end > b.end : a.field < b.field;
  });
  return facts;
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/facts.hpp>
#endif
