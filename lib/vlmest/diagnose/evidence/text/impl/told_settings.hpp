// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/sentence.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/told_settings.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace told_setting {

/// Words with the number that they stand beside, in lower case.
struct Phrase {
  std::string_view words;
  const char* flag;
  bool number_first = false;
  std::int64_t most = 0;
};
inline constexpr auto phrases = std::to_array<Phrase>({
    {"batch size", "--batch", false, 4096},
    {"batch-size", "--batch", false, 4096},
    {"batchsize", "--batch", false, 4096},
    {"batch_size", "--batch", false, 4096},
    {" bs", "--batch", false, 4096},
    {"gradient accumulation", "--gradient-accumulation", false, 4096},
    {"lora rank", "--lora", false, 1024},
    {"lora_rank", "--lora", false, 1024},
    {"sequence length", "--seq", false, 1 << 20},
    {"seq length", "--seq", false, 1 << 20},
    {"seq_len", "--seq", false, 1 << 20},
    {"max length", "--seq", false, 1 << 20},
    {"max_length", "--seq", false, 1 << 20},
    {"context length", "--seq", false, 1 << 20},
    {"context size", "--seq", false, 1 << 20},
    {"context of", "--seq", false, 1 << 20},
    {"序列长度", "--seq", false, 1 << 20},
    {"最大长度", "--seq", false, 1 << 20},
    {" frames", "--frames", true, 4096},
    {"帧", "--frames", true, 4096},
    {" images", "--images", true, 256},
    {"张图", "--images", true, 256},
});

/// Words that may stand between a phrase and its number.
inline constexpr std::array<std::string_view, 18> between{" ",     "=",     ":",    "of ",    "is ",      "to ",
                                                          "set ",  "down ", "was ", "steps ", "per gpu ", "per device ",
                                                          "only ", "just ", "为",   "设置",   "设",       "是"};

/// A whole number that begins at `at`: "4096", "4,096", "32k". It moves past it.
inline std::optional<std::int64_t> number_at(std::string_view s, std::size_t& at) {
  std::int64_t n = 0;
  const auto begin = at;
  while (at < s.size() && at - begin < 9 && (is_digit(s[at]) || (s[at] == ',' && at > begin))) {
    if (is_digit(s[at])) n = n * 10 + (s[at] - '0');
    ++at;
  }
  if (at == begin || (at < s.size() && (is_digit(s[at]) || s[at] == '.') && at + 1 < s.size() && is_digit(s[at + 1])))
    return std::nullopt;
  if (at < s.size() && s[at] == 'k' && (at + 1 == s.size() || !is_letter(s[at + 1]))) {
    n *= 1024;
    ++at;
  }
  return at == s.size() || !is_letter(s[at]) ? std::optional(n) : std::nullopt;
}

/// Of all GPUs together, of an evaluation, and what is asked for or was tried in vain says nothing of one GPU's run.
inline bool is_other(std::string_view before) {
  for (const std::string_view w : {"effective ", "global ", "total ", "eval ", "evaluation ", "reduce ", "smaller ",
                                   "larger ", "bigger ", "number of ", "train_", "overall "})
    if (before.ends_with(w)) return true;
  return false;
}

inline std::optional<std::int64_t> behind(std::string_view low, std::size_t at) {
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view w : between)
      if (low.substr(at).starts_with(w)) {
        at += w.size();
        more = true;
      }
  }
  return number_at(low, at);
}

inline std::optional<std::int64_t> before(std::string_view low, std::size_t at) {
  auto begin = at;
  while (begin > 0 && at - begin < 6 && is_digit(low[begin - 1])) --begin;
  if (begin == at || (begin > 0 && (is_letter(low[begin - 1]) || std::string_view(".,-_/*x").find(low[begin - 1]) < 7)))
    return std::nullopt;
  return number_at(low, begin);
}

/// Bytes of the sign of a product that a text begins with; 0: none.
inline std::size_t times_sign(std::string_view s) {
  if (s.starts_with("×")) return std::string_view("×").size();
  return s.starts_with('x') || s.starts_with('*') ? 1 : 0;
}

/// Whether a line speaks of adapters that are in use, rather than left out.
inline bool with_adapters(std::string_view low) {
  return story::has_any(low, {"lora"}) && !story::has_any(low, {"without lora", "no lora", "not lora", "not use lora",
                                                                "instead of lora", "lora_enable false"});
}

