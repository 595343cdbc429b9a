// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include <vlmest/diagnose/evidence/oom/group.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/evidence/stack/source_line.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace oom_reader {

VLMEST_INLINE void site_by_words(OomMessage& m) {
  const auto set = [&](AllocationSite site, RunPhase phase) {
    if (m.site == AllocationSite::unknown) m.site = site;
    if (m.phase == RunPhase::unknown) m.phase = phase;
  };
  // A line that says while doing what it failed (vLLM: executor/multiproc_worker_utils.py) knows more than frames
  // below.
  for (const char* profile : {"determine_num_available_blocks", "determine_available_memory", "profile_run"})
    if (m.text.find(profile) != std::string::npos) m.phase = RunPhase::server_profile;
  if (m.backend == MemoryBackend::cufft) set(AllocationSite::fft, RunPhase::unknown);
  // TensorFlow names the op; these fill variables when they are made (tensorflow/python/ops/random_ops.py).
  for (const char* op : {"Op:Random", "/RandomUniform", "/RandomStandardNormal", "/TruncatedNormal", "Initializer/"})
    if (m.backend == MemoryBackend::jax && m.text.find(op) != std::string::npos)
      set(AllocationSite::weights, RunPhase::load_weights);
  switch (m.reason) {
    case OomReason::kv_cache_too_small:
    case OomReason::share_too_small:
    case OomReason::kv_cache_full: m.site = AllocationSite::kv_cache; break;
    case OomReason::compute_buffer: set(AllocationSite::unknown, RunPhase::forward); break;
    case OomReason::model_buffer: set(AllocationSite::weights, RunPhase::load_weights); break;
    default: break;
  }
}

VLMEST_INLINE std::string exception_of(std::string_view line) {
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

VLMEST_INLINE std::vector<LogLine> lines_before(std::string_view text, const std::vector<LogLine>& known,
                                                std::size_t first, const std::string& writer, std::size_t& budget) {
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

VLMEST_INLINE std::vector<Frame> frames_after(const std::vector<LogLine>& lines, std::size_t from, std::size_t until,
                                              const std::string& writer) {
  std::vector<LogLine> part;
  for (auto i = from; i < until && part.size() < 600; ++i) {
    if (!lines[i].writer.empty() && lines[i].writer != writer) continue;
    if (begins_traceback(lines[i].text)) break;
    part.push_back(lines[i]);
  }
  return frames_of(part);
}

VLMEST_INLINE std::vector<Frame> source_before(const std::vector<LogLine>& lines, std::size_t first,
                                               const std::string& writer) {
  std::vector<std::string_view> before;
  for (auto i = first > 4 ? first - 4 : 0; i < first; ++i)
    if ((lines[i].writer.empty() || lines[i].writer == writer) && !lines[i].text.empty())
      before.push_back(lines[i].text);
  std::vector<Frame> r;
  if (auto f = bare_source_line(before)) r.push_back(*std::move(f));
  return r;
}

/// Processes write over one another: source that stands on the message's own line, behind the last of torch's words.
inline std::vector<Frame> source_within(std::string_view message) {
  std::vector<Frame> r;
  for (const std::string_view last : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (const auto at = message.rfind(last); r.empty() && at != std::string_view::npos)
      if (auto f = bare_source_line({message.substr(at + last.size())})) r.push_back(*std::move(f));
  return r;
}

}  // namespace oom_reader

VLMEST_INLINE std::vector<OomMessage> find_oom_messages(std::string_view text) {
  using namespace oom_reader;
  std::vector<OomMessage> messages;
  std::unordered_multimap<std::size_t, std::size_t> known;  // a message's place, by its figures
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
      auto groups = group_oom_facts(facts);
      for (auto g = groups.begin(); g != groups.end(); ++g) {
        OomMessage& m = g->message;
        const auto first = s.line_of(g->begin), last = s.line_of(g->end > 0 ? g->end - 1 : 0);
        m.rank = lines[first].rank;
        for (auto i = first; i <= last && m.text.size() < 2000; ++i)
          if (lines[i].writer == writer) {
            if (!m.text.empty()) m.text += ' ';
            m.text += traceback_reader::trim(lines[i].text).substr(0, 2000 - m.text.size());
          }
        // Without the function that ggml names before it, "allocating N MiB on device 0" is no figure of its own.
        if (const auto at = m.text.find("llocating ");
            m.backend == MemoryBackend::ggml && !m.requested && at < m.text.size())
          if (const auto found = size_at(m.text, at + 10); found && found->size) {
            m.requested = found->size;
            m.has_numbers = true;
          }
        m.hints_expandable =
            s.text.substr(g->begin, g->end - g->begin + 400).find("expandable_segments") < s.text.size();
        m.traceback.exception = exception_of(lines[first].text);
        guess_own_process(m);
        const auto alike = known.equal_range(hash_of(m));
        const auto same =
            std::find_if(alike.first, alike.second, [&](auto& o) { return same_figures(messages[o.second], m); });
        const auto near = std::find_if(here.begin(), here.end(), [&](auto& o) { return same_figures(o.second, m); });
        OomMessage* const earlier = same != alike.second ? &messages[same->second]
                                    : near != here.end() ? &near->second
                                                         : nullptr;
        if (earlier != nullptr) {
          ++earlier->times;
          // A title repeats the error whose stack is farther down; a log that repeats itself has none.
          constexpr std::int64_t most_titles = 3;
          if (tells_more_than_figures(*earlier) || earlier->times > most_titles) continue;
        } else if (messages.size() + here.size() >= most_messages) {
          continue;
        }
        m.traceback.frames = frames_of(lines_before(text, lines, first, writer, budget));
        const auto next = g + 1 != groups.end() ? s.line_of((g + 1)->begin) : lines.size();
        if (m.traceback.frames.empty()) m.traceback.frames = frames_after(lines, last + 1, next, writer);
        if (m.traceback.frames.empty()) m.traceback.frames = source_before(lines, first, writer);
        if (m.traceback.frames.empty()) m.traceback.frames = source_within(m.text);
        m.phase = run_phase(m.traceback.frames);
        // MLX computes when a value is asked for (its documentation: "Lazy Evaluation"): the stack shows where that
        // was, not what was being made.
        const bool lazy =
            m.backend == MemoryBackend::mlx ||
            (m.backend == MemoryBackend::unknown && m.text.find("maximum allowed buffer size") != std::string::npos);
        if (!lazy) m.site = allocation_site_of(m.traceback.frames);
        site_by_words(m);
        // vLLM writes what it was doing on the line before its error (executor/multiproc_worker_utils.py).
        for (auto i = first > 3 ? first - 3 : 0; i < first; ++i)
          if (lines[i].writer == writer && lines[i].text.find("method determine_num_available_blocks") < 400)
            m.phase = RunPhase::server_profile;
        if (earlier != nullptr) {
          earlier->traceback = std::move(m.traceback);
          earlier->phase = m.phase;
          earlier->site = m.site;
          continue;
        }
        here.emplace_back(first, std::move(m));
      }
    }
    sort_stably(here, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [at, m] : here) {
      const auto begin = lines[at].begin;
      if (begin > counted) {
        line_number += line_ends(text.substr(counted), begin - counted);
        counted = begin;
      }
      m.line = line_number;
      known.emplace(hash_of(m), messages.size());
      messages.push_back(std::move(m));
    }
  }
  return messages;
}

}  // namespace vlmest::diagnose
