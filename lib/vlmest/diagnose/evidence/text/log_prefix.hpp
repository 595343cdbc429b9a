// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// What launchers and loggers write before a line: torchrun's "[rank3]:" and "[default0]:", vLLM's
/// "(EngineCore_DP0 pid=7) ERROR 09-25 10:53:36 [file.py:585]", Ray's "(func pid=7, ip=1.2.3.4)", docker compose's
/// "name-1  | ", Kubernetes' "TIME stderr F ", mpirun's "[1,3]<stderr>:", glog's "E0925 10:53:36.1 7 file.cc:12]",
/// syslog's "Sep 25 10:53:36 host name[7]: ", times, levels and what logging formats put between these, "> " of quotes.
namespace vlmest::diagnose {

/// Where the text of a line begins, and who wrote it.
struct LogPrefix {
  std::size_t length = 0;
  std::string writer;                ///< "rank3", "EngineCore_DP0 pid=7", "name-1": what tells processes apart
  std::optional<std::int64_t> rank;  ///< where the prefix gives it
};

namespace log_prefix {

constexpr bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }
constexpr bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

inline std::string lower_case(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

/// The number right after `word`, "rank3", "Rank 3", "rank:3", "rank=3".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word);

inline constexpr std::array<std::string_view, 11> levels{"INFO", "WARNING", "ERROR", "DEBUG",  "CRITICAL", "FATAL",
                                                         "WARN", "NOTICE",  "TRACE", "SEVERE", "stderr"};

/// Length of a level at the beginning, with the colon after it.
std::size_t level(std::string_view s);

/// Length of a date or a time at the beginning: digits, '-', ':', '/', 'T', 'Z', '.', ',' with at least two ':' or two
/// '-' or '/', or one '-' and then blank (vLLM's "09-25"), and what follows of it after one blank.
std::size_t time(std::string_view s);

/// Whether what stands between brackets at the beginning of a line is no part of its text.
bool is_tag(std::string_view in);

/// A writer is what tells processes apart: ranks, process ids, pods; no file and no time.
inline bool names_writer(std::string_view low) {
  return has(low, "rank") || has(low, "pid") || has(low, "default") || has(low, "worker") || has(low, "pod/") ||
         has(low, "trainer") || has(low, "node") || low.starts_with("dp") || low.starts_with("tp") ||
         low.starts_with("pp") || low.starts_with("ep") || low.starts_with("gpu");
}

void note(LogPrefix& p, std::string_view tag);

/// Length of "Sep 25 10:53:36 host name[7]:" or "... host name:" at the beginning (RFC 3164; journalctl).
std::size_t syslog(std::string_view s, LogPrefix& p);

/// Length of a name between separators, behind a time or a level: "- __main__ -", "| pkg.module:f:12 -". The separator
/// behind it is left; a separator alone is a piece too.
std::size_t separated(std::string_view s);

/// A word alone, as in "[TRT-LLM]", "(Process)": letters, digits, '-', '_', '.'.
inline bool is_name(std::string_view in) {
  return !in.empty() && in.size() <= 24 && std::all_of(in.begin(), in.end(), is_word) &&
         std::any_of(in.begin(), in.end(), is_letter);
}

/// Length of one piece of a prefix at the beginning of s, 0 where there is none. What it says goes to p. `stamped`: a
/// time or a level came before.
std::size_t piece(std::string_view s, LogPrefix& p, bool& stamped);

}  // namespace log_prefix

/// The prefix of a line: all pieces at its beginning, in any order. The blanks after the last piece belong to the text,
/// less one: a traceback keeps its indentation.
LogPrefix read_prefix(std::string_view line);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_prefix.hpp>
#endif