/// "2x24GB", "4 x 80 GB", "2*24G": the GPUs that somebody has.
inline int gpus_of_size(std::string_view low) {
  for (std::size_t at = 1; at < low.size(); ++at) {
    if (!is_digit(low[at]) || low[at - 1] != ' ') continue;
    auto end = at;
    int n = 0;
    while (end < low.size() && end - at < 4 && is_digit(low[end])) n = n * 10 + (low[end++] - '0');
    while (end < low.size() && low[end] == ' ') ++end;
    const std::size_t times = times_sign(low.substr(end));
    if (times == 0 || n < 1 || n > 1024) continue;
    const auto size = size_at(low, end + times);
    if (!size || !size->size) continue;
    const std::int64_t gib = size->size->value.value() >> 30;
    if (gib >= 4 && gib <= 192) return n;
  }
  return 0;
}

/// "4032x3024" and "640 * 480", height before width as flags have it, of a line that speaks of pictures.
inline std::string image_size(std::string_view low) {
  if (!story::has_any(low, {"image", "picture", "photo", "resolution", "图", "分辨率"})) return {};
  for (std::size_t at = 0; at < low.size(); ++at) {
    if (!is_digit(low[at]) || (at > 0 && (is_digit(low[at - 1]) || is_letter(low[at - 1])))) continue;
    auto end = at;
    std::int64_t width = 0, height = 0;
    while (end < low.size() && end - at < 6 && is_digit(low[end])) width = width * 10 + (low[end++] - '0');
    while (end < low.size() && low[end] == ' ') ++end;
    const std::size_t times = times_sign(low.substr(end));
    if (times == 0) continue;
    end += times;
    while (end < low.size() && low[end] == ' ') ++end;
    const auto second = end;
    while (end < low.size() && end - second < 6 && is_digit(low[end])) height = height * 10 + (low[end++] - '0');
    if (end < low.size() && (is_letter(low[end]) || low[end] == '*') && !low.substr(end).starts_with("px")) continue;
    if (width >= 64 && height >= 64 && width <= 20000 && height <= 20000)
      return std::to_string(height) + "x" + std::to_string(width);
  }
  return {};
}

}  // namespace told_setting

VLMEST_INLINE std::vector<ReadSetting> told_settings(std::string_view text) {
  using namespace told_setting;
  std::vector<ReadSetting> told;
  std::int64_t number = 0;
  const auto add = [&](const char* flag, std::string value, std::string from) {
    if (std::any_of(told.begin(), told.end(), [&](const ReadSetting& s) { return s.flag == flag; })) return;
    from.erase(0, from.find_first_not_of(' '));
    told.push_back({flag, std::move(value), std::move(from), number});
  };
  text = text.substr(0, 256 << 10);
  for (std::size_t at = 0; at < text.size();) {
    const auto line = next_counted_line(text, at).substr(0, 4096);
    ++number;
    if (!story::is_sentence(line)) continue;
    const std::string low = " " + log_prefix::lower_case(line) + " ";
    for (const Phrase& p : phrases)
      for (auto found = low.find(p.words); found != std::string::npos; found = low.find(p.words, found + 1)) {
        if (is_other(std::string_view(low).substr(0, found))) continue;
        const auto n = p.number_first ? before(low, found) : behind(low, found + p.words.size());
        if (!n || *n < 1 || *n > p.most) continue;
        const std::string value = std::to_string(*n), words(p.words);
        add(p.flag, value, p.number_first ? value + words : words + " " + value);
      }
    if (const std::string size = image_size(low); !size.empty()) add("--image-size", size, "a picture of " + size);
    if (const int gpus = std::max(story::gpus_in(low), gpus_of_size(low)); gpus > 0)
      add("--gpus", std::to_string(gpus), std::to_string(gpus) + " GPUs");
    // Of adapters without a rank, as of keys (run_settings.hpp).
    if (with_adapters(low)) add("--lora", "8", "lora");
    if (with_adapters(low) && story::has_any(low, {"qlora"})) add("--weights", "nf4", "qlora");
  }
  return told;
}

}  // namespace vlmest::diagnose
