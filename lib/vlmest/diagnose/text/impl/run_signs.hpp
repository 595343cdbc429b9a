// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <vlmest/diagnose/text/log_prefix.hpp>
#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/run_signs.hpp>
#include <vlmest/diagnose/text/size_text.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace run_signs {

VLMEST_INLINE bool is_killed_line(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  if (const auto word = line.find(" Killed "); word != std::string_view::npos && word > 0)
    return line.substr(0, word).find(": line ") != std::string_view::npos;
  if (!line.ends_with("Killed") && !line.ends_with("killed")) return false;
  line.remove_suffix(6);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line.empty() || line.back() == ']' || line == ">" || line == "$" ||
         (line.back() == ':' && line.find("zsh") != std::string_view::npos) ||
         (line.find(": line ") != std::string_view::npos);
}

inline std::string_view line_at(std::string_view text, std::size_t at) {
  const auto begin = text.rfind('\n', at);
  const auto from = begin == std::string_view::npos ? 0 : begin + 1;
  return text.substr(from, std::min(text.find('\n', at), text.size()) - from);
}

/// The number right behind `words` in a line.
inline std::optional<double> number_behind(std::string_view line, std::string_view words) {
  const auto at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  auto s = line.substr(at + words.size(), 40);
  while (!s.empty() && (is_blank(s.front()) || s.front() == ':' || s.front() == '=' || s.front() == '('))
    s.remove_prefix(1);
  double v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error == std::errc() && end != s.data() && v == v && v < 1e18 ? std::optional(v) : std::nullopt;
}

inline std::optional<double> size_behind(std::string_view line, std::string_view words) {
  const auto at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const auto found = size_at(line, at + words.size());
  if (!found || !found->size) return std::nullopt;
  return static_cast<double>(found->size->value.value());
}

/// "7:24:20", "01:34" or "2 days, 3:00:00" of a bar, in seconds.
inline double clock_seconds(std::string_view s) {
  double seconds = 0, part = 0;
  for (const char c : s) {
    if (is_digit(c)) part = part * 10 + (c - '0');
    if (c == ':') {
      seconds = (seconds + part) * 60;
      part = 0;
    }
    if (!is_digit(c) && c != ':') break;
  }
  return seconds + part;
}

/// tqdm's "8%|x| 848000/10962585 [38:04<7:24:20, 379.39 examples/s]", which datasets' map() prints: seconds to go and
/// examples a second, where more than `least` seconds are left.
inline std::optional<FoundSign> slow_map(std::string_view line, std::int64_t number, double least) {
  const auto unit = line.find("examples");
  const auto open = line.rfind('[', unit);
  if (unit == std::string_view::npos || open == std::string_view::npos) return std::nullopt;
  const auto bar = line.substr(open, 120);
  const auto left = bar.find('<'), comma = bar.find(',');
  if (left == std::string_view::npos || comma == std::string_view::npos || comma < left) return std::nullopt;
  const double to_go = clock_seconds(bar.substr(left + 1, comma - left - 1));
  const auto rate = number_behind(bar, ", ");
  if (!rate || to_go < least) return std::nullopt;
  FoundSign f{.sign = RunSign::slow_map,
              .line = number,
              .text = std::string(line.substr(0, 300)),
              .numbers = {to_go, *rate},
              .note = {}};
  f.numbers.push_back(number_behind(line, "num_proc=").value_or(0));
  return f;
}

/// What a line says of seconds: their middle, where the line has "N s", "N seconds" or "N-M seconds".
inline std::optional<double> seconds_of(std::string_view line) {
  for (auto at = line.find("second"); at != std::string_view::npos; at = line.find("second", at + 6)) {
    auto end = at;
    while (end > 0 && (is_blank(line[end - 1]) || line[end - 1] == '-')) --end;
    auto begin = end;
    while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == '.' || line[begin - 1] == '-')) --begin;
    const auto s = line.substr(begin, end - begin);
    double low = 0, high = 0;
    const auto first = std::from_chars(s.data(), s.data() + s.size(), low);
    if (first.ec != std::errc()) continue;
    const auto rest = s.substr(static_cast<std::size_t>(first.ptr - s.data()));
    if (rest.size() > 1 && rest[0] == '-' &&
        std::from_chars(rest.data() + 1, rest.data() + rest.size(), high).ec == std::errc() && high >= low)
      return (low + high) / 2;
    return low;
  }
  return std::nullopt;
}

