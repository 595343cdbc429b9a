// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <system_error>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace log_prefix {

VLMEST_INLINE std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  at += word.size();
  while (at < text.size() && (text[at] == ' ' || text[at] == ':' || text[at] == '=' || text[at] == '_')) ++at;
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), n);
  if (error != std::errc() || n < 0) return std::nullopt;
  return n;
}

VLMEST_INLINE std::size_t level(std::string_view s) {
  if (s.empty() || !is_letter(s[0])) return 0;
  for (const auto word : levels) {
    if (!s.starts_with(word)) continue;
    const auto n = word.size();
    if (n == s.size()) return n;
    if (s[n] == ':') return n + 1;
    if (is_blank(s[n])) return n;
  }
  return 0;
}

VLMEST_INLINE std::size_t time(std::string_view s) {
  std::size_t i = 0;
  int colons = 0, dashes = 0, digits = 0;
  while (i < s.size() && i < 40) {
    const char c = s[i];
    if (is_digit(c))
      ++digits;
    else if (c == ':')
      ++colons;
    else if (c == '-' || c == '/')
      ++dashes;
    else if (!(c == '.' || c == ',' || c == 'Z' || c == '+' || (c == 'T' && dashes == 2)))
      break;
    ++i;
  }
  if (i < s.size() && !is_blank(s[i]) && s[i] != ']' && s[i] != '|') return 0;
  const bool clock = colons >= 2 && digits >= 5, date = dashes >= 2 && digits >= 6 && colons == 0;
  const bool month_day = dashes == 1 && colons == 0 && i == 5 && digits == 4;
  if (month_day) return time(s.substr(std::min(s.size(), i + 1))) != 0 ? i : 0;
  return clock || date ? i : 0;
}

VLMEST_INLINE bool is_tag(std::string_view in) {
  if (in.empty() || in.size() > 120) return false;
  const bool source =
      has(in, ":") && (has(in, ".py:") || has(in, ".cpp:") || has(in, ".cc:") || has(in, ".rs:") || has(in, ".cu:"));
  if (source) return !has(in, "enforce fail");
  if (std::all_of(in.begin(), in.end(), [](char c) {
        return is_digit(c) || is_blank(c) || c == ':' || c == '-' || c == ',' || c == '.' || c == '/' || c == 'T' ||
               c == 'Z' || c == '+';
      }))
    return true;
  const auto low = lower_case(in);
  for (const std::string_view word : {"rank", "default", "pod/", "trainer", "worker", "node", "gpu", "ip-", "dp", "tp",
                                      "pp", "ep", "process ", "pid", "info", "error", "warning", "debug", "titan"})
    if (low.starts_with(word)) return true;
  return has(low, "rank") || has(low, " pid") || time(in) != 0;
}

VLMEST_INLINE void note(LogPrefix& p, std::string_view tag) {
  const auto low = lower_case(tag);
  if (!names_writer(low)) return;
  if (!p.writer.empty()) p.writer += ' ';
  p.writer += tag;
  if (!p.rank) p.rank = number_after(low, has(low, "local_rank") ? "local_rank" : "rank");
  if (!p.rank) p.rank = number_after(low, "default");
}

VLMEST_INLINE std::size_t syslog(std::string_view s, LogPrefix& p) {
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (s.size() < 20 || s[3] != ' ' || s[6] != ' ' || months.find(s.substr(0, 3)) % 3 != 0) return 0;
  if (time(s.substr(7, 8)) != 8) return 0;
  auto end = s.find(' ', 16);  // past the host
  if (s[15] != ' ' || end == std::string_view::npos || end > 100) return 0;
  const auto name = ++end;
  while (end < s.size() && end - name < 80 && !is_blank(s[end]) && s[end] != ':') ++end;
  if (end == name || end >= s.size() || s[end] != ':') return 0;
  if (p.writer.empty()) p.writer = s.substr(name, end - name);
  return end + 1;
}

VLMEST_INLINE std::size_t separated(std::string_view s) {
  if ((s[0] != '-' && s[0] != '|') || (s.size() > 1 && !is_blank(s[1]))) return 0;
  std::size_t i = 1;
  while (i < s.size() && is_blank(s[i])) ++i;
  const auto name = i;
  while (i < s.size() && i - name < 60 && (is_word(s[i]) || s[i] == ':' || s[i] == '<' || s[i] == '>')) ++i;
  auto next = i;
  while (next < s.size() && is_blank(s[next])) ++next;
  const bool again =
      i > name && next > i && next + 1 < s.size() && (s[next] == '-' || s[next] == '|') && is_blank(s[next + 1]);
  return again ? i : 1;
}

