// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/line_signs.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose::run_signs {

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
/// examples a second, where enough seconds are left.
inline std::optional<FoundSign> slow_map(std::string_view line, std::int64_t number) {
  const auto unit = line.find("examples");
  const auto open = line.rfind('[', unit);
  if (unit == std::string_view::npos || open == std::string_view::npos) return std::nullopt;
  const auto bar = line.substr(open, 120);
  const auto left = bar.find('<'), comma = bar.find(',');
  if (left == std::string_view::npos || comma == std::string_view::npos || comma < left) return std::nullopt;
  const double to_go = clock_seconds(bar.substr(left + 1, comma - left - 1));
  const auto rate = number_behind(bar, ", ");
  if (!rate || !cut_off::slow_map.reached(to_go) || !(to_go < 1e9) || *rate <= 0) return std::nullopt;
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
    if (first.ec != std::errc() || !(low >= 0 && low < 1e9)) continue;
    const auto rest = s.substr(static_cast<std::size_t>(first.ptr - s.data()));
    if (rest.size() > 1 && rest[0] == '-' &&
        std::from_chars(rest.data() + 1, rest.data() + rest.size(), high).ec == std::errc() && high >= low &&
        high < 1e9)
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
  if (error != std::errc() || !(gb >= 0 && gb <= 1e6)) return std::nullopt;
  at = static_cast<std::size_t>(end - line.data());
  return blanks() && at == word ? std::optional(gb) : std::nullopt;
}

/// What a line must hold to be asked for the sign behind it.
enum class LineWord : std::uint8_t {
  killed,
  examples,
  data_time,
  ray,
  second,
  operation,
  tower_ollama,
  tower,
  projector
};
inline constexpr std::array<std::string_view, 9> line_words{"illed",
                                                            "examples",
                                                            "data_time",
                                                            "ray::",
                                                            "second",
                                                            "Operation:",
                                                            "mllama_model_load:",
                                                            "clip_model_load",
                                                            "load_hparams: projector"};

VLMEST_INLINE void LineSigns::add(std::string_view line, std::int64_t number) {
  if (line.empty()) return;
  static constexpr WordScan words(line_words);
  const auto in = words.in(line);
  const auto has = [&](LineWord w) { return in[static_cast<std::size_t>(w)]; };
  if (has(LineWord::killed) && is_killed_line(line))
    found.push_back(
        {.sign = RunSign::killed, .line = number, .text = std::string(line.substr(0, 300)), .numbers = {}, .note = {}});
  if (auto f = has(LineWord::examples) ? slow_map(line, number) : std::nullopt) found.push_back(std::move(*f));
  if (has(LineWord::data_time)) loader.add(line, number);
  if (const auto gb = has(LineWord::ray) ? ray_process_gb(line) : std::nullopt) {
    ray_gb += *gb;
    ++ray_rows;
    ray_line = number;
    ray_text = line.substr(0, 300);
  }
  if (const auto s = has(LineWord::second) ? seconds_of(line) : std::nullopt) {
    const std::string low = log_prefix::lower_case(line.substr(0, 400));
    longest = std::max(longest, *s);
    for (const std::string_view w : {"preproc", "image proc", "tokeniz", "data load", "dataload", "decod", "augment"})
      if (low.find(w) != std::string::npos && *s > preparing) {
        preparing = *s;
        seconds_line = number;
        seconds_text = line.substr(0, 300);
      }
  }
  // free(1) of procps: total, used, free, shared, buff/cache, available.
  if (line.substr(0, 8).find("Mem:") != std::string_view::npos) {
    std::array<double, 6> n{};
    std::size_t at = line.find("Mem:") + 4, count = 0;
    for (; count < n.size(); ++count) {
      while (at < line.size() && is_blank(line[at])) ++at;
      const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), n[count]);
      if (error != std::errc()) break;
      at = static_cast<std::size_t>(end - line.data());
      while (at < line.size() && is_letter(line[at])) ++at;  // "502Gi" of free -h
    }
    if (count == n.size() && n[0] > 0 && n[5] <= n[0]) {
      host_total = n[0];
      host_available = n[5];
    }
  }
  // ollama's runner/ollamarunner/runner.go prints its LoadRequest for every attempt.
  if (has(LineWord::operation) && (line.find("Operation:fit") != std::string_view::npos ||
                                   line.find("Operation:alloc") != std::string_view::npos)) {
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
  if (has(LineWord::tower_ollama) || has(LineWord::tower) || has(LineWord::projector)) {
    towers_end = true;
    tower_line = number;
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
                     .numbers = {0, 0, 0, static_cast<double>(ray_rows), std::min(ray_gb, 1e8) * (1 << 30)},
                     .note = {}});
  const double share = loader.rows > 0 ? loader.data / loader.all : 0;
  const bool waits = loader.rows > 0 && cut_off::waiting.reached(share);
  if (waits || (loader.rows > 0 && loader.of_model == loader.rows && !cut_off::not_waiting.reached(share)))
    found.push_back(
        {.sign = waits ? RunSign::slow_loader : RunSign::busy_model,
         .line = loader.line,
         .text = {},
         .numbers = {loader.data / static_cast<double>(loader.rows), loader.all / static_cast<double>(loader.rows)},
         .note = {}});
  if (longest > preparing && cut_off::waiting.reached(preparing / longest))
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
    found.push_back(
        {.sign = RunSign::tower_loading, .line = tower_line, .text = tower_text, .numbers = {}, .note = {}});
}

}  // namespace vlmest::diagnose::run_signs