/// A process of ray's list of the largest: "PID  MEM(GB)  COMMAND", ray::NAME (ray/_private/memory_monitor.py,
/// get_top_n_memory_usage; src/ray/common/memory_monitor.cc).
inline std::optional<double> ray_process_gb(std::string_view line) {
  const auto word = line.find("ray::");
  if (word == std::string_view::npos) return std::nullopt;
  std::size_t at = 0;
  const auto blanks = [&] {
    const auto from = at;
    while (at < word && is_blank(line[at])) ++at;
    return at > from;
  };
  blanks();
  const auto pid = at;
  while (at < word && is_digit(line[at])) ++at;
  if (at == pid || !blanks()) return std::nullopt;
  double gb = 0;
  const auto [end, error] = std::from_chars(line.data() + at, line.data() + word, gb);
  if (error != std::errc() || gb < 0 || gb > 1e6) return std::nullopt;
  at = static_cast<std::size_t>(end - line.data());
  return blanks() && at == word ? std::optional(gb) : std::nullopt;
}

/// Pairs of data_time and time of OpenMMLab (mmengine/hooks/logger_hook.py) and detectron2 (utils/events.py).
struct LoaderTimes {
  double data = 0, all = 0;
  std::int64_t rows = 0, line = 0;
  void add(std::string_view text, std::int64_t number) {
    const auto data_time = number_behind(text, "data_time");
    std::optional<double> time;
    for (auto at = text.find("time"); at != std::string_view::npos && !time; at = text.find("time", at + 4))
      if (at == 0 || is_blank(text[at - 1]) || text[at - 1] == '"' || text[at - 1] == ',')
        time = number_behind(text.substr(at), "time");
    if (!data_time || !time || *time <= 0 || *data_time < 0) return;
    data += *data_time;
    all += *time;
    line = number;
    ++rows;
  }
};

/// What only whole lines tell.
struct LineSigns {
  std::vector<FoundSign> found;
  LoaderTimes loader;
  double ray_gb = 0, longest = 0, preparing = 0;
  std::int64_t ray_rows = 0, ray_line = 0, seconds_line = 0, fits = 0, fit_line = 0;
  double kv_size = 0, first_layers = 0, last_layers = 0, tower_line = 0;
  bool towers_end = false;
  std::string seconds_text, fit_text, tower_text, ray_text;

  void add(std::string_view line, std::int64_t number);
  void finish();
};

VLMEST_INLINE void LineSigns::add(std::string_view line, std::int64_t number) {
  if (is_killed_line(line))
    found.push_back(
        {.sign = RunSign::killed, .line = number, .text = std::string(line.substr(0, 300)), .numbers = {}, .note = {}});
  if (auto f = slow_map(line, number, 1800)) found.push_back(std::move(*f));
  loader.add(line, number);
  if (const auto gb = ray_process_gb(line)) {
    ray_gb += *gb;
    ++ray_rows;
    ray_line = number;
    ray_text = line.substr(0, 300);
  }
  if (const auto s = seconds_of(line)) {
    const std::string low = log_prefix::lower_case(line.substr(0, 400));
    longest = std::max(longest, *s);
    for (const std::string_view w : {"preproc", "image proc", "tokeniz", "data load", "dataload", "decod", "augment"})
      if (low.find(w) != std::string::npos && *s > preparing) {
        preparing = *s;
        seconds_line = number;
        seconds_text = line.substr(0, 300);
      }
  }
  // ollama's runner/ollamarunner/runner.go prints its LoadRequest for every attempt.
  if (line.find("Operation:fit") != std::string_view::npos || line.find("Operation:alloc") != std::string_view::npos) {
    kv_size = number_behind(line, "KvSize:").value_or(kv_size);
    if (const auto layers = number_behind(line, "GPULayers:")) {
      if (fits == 0) first_layers = *layers;
      last_layers = *layers;
      ++fits;
      fit_line = number;
      fit_text = line.substr(0, 300);
    }
  }
  // llama.cpp's tools/mtmd/clip.cpp and ollama's mllama.cpp name what they load before they allocate it.
  if (line.find("mllama_model_load:") != std::string_view::npos ||
      line.find("clip_model_load") != std::string_view::npos ||
      line.find("load_hparams: projector") != std::string_view::npos) {
    towers_end = true;
    tower_line = static_cast<double>(number);
    tower_text = line.substr(0, 300);
  } else if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
    towers_end = false;
  }
}