VLMEST_INLINE std::size_t piece(std::string_view s, LogPrefix& p, bool& stamped) {
  if (s.empty()) return 0;
  if (is_blank(s[0])) return 1;
  for (const std::string_view stream : {"stderr F", "stdout F", "stderr P", "stdout P"})  // Kubernetes' CRI
    if (stamped && s.starts_with(stream) && (s.size() == stream.size() || is_blank(s[stream.size()])))
      return stream.size();
  if (auto n = level(s); n != 0 || (n = time(s)) != 0 || (n = syslog(s, p)) != 0) {
    stamped = true;
    return n;
  }
  if (stamped)
    if (const auto n = separated(s)) return n;
  if (s[0] == '>' && s.size() > 1) return s[1] == ' ' ? 1 : s.starts_with(">> ") ? 2 : 0;
  if (s[0] == '[') {
    const auto close = s.substr(0, 130).find(']');
    if (close == std::string_view::npos) return 0;
    const auto in = s.substr(1, close - 1);
    if (!is_tag(in)) return stamped && is_name(in) ? close + 1 : 0;
    stamped = stamped || time(in) != 0 || level(in) != 0;
    note(p, in);
    auto n = close + 1;
    for (const std::string_view stream : {"<stderr>", "<stdout>"})
      if (s.substr(n).starts_with(stream)) {
        if (p.writer.empty()) p.writer = s.substr(1, close - 1);
        n += stream.size();
      }
    return n < s.size() && s[n] == ':' ? n + 1 : n;
  }
  if (s[0] == '(') {
    const auto close = s.substr(0, 130).find(')');
    if (close == std::string_view::npos) return 0;
    const auto in = s.substr(1, close - 1);
    if (!has(in, "pid=") && !has(in, "pid ") && !in.starts_with("Worker") && !in.starts_with("Engine") &&
        !in.starts_with("APIServer") && in != "raylet")
      return stamped && is_name(in) ? close + 1 : 0;
    if (!p.writer.empty()) p.writer += ' ';
    p.writer += in;
    if (!p.rank) p.rank = number_after(lower_case(in), "rank");
    return close + 1;
  }
  // A word and a bar: docker compose. A level letter with month and day: glog, up to its bracket.
  std::size_t n = 0;
  while (n < s.size() && n < 80 && is_word(s[n])) ++n;
  if (n == 0) return 0;
  if (n == 5 && has("IWEF", s.substr(0, 1)) && std::all_of(s.begin() + 1, s.begin() + 5, is_digit)) {
    const auto close = s.substr(0, 130).find(']');
    return close == std::string_view::npos ? 0 : close + 1;
  }
  auto after = n;
  while (after < s.size() && after < 100 && is_blank(s[after])) ++after;
  if (is_letter(s[0]) && after > n && after < s.size() && s[after] == '|' &&
      (after + 1 == s.size() || s[after + 1] == ' ')) {
    if (p.writer.empty()) p.writer = s.substr(0, n);
    return after + 1;
  }
  const auto low = n < s.size() && s[n] == ':' && n < 12 ? lower_case(s.substr(0, n)) : std::string();
  if (!low.empty() && (low.starts_with("rank") || std::all_of(low.begin(), low.end(), is_digit))) {
    if (std::all_of(low.begin(), low.end(), is_digit) && !(n + 1 < s.size() && s[n + 1] == ' ')) return 0;
    p.writer = low;
    p.rank = number_after(low, low.starts_with("rank") ? "rank" : "");
    return n + 1;
  }
  if (s.starts_with("E  ")) return 1;  // pytest
  return 0;
}

}  // namespace log_prefix

VLMEST_INLINE LogPrefix read_prefix(std::string_view line) {
  LogPrefix p;
  std::size_t at = 0;
  bool stamped = false;
  for (int pieces = 0; pieces < 24; ++pieces) {
    auto next = at;
    while (next < line.size() && is_blank(line[next])) ++next;
    const auto n = log_prefix::piece(line.substr(next), p, stamped);
    if (n == 0) break;
    at = p.length = next + n;
  }
  if (p.length > 0 && p.length < line.size() && line[p.length] == ' ') ++p.length;
  return p;
}

}  // namespace vlmest::diagnose
