// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/run_sign.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>

/// Signs that whole lines tell, one by one or together.
namespace vlmest::diagnose::run_signs {

/// The number right behind `words` in a line.
inline std::optional<double> number_behind(std::string_view line, std::string_view words) {
  const auto at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  auto s = line.substr(at + words.size(), 40);
  while (!s.empty() && (is_blank(s.front()) || s.front() == ':' || s.front() == '=' || s.front() == '('))
    s.remove_prefix(1);
  double v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error == std::errc() && end != s.data() && v > -1e15 && v < 1e15 ? std::optional(v) : std::nullopt;
}

inline std::optional<double> size_behind(std::string_view line, std::string_view words) {
  const auto at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const auto found = size_at(line, at + words.size());
  if (!found || !found->size) return std::nullopt;
  return static_cast<double>(found->size->value.value());
}

/// "Killed", alone, behind a shell's or a bar's words, or quoted: "run.sh: line 28:  8156 Killed  python x.py",
/// "| 3/4 [01:34<00:31, 31.54s/it]Killed", "> Killed".
bool is_killed_line(std::string_view line);

/// Pairs of data_time and time of OpenMMLab (mmengine/hooks/logger_hook.py) and detectron2 (utils/events.py), or of
/// data_times and model_times, the time of the model alone (starVLA, training/train_starvla.py).
struct LoaderTimes {
  double data = 0, all = 0;
  std::int64_t rows = 0, line = 0;
  std::int64_t of_model = 0;  ///< rows that give the model's time apart
  void add(std::string_view text, std::int64_t number) {
    auto data_time = number_behind(text, "data_time");
    if (!data_time) data_time = number_behind(text, "data_times");
    auto model = number_behind(text, "model_time");
    if (!model) model = number_behind(text, "model_times");
    std::optional<double> time;
    const bool apart = model && data_time && *model >= 0;
    if (apart) time = *model + *data_time;
    for (auto at = text.find("time"); at != std::string_view::npos && !time; at = text.find("time", at + 4))
      if (at == 0 || is_blank(text[at - 1]) || text[at - 1] == '"' || text[at - 1] == ',')
        time = number_behind(text.substr(at), "time");
    if (!data_time || !time || *time <= 0 || *data_time < 0) return;
    data += *data_time;
    all += *time;
    line = number;
    ++rows;
    of_model += apart;
  }
};

/// What only whole lines tell.
struct LineSigns {
  std::vector<FoundSign> found;
  LoaderTimes loader;
  double ray_gb = 0, longest = 0, preparing = 0;
  std::int64_t ray_rows = 0, ray_line = 0, seconds_line = 0, fits = 0, fit_line = 0;
  double host_total = 0, host_available = 0;
  double kv_size = 0, first_layers = 0, last_layers = 0;
  std::int64_t tower_line = 0;
  bool towers_end = false;
  std::string seconds_text, fit_text, tower_text, ray_text;

  void add(std::string_view line, std::int64_t number);
  void finish();
};

}  // namespace vlmest::diagnose::run_signs

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/line_signs.hpp>
#endif
