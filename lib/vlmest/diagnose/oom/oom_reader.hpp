// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/oom/allocation_site.hpp>
#include <vlmest/diagnose/oom/oom_candidates.hpp>
#include <vlmest/diagnose/oom/oom_figures.hpp>
#include <vlmest/diagnose/oom/oom_group.hpp>
#include <vlmest/diagnose/oom/oom_message.hpp>
#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/traceback_reader.hpp>

/// Out-of-memory messages of a text: an error alone, a terminal's output, the log of a cluster. Time and memory grow
/// with the text; no more than most_messages different messages are kept.
namespace vlmest::diagnose {

namespace oom_reader {

inline constexpr std::size_t most_messages = 2000;
inline constexpr std::size_t look_back = 256 << 10;      ///< how far a traceback may begin before its message
inline constexpr std::size_t all_look_back = 128 << 20;  ///< of all messages together

/// The lines of one writer without blanks, quotes, bars, tags and anything beyond ASCII, in lower case.
struct Squeezed {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> lines;  ///< where a line begins in text, and its number

  std::size_t line_of(std::size_t at) const {
    const auto next = std::upper_bound(lines.begin(), lines.end(), std::pair(at, std::size_t(-1)));
    return next == lines.begin() ? 0 : std::prev(next)->second;
  }
  bool line_begins(std::size_t at) const {
    return std::binary_search(lines.begin(), lines.end(), std::pair(at, std::size_t(0)),
                              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  void add(std::string_view line, std::size_t number) {
    lines.emplace_back(text.size(), number);
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '<' && i + 1 < line.size() && (is_letter(line[i + 1]) || line[i + 1] == '/')) {
        if (const auto close = line.substr(i, 40).find('>'); close != std::string_view::npos) {
          i += close;
          continue;
        }
      }
      if (c > ' ' && c < '\x7f' && std::string_view("\"'`*|").find(c) == std::string_view::npos) text += lower(c);
    }
  }
};

/// A line without a prefix belongs to the one before it; so does one that lost the inner part of its prefix, as where
/// "[default0]:[rank0]: ..." was broken before a launcher or the journal wrote its own.
inline void inherit_writers(std::vector<LogLine>& lines) {
  for (std::size_t i = 1; i < lines.size(); ++i)
    if ((lines[i].writer.empty() || lines[i - 1].writer.starts_with(lines[i].writer + ' ')) && !lines[i].text.empty()) {
      lines[i].writer = lines[i - 1].writer;
      lines[i].rank = lines[i - 1].rank;
    }
}

inline bool same_figures(const OomMessage& a, const OomMessage& b) {
  return a.backend == b.backend && a.reason == b.reason && a.requested == b.requested && a.total == b.total &&
         a.free == b.free && a.allocated == b.allocated && a.reserved == b.reserved &&
         a.reserved_unallocated == b.reserved_unallocated && a.own_process == b.own_process && a.gpu == b.gpu &&
         a.rank == b.rank && a.processes == b.processes;
}

/// Where no stack tells it, the words of a message may.
inline void site_by_words(OomMessage& m) {
  const auto set = [&](AllocationSite site, RunPhase phase) {
    if (m.site == AllocationSite::unknown) m.site = site;
    if (m.phase == RunPhase::unknown) m.phase = phase;
  };
  if (m.backend == MemoryBackend::cufft) set(AllocationSite::fft, RunPhase::unknown);
  switch (m.reason) {
    case OomReason::kv_cache_too_small:
    case OomReason::kv_cache_full: m.site = AllocationSite::kv_cache; break;
    case OomReason::compute_buffer: set(AllocationSite::unknown, RunPhase::forward); break;
    case OomReason::model_buffer: set(AllocationSite::weights, RunPhase::load_weights); break;
    default: break;
  }
}

/// The last word before the message that names an exception: "torch.cuda.OutOfMemoryError", "RuntimeError".
inline std::string exception_of(std::string_view line) {
  for (auto at = line.find("Error"); at != std::string_view::npos; at = line.find("Error", at + 5)) {
    if (at + 5 < line.size() && line[at + 5] != ':') continue;
    auto begin = at;
    while (begin > 0 && (is_letter(line[begin - 1]) || is_digit(line[begin - 1]) || line[begin - 1] == '.' ||
                         line[begin - 1] == '_'))
      --begin;
    return std::string(line.substr(begin, at + 5 - begin));
  }
  return {};
}

/// The lines of a writer before lines[first], back to its last "Traceback"; of an empty writer those without any.
inline std::vector<LogLine> lines_before(std::string_view text, const std::vector<LogLine>& known, std::size_t first,
                                         const std::string& writer, std::size_t& budget) {
  std::vector<LogLine> lines;
  bool done = false;
  const auto take = [&](const LogLine& line) {  // from the last line to the first
    if (done || (!line.writer.empty() && line.writer != writer)) return;
    done = line.text.find("Tried to allocate") != std::string::npos;
    if (done) return;
    done = begins_traceback(line.text);
    lines.push_back(line);
  };
  // Of the raw line itself: a string with line breaks in it.
  const auto end = known[first].begin;
  for (auto i = first; i > 0 && known[i - 1].begin == end; --i) take(known[i - 1]);
  const auto begin = end > look_back ? end - look_back : 0;
  for (auto at = end; at > begin && budget > 0 && !done;) {
    const auto stop = at;
    const auto limit = at > begin + (64 << 10) ? at - (64 << 10) : begin;
    --at;
    while (at > limit && text[at - 1] != '\n') --at;
    budget -= std::min(budget, stop - at);
    std::vector<LogLine> here;
    clean_line(text.substr(at, stop - at - (text[stop - 1] == '\n' ? 1 : 0)), at, here);
    for (auto line = here.rbegin(); line != here.rend(); ++line) take(*line);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

inline std::vector<Frame> frames_of(const std::vector<LogLine>& lines) {
  std::vector<std::string_view> texts;
  texts.reserve(lines.size());
  for (const auto& l : lines) texts.push_back(l.text);
  return read_frames(texts);
}

/// Frames that follow a message (ComfyUI, pytest), up to the first line that belongs to none.
inline std::vector<Frame> frames_after(const std::vector<LogLine>& lines, std::size_t from, const std::string& writer) {
  std::vector<LogLine> part;
  for (auto i = from; i < lines.size() && part.size() < 600; ++i) {
    if (!lines[i].writer.empty() && lines[i].writer != writer) continue;
    if (begins_traceback(lines[i].text)) break;
    part.push_back(lines[i]);
  }
  return frames_of(part);
}

}  // namespace oom_reader

/// Every message of the text, in its order; one that is repeated word for word counts in `times`. Never throws for what
/// the text holds.
inline std::vector<OomMessage> find_oom_messages(std::string_view text) {
  using namespace oom_reader;
  std::vector<OomMessage> messages;
  std::size_t budget = all_look_back, counted = 0;
  std::int64_t line_number = 1;
  for (const auto& range : oom_candidates_in(text)) {
    auto lines = clean_lines(text.substr(range.begin, range.end - range.begin), range.begin);
    inherit_writers(lines);
    std::vector<std::string> writers;
    for (const auto& l : lines)
      if (std::find(writers.begin(), writers.end(), l.writer) == writers.end() && writers.size() < 64)
        writers.push_back(l.writer);
    std::vector<std::pair<std::size_t, OomMessage>> here;  // by the number of their line
    for (const auto& writer : writers) {
      Squeezed s;
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (lines[i].writer == writer) s.add(lines[i].text, i);
      const auto facts = find_oom_facts(s.text, [&](std::size_t at) { return s.line_begins(at); });
      for (auto& g : group_oom_facts(facts)) {
        OomMessage& m = g.message;
        const auto first = s.line_of(g.begin), last = s.line_of(g.end > 0 ? g.end - 1 : 0);
        m.rank = lines[first].rank;
        for (auto i = first; i <= last && m.text.size() < 2000; ++i)
          if (lines[i].writer == writer) {
            if (!m.text.empty()) m.text += ' ';
            m.text += traceback_reader::trim(lines[i].text).substr(0, 2000 - m.text.size());
          }
        m.hints_expandable = s.text.substr(g.begin, g.end - g.begin + 400).find("expandable_segments") < s.text.size();
        m.traceback.exception = exception_of(lines[first].text);
        guess_own_process(m);
        const auto same = std::find_if(messages.begin(), messages.end(), [&](auto& o) { return same_figures(o, m); });
        const auto near = std::find_if(here.begin(), here.end(), [&](auto& o) { return same_figures(o.second, m); });
        if (same != messages.end() || near != here.end()) {
          ++(same != messages.end() ? *same : near->second).times;
          continue;
        }
        if (messages.size() + here.size() >= most_messages) continue;
        m.traceback.frames = frames_of(lines_before(text, lines, first, writer, budget));
        if (m.traceback.frames.empty()) m.traceback.frames = frames_after(lines, last + 1, writer);
        m.phase = run_phase(m.traceback.frames);
        // MLX computes when a value is asked for (its documentation: "Lazy Evaluation"): the stack shows where that
        // was, not what was being made.
        const bool lazy =
            m.backend == MemoryBackend::mlx ||
            (m.backend == MemoryBackend::unknown && m.text.find("maximum allowed buffer size") != std::string::npos);
        if (!lazy) m.site = allocation_site_of(m.traceback.frames);
        site_by_words(m);
        here.emplace_back(first, std::move(m));
      }
    }
    std::stable_sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [at, m] : here) {
      const auto begin = lines[at].begin;
      if (begin > counted) {
        line_number += std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                  text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
        counted = begin;
      }
      m.line = line_number;
      messages.push_back(std::move(m));
    }
  }
  return messages;
}

}  // namespace vlmest::diagnose
