// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace cut_stack {

/// Frames that a page glued into one line, "[rank0]: File ... [rank0]: code", a line each.
inline void add_unglued(std::string_view line, std::vector<std::string>& lines) {
  const auto first = line.find("File \"");
  const bool glued = first != std::string_view::npos && line.find("File \"", first + 6) != std::string_view::npos;
  if (!glued) {
    lines.emplace_back(line);
    return;
  }
  for (std::size_t at = 0; at < line.size();) {
    auto end = std::min({line.find(" File \"", at + 1), line.find(" [rank", at + 1), line.size()});
    auto piece = traceback_reader::trim(line.substr(at, end - at));
    if (piece.starts_with("[rank"))
      if (const auto colon = piece.find("]:"); colon != std::string_view::npos)
        piece = traceback_reader::trim(piece.substr(colon + 2));
    if (!piece.empty()) lines.push_back((piece.starts_with("File ") ? "  " : "    ") + std::string(piece));
    at = end;
  }
}

/// "KeyError: 'image'", "torch.OutOfMemoryError: ..."; empty where a line is none.
inline std::string_view exception_line(std::string_view line) {
  line = traceback_reader::trim(line);
  std::size_t end = 0;
  while (end < line.size() && (is_letter(line[end]) || is_digit(line[end]) || line[end] == '.' || line[end] == '_'))
    ++end;
  const auto name = line.substr(0, end);
  const bool is = name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt");
  return is && (end == line.size() || line[end] == ':') ? line : std::string_view();
}

/// Words in lower case that say that memory ran out.
inline constexpr auto of_lack = std::to_array<std::string_view>({
    "out of memory",
    "outofmemory",
    "out-of-memory",
    "memoryerror",
    "out of vram",
    "out of gpu memory",
    "out of cuda memory",
    "out of ram",
    "out of video memory",
    "not enough memory",
    "not enough gpu memory",
    "insufficient memory",
    "insufficient vram",
    "not enough vram",
    "insufficient gpu memory",
    "cannot allocate memory",
    "exceeds memory",
    "显存",
    "内存不足",
    "爆内存",
});

}  // namespace cut_stack

VLMEST_INLINE bool says_out_of_memory(std::string_view text) {
  constexpr std::size_t most = 4 << 20;
  if (text.size() > most) text.remove_prefix(text.size() - most);
  const std::string low = log_prefix::lower_case(text);
  static constexpr WordScan scan(cut_stack::of_lack);
  if (scan.any(low)) return true;
  const auto part = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  for (auto at = low.find("oom"); at != std::string::npos; at = low.find("oom", at + 3)) {
    auto end = at + 3;  // "OOMs", "OOMed", "OOMing"
    for (const std::string_view w : {"ing", "ed", "s"})
      if (low.compare(end, w.size(), w) == 0) {
        end += w.size();
        break;
      }
    if ((at == 0 || !part(low[at - 1])) && (end == low.size() || !part(low[end]))) return true;
  }
  return false;
}

VLMEST_INLINE std::optional<CutStack> find_cut_stack(std::string_view text) {
  constexpr std::size_t most = 256 << 10;
  std::size_t skipped = 0;
  if (text.size() > most) skipped = std::min(text.find('\n', text.size() - most), text.size() - 1) + 1;
  std::vector<std::string> lines;
  std::size_t last = 0, last_at = skipped;
  for (const LogLine& l : clean_lines(text.substr(skipped), skipped)) {
    const auto before = lines.size();
    cut_stack::add_unglued(l.text, lines);
    for (auto i = before; i < lines.size(); ++i)
      if (traceback_reader::python_frame(traceback_reader::trim(lines[i]))) {
        last = i;
        last_at = l.begin;
      }
  }
  CutStack s;
  std::vector<std::string_view> views(lines.begin(), lines.end());
  s.frames = read_frames(views);
  if (s.frames.empty()) return std::nullopt;
  s.line = 1 + line_ends(text, last_at);
  for (auto i = last + 1; i < lines.size(); ++i)
    if (const auto e = cut_stack::exception_line(lines[i]); !e.empty()) {
      s.ended_by = e.substr(0, 200);
      break;
    }
  // Somebody's Ctrl-C tells only where the program was.
  if (says_out_of_memory(s.ended_by) || s.ended_by.starts_with("KeyboardInterrupt")) s.ended_by.clear();
  return s;
}

}  // namespace vlmest::diagnose