VLMEST_INLINE void LineSigns::finish() {
  if (ray_rows > 1)
    found.push_back({.sign = RunSign::ray_killed,
                     .line = ray_line,
                     .text = ray_text,
                     .numbers = {0, 0, 0, static_cast<double>(ray_rows), ray_gb * (1 << 30)},
                     .note = {}});
  if (loader.rows > 0 && loader.data > 0.4 * loader.all)
    found.push_back(
        {.sign = RunSign::slow_loader,
         .line = loader.line,
         .text = {},
         .numbers = {loader.data / static_cast<double>(loader.rows), loader.all / static_cast<double>(loader.rows)},
         .note = {}});
  if (preparing > 0.4 * longest && longest > preparing)
    found.push_back({.sign = RunSign::slow_steps_words,
                     .line = seconds_line,
                     .text = seconds_text,
                     .numbers = {preparing, longest},
                     .note = {}});
  if (fits > 1 && last_layers < first_layers)
    found.push_back({.sign = RunSign::layers_taken_back,
                     .line = fit_line,
                     .text = fit_text,
                     .numbers = {kv_size, first_layers, last_layers},
                     .note = {}});
  if (towers_end)
    found.push_back({.sign = RunSign::tower_loading,
                     .line = static_cast<std::int64_t>(tower_line),
                     .text = tower_text,
                     .numbers = {},
                     .note = {}});
}

inline void add_figures(FoundSign& f) {
  const std::string_view line = f.text;
  switch (f.sign) {
    case RunSign::image_beyond_cache:
      if (const auto n = number_behind(line, "item with length"), c = number_behind(line, "encoder cache size"); n && c)
        f.numbers = {*n, *c};
      break;
    case RunSign::system_memory:
      if (const auto n = size_behind(line, "system memory ("), a = size_behind(line, "available ("); n && a)
        f.numbers = {*n, *a};
      break;
    case RunSign::ray_killed: {
      // "was 243.20GB / 256.00GB (0.95), which exceeds the memory usage threshold of 0.95"
      const auto used = size_behind(line, "running was "), node = size_behind(line, " / ");
      const auto most = number_behind(line, "threshold of");
      if (used && node) f.numbers = {*used, *node, most.value_or(0)};
      break;
    }
    default: break;
  }
}

}  // namespace run_signs

VLMEST_INLINE Cause cause_of(RunSign s) {
  switch (s) {
    case RunSign::image_beyond_cache: return Cause::encoder_cache;
    case RunSign::system_memory:
    case RunSign::ray_killed:
    case RunSign::killed:
    case RunSign::shared_memory:
    case RunSign::data_worker_died:
    case RunSign::worker_pool_died:
    case RunSign::paging_file:
    case RunSign::pinned_memory:
    case RunSign::ray_died:
    case RunSign::host_killed_words:
    case RunSign::processor_cache: return Cause::host_memory;
    case RunSign::sleeping_engine:
    case RunSign::static_budget:
    case RunSign::turbomind_budget:
    case RunSign::metal_commands: return Cause::engine_budget;
    case RunSign::server_profile: return Cause::profile_run;
    case RunSign::engine_weights: return Cause::weights;
    case RunSign::optimizer_set_up: return Cause::optimizer_state;
    case RunSign::layers_taken_back: return Cause::kv_cache;
    case RunSign::tower_loading: return Cause::vision_tiles;
    case RunSign::slow_map:
    case RunSign::slow_loader:
    case RunSign::slow_steps_words:
    case RunSign::few_workers: return Cause::slow_data;
  }
  return Cause::unknown;
}

VLMEST_INLINE std::vector<FoundSign> find_run_signs(std::string_view text) {
  using namespace run_signs;
  constexpr std::size_t most = 16 << 20;
  std::size_t skipped = 0;
  if (text.size() > most) {
    skipped = std::min(text.find('\n', text.size() - most), text.size() - 1) + 1;
  }
  const auto whole = text;
  text.remove_prefix(skipped);
  const auto first_line = 1 + std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(skipped), '\n');
  LineSigns lines;
  auto number = first_line;
  for (std::size_t at = 0; at < text.size(); ++number)
    if (auto line = next_counted_line(text, at); line.size() < (64 << 10)) {
      // Of a bar that writes over itself, the last state.
      while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (const auto bar = line.rfind('\r'); bar != std::string_view::npos) line.remove_prefix(bar + 1);
      lines.add(line, number);
    }
  lines.finish();
  std::vector<FoundSign> all = std::move(lines.found);
  for (const auto& w : sign_words) {
    const auto at = text.find(w.words);
    if (at == std::string_view::npos || (!w.also.empty() && whole.find(w.also) == std::string_view::npos)) continue;
    FoundSign f{.sign = w.sign,
                .line = first_line + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                .text = std::string(line_at(text, at).substr(0, 2000)),
                .numbers = {},
                .note = {}};
    add_figures(f);
    f.text.resize(std::min<std::size_t>(f.text.size(), 300));
    all.push_back(std::move(f));
  }
  std::stable_sort(all.begin(), all.end(), [](const FoundSign& a, const FoundSign& b) {
    return std::pair(a.sign, b.numbers.size()) < std::pair(b.sign, a.numbers.size());
  });
  all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sign == b.sign; }),
            all.end());
  return all;
}

}  // namespace vlmest::diagnose
