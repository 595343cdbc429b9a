// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/other_failures.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<OtherFailure> find_other_failure(std::string_view text) {
  using namespace other_failures;
  constexpr std::size_t tail = 8 << 20;
  static constexpr auto scan = scan_for(failure_words);
  std::size_t begin = text.size() > tail ? text.size() - tail : 0;
  if (begin > 0) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  std::optional<OtherFailure> found;
  std::size_t best = failure_words.size() + 1, at = begin;
  std::size_t where = 0;
  while (at < text.size()) {
    const auto start = at;
    const auto line = next_counted_line(text, at).substr(0, 1 << 16);
    const auto in = scan.in(line);
    for (std::size_t i = 0; i < failure_words.size() && i < best; ++i)
      if (in[i]) {
        best = i;
        where = start;
        const Words& w = failure_words[i];
        found = {w.what, w.hint, w.may_be_memory, w.in_memory_message};
      }
    if (best > failure_words.size() && is_killed_line(line)) {
      best = failure_words.size();
      where = start;
      found = {killed, look, true};
    }
  }
  if (found) found->line = 1 + line_ends(text, where);
  return found;
}

}  // namespace vlmest::diagnose
