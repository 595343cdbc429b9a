// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/oom/candidates.hpp>
#include <vlmest/diagnose/evidence/oom/facts.hpp>
#include <vlmest/diagnose/evidence/oom/figures.hpp>
#include <vlmest/diagnose/evidence/oom/message.hpp>
#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/diagnose/evidence/stack/traceback_reader.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>

/// Out-of-memory messages of a text: an error alone, a terminal's output, the log of a cluster. Time and memory grow
/// with the text; no more than most_messages different messages are kept.
namespace vlmest::diagnose {

namespace oom_reader {

inline constexpr std::size_t most_messages = 2000;
inline constexpr std::size_t look_back = 256 << 10;      ///< how far a traceback may begin before its message
inline constexpr std::size_t all_look_back = 128 << 20;  ///< of all messages together

/// Of each character what stands for it in a squeezed line; 0: nothing.
consteval std::array<char, 256> squeezed_characters() {
  std::array<char, 256> to{};
  for (char c = ' ' + 1; c < '\x7f'; ++c)
    if (std::string_view("\"'`*|").find(c) == std::string_view::npos) to[static_cast<unsigned char>(c)] = lower(c);
  return to;
}
inline constexpr auto squeezed_character = squeezed_characters();

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
    std::size_t end = text.size();
    text.resize(end + line.size());
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '<' && i + 1 < line.size() && (is_letter(line[i + 1]) || line[i + 1] == '/')) {
        if (const auto close = line.substr(i, 40).find('>'); close != std::string_view::npos) {
          i += close;
          continue;
        }
      }
      if (const char kept = squeezed_character[static_cast<unsigned char>(c)]; kept != 0) text[end++] = kept;
    }
    text.resize(end);
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

/// Equal for messages with the same figures.
inline std::size_t hash_of(const OomMessage& m) {
  std::size_t h = static_cast<std::size_t>(m.backend);
  for (const auto* size : {&m.requested, &m.total, &m.free, &m.allocated, &m.reserved_unallocated, &m.own_process})
    h = (h ^ static_cast<std::size_t>(*size ? (*size)->value.value() + 1 : 0)) * 0x9e3779b97f4a7c15u;
  for (const std::int64_t n : {m.gpu.value_or(-1), m.rank.value_or(-1)})
    h = (h ^ static_cast<std::size_t>(n)) * 0x9e3779b97f4a7c15u;
  return h;
}

/// Where no stack tells it, the words of a message may.
void site_by_words(OomMessage& m);

/// The last word before the message that names an exception: "torch.cuda.OutOfMemoryError", "RuntimeError".
std::string exception_of(std::string_view line);

/// The lines of a writer before lines[first], back to its last "Traceback"; of an empty writer those without any.
std::vector<LogLine> lines_before(std::string_view text, const std::vector<LogLine>& known, std::size_t first,
                                  const std::string& writer, std::size_t& budget);

inline std::vector<Frame> frames_of(const std::vector<LogLine>& lines) {
  std::vector<std::string_view> texts;
  texts.reserve(lines.size());
  for (const auto& l : lines) texts.push_back(l.text);
  return read_frames(texts);
}

/// Frames that follow a message (ComfyUI, pytest), up to the first line that belongs to none, and before lines[until],
/// where the next message begins.
std::vector<Frame> frames_after(const std::vector<LogLine>& lines, std::size_t from, std::size_t until,
                                const std::string& writer);

/// The source line that somebody pasted without its stack, right before a message.
std::vector<Frame> source_before(const std::vector<LogLine>& lines, std::size_t first, const std::string& writer);

}  // namespace oom_reader

/// Every message of the text, in its order; one that is repeated word for word counts in `times`. Never throws for what
/// the text holds.
std::vector<OomMessage> find_oom_messages(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/oom/impl/reader.hpp>
#endif
