// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/run_settings.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace run_settings {

constexpr bool in_key(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }

/// The value behind a key: quoted, in braces, or up to a blank; "" where a line break, a backslash or another flag
/// follows.
inline std::string value_at(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  if (s.empty() || s.starts_with("--") || s.front() == '\\' || s.front() == '#') return {};
  if (s.front() == '"' || s.front() == '\'') {
    const auto end = s.find(s.front(), 1);
    return std::string(s.substr(1, (end == std::string_view::npos ? s.size() : end) - 1).substr(0, 400));
  }
  if (s.front() == '{') return std::string(s.substr(0, std::min(s.find('}'), s.size() - 1) + 1).substr(0, 400));
  std::size_t end = 0;
  while (end < s.size() && end < 400 && !is_blank(s[end]) && std::string_view("\\)]}\"'`;").find(s[end]) > 8 &&
         !(s[end] == ',' && (end + 1 == s.size() || !is_digit(s[end + 1]))))
    ++end;
  return std::string(s.substr(0, end));
}

inline std::string normal_key(std::string_view s) {
  std::string key = log_prefix::lower_case(s);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

inline const RunKeyWord* key_of(const std::string& key) {
  const auto found = std::find_if(run_keys.begin(), run_keys.end(), [&](const RunKeyWord& k) { return k.key == key; });
  return found == run_keys.end() ? nullptr : &*found;
}

/// Whether a key begins with this letter and has this length: most words of a text are none by that.
inline bool may_be_key(char first, std::size_t length) {
  static constexpr auto lengths = [] {
    std::array<std::uint64_t, 26> of{};
    for (const RunKeyWord& k : run_keys)
      of[static_cast<std::size_t>(k.key.front() - 'a')] |= std::uint64_t{1} << k.key.size();
    of['b' - 'a'] |= std::uint64_t{1} << std::string_view("base").size();
    return of;
  }();
  return length < 64 && (lengths[static_cast<std::size_t>(lower(first) - 'a')] >> length & 1) != 0;
}

/// The keys of a line. A key is "--name", "name=", "name:" or "\"name\":", with its value behind it.
inline void add_words(std::string_view line, std::int64_t number, std::vector<RunWord>& words) {
  const auto first = line.find_first_not_of(" \t>|$");
  if (first == std::string_view::npos || line[first] == '#') return;
  line = line.substr(0, 16 << 10);
  for (std::size_t at = first; at < line.size() && words.size() < 512;) {
    if (line[at] == ' ' && at + 1 < line.size() && line[at + 1] == '#') return;
    if (!is_letter(line[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && in_key(line[end])) ++end;
    if (!may_be_key(line[at], end - at)) {
      at = end;
      continue;
    }
    std::string key = normal_key(line.substr(at, end - at));
    if (key == "base" && line.substr(end).starts_with(" Model:")) {
      end += 6;
      key = "base model";
    }
    const RunKeyWord* known = key_of(key);
    // Part of a longer path or name: "transformers.optim", "/data/model".
    if (known == nullptr || (at > 0 && (line[at - 1] == '.' || line[at - 1] == '/') && key != "model")) {
      at = end;
      continue;
    }
    const bool flag = at >= first + 2 && line[at - 1] == '-' && line[at - 2] == '-';
    auto rest = line.substr(end);
    if (!rest.empty() && (rest.front() == '"' || rest.front() == '\'')) rest.remove_prefix(1);
    // Of a list as Python prints it, which launchers name commands by: ['--key', 'value'].
    if (flag && rest.starts_with(", '") && !rest.starts_with(", '--")) rest.remove_prefix(2);
    std::size_t blanks = 0;
    while (blanks < rest.size() && is_blank(rest[blanks])) ++blanks;
    const bool sign = blanks < rest.size() && (rest[blanks] == '=' || rest[blanks] == ':');
    // Bare names are settings only where a sign follows; CUDA_VISIBLE_DEVICES is also printed with a blank.
    if (sign || flag || known->is == RunKey::visible_gpus) {
      std::string value = value_at(rest.substr(sign ? blanks + 1 : blanks));
      if (value.empty() && flag) value = "true";
      if (!value.empty()) words.push_back({known->is, std::string(key), std::move(value), flag, number});
    }
    at = end;
  }
}

inline bool is_true(const std::string& v) {
  const std::string l = log_prefix::lower_case(v);
  return l == "true" || l == "1" || l == "yes" || l == "unsloth" || l == "full" || l == "on";
}

inline std::optional<std::int64_t> whole(const std::string& v) {
  std::int64_t n = 0;
  if (v.empty() || v.size() > 9) return std::nullopt;
  for (const char c : v) {
    if (!is_digit(c)) return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n > 0 ? std::optional(n) : std::nullopt;
}

/// "zero-3" of ".../ds_z3_offload_config.json", "zero3", "zero_stage_2", and FSDP's "full-shard" and "shard-grad-op";
/// and what is offloaded.
inline std::pair<std::string, std::string> sharding_of(const std::string& value) {
  std::string v;
  for (const char c : log_prefix::lower_case(value))
    if (c != '_' && c != '-' && c != ' ') v += c;
  const auto has = [&](std::string_view w) { return v.find(w) != std::string::npos; };
  std::string stage;
  for (const char* n : {"3", "2", "1"})
    if (has(std::string("z") + n) || has(std::string("zero") + n) || has(std::string("stage") + n))
      if (stage.empty()) stage = std::string("zero-") + n;
  if (stage.empty() && has("fullshard")) return {"full-shard", has("offload") ? "parameters" : ""};
  if (stage.empty() && has("shardgradop")) return {"shard-grad-op", has("offload") ? "parameters" : ""};
  return {stage, stage.empty() || !has("offload") ? "" : stage == "zero-3" ? "parameters" : "optimizer"};
}

inline std::string dtype_of(const std::string& value) {
  const std::string v = log_prefix::lower_case(value);
  const auto has = [&](std::string_view w) { return v.find(w) != std::string::npos; };
  return has("bfloat16") || v == "bf16"                 ? "bf16"
         : has("float16") || v == "fp16" || v == "half" ? "fp16"
         : has("float32") || v == "fp32"                ? "fp32"
                                                        : "";
}

inline std::string optimizer_of(const std::string& value) {
  const std::string v = log_prefix::lower_case(value);
  const auto has = [&](std::string_view w) { return v.find(w) != std::string::npos; };
  if (has("adafactor")) return "adafactor";
  if (has("adam") && has("8bit")) return "adamw-bnb-8bit";
  if (has("adamw") && has("fused")) return "adamw-fused";
  if (has("adam")) return "adamw";
  return v == "sgd" ? "sgd" : "";
}

inline std::string attention_of(const std::string& value) {
  const std::string v = log_prefix::lower_case(value);
  if (v.find("flash") != std::string::npos || v == "fa2" || v == "fa3") return "flash";
  return v == "sdpa" || v == "eager" ? v : "";
}

}  // namespace run_settings

VLMEST_INLINE std::vector<RunWord> run_words(std::string_view text) {
  constexpr std::size_t part = 1 << 20;
  std::vector<RunWord> words;
  std::size_t at = 0;
  std::int64_t number = 0;
  while (at < text.size()) {
    if (at > part && text.size() - at > part) {
      const auto to = text.find('\n', text.size() - part);
      if (to == std::string_view::npos) break;
      number += line_ends(text.substr(at), to + 1 - at);
      at = to + 1;
    }
    const auto line = next_counted_line(text, at);
    run_settings::add_words(line, ++number, words);
  }
  return words;
}

VLMEST_INLINE std::vector<ReadSetting> read_settings(std::string_view text) {
  using namespace run_settings;
  std::vector<ReadSetting> read;
  const auto set = [&](const char* flag, std::string value, const RunWord& w, bool keep = false) {
    if (value.empty()) return;
    const auto known = std::find_if(read.begin(), read.end(), [&](const ReadSetting& r) { return r.flag == flag; });
    ReadSetting s{flag, std::move(value), w.key + " " + w.value, w.line};
    if (known == read.end())
      read.push_back(std::move(s));
    else if (!keep)
      *known = std::move(s);
  };
  bool lora = false, quantised = false;
  const auto words = run_words(text);
  for (const RunWord& w : words) {
    const auto n = whole(w.value);
    const std::string number = n ? std::to_string(*n) : "";
    switch (w.is) {
      case RunKey::model: break;  // names are looked for by who knows them
      case RunKey::batch:
        // A bare batch_size is also that of datasets' map() and of evaluations.
        if (w.key == "batch_size" && !w.flag) break;
        set("--batch", n && *n <= 4096 ? number : "", w, w.key == "batch_size");
        break;
      case RunKey::gradient_accumulation: set("--gradient-accumulation", number, w); break;
      case RunKey::length: set("--seq", number, w); break;
      case RunKey::images: {
        const auto image = w.value.find("image");
        const auto digit = image == std::string::npos ? image : w.value.find_first_of("0123456789", image);
        if (digit == std::string::npos) break;
        auto end = digit;
        while (end < w.value.size() && is_digit(w.value[end])) ++end;
        const auto count = whole(w.value.substr(digit, end - digit));
        if (count) set("--images", std::to_string(*count), w);
        break;
      }
      case RunKey::optimizer: set("--optimizer", optimizer_of(w.value), w); break;
      case RunKey::tuning: {
        lora = lora || log_prefix::lower_case(w.value).find("lora") != std::string::npos;
        if (lora) set("--lora", "8", w, true);
        break;
      }
      case RunKey::lora_rank: set("--lora", number, w); break;
      case RunKey::lora_targets:
        if (const auto v = log_prefix::lower_case(w.value); v == "all" || v == "all-linear")
          set("--lora-targets", "all-linear", w);
        break;
      case RunKey::freeze_vision:
        if (is_true(w.value)) set("--freeze", "vision", w);
        break;
      case RunKey::tune_vision:
        if (log_prefix::lower_case(w.value) == "false") set("--freeze", "vision", w);
        break;
      case RunKey::dtype: set("--dtype", dtype_of(w.value), w); break;
      case RunKey::bf16:
        if (log_prefix::lower_case(w.value) == "true") set("--dtype", "bf16", w, true);
        break;
      case RunKey::fp16:
        if (log_prefix::lower_case(w.value) == "true") set("--dtype", "fp16", w, true);
        break;
      case RunKey::four_bits:
        quantised = is_true(w.value);
        if (quantised) set("--weights", "nf4", w);
        break;
      case RunKey::eight_bits:
        if (is_true(w.value)) set("--weights", "int8", w);
        break;
      case RunKey::quantization: {
        const std::string v = log_prefix::lower_case(w.value);
        if (v.find("awq") != std::string::npos || v.find("gptq") != std::string::npos) set("--weights", "int4", w);
        if (v == "bitsandbytes") set("--weights", "nf4", w);
        if (v == "fp8") set("--weights", "fp8", w);
        break;
      }
      case RunKey::attention: set("--attention", attention_of(w.value), w); break;
      case RunKey::flash: set("--attention", is_true(w.value) ? "flash" : attention_of(w.value), w, true); break;
      case RunKey::checkpointing:
        if (is_true(w.value)) set("--checkpointing", "full", w);
        break;
      case RunKey::sharding: {
        const auto [stage, offload] = sharding_of(w.value);
        set("sharding", stage, w);
        set("offload", offload, w);
        break;
      }
      case RunKey::zero_stage:
        // "stage" is also LLaMA-Factory's word for what is trained: only numbers are ZeRO's.
        if (n && *n <= 3) set("sharding", "zero-" + number, w);
        break;
      case RunKey::gpus: set("--gpus", n && *n <= 1024 ? number : "", w); break;
      case RunKey::visible_gpus: {
        const auto commas = std::count(w.value.begin(), w.value.end(), ',');
        const bool list = !w.value.empty() &&
                          std::all_of(w.value.begin(), w.value.end(), [](char c) { return is_digit(c) || c == ','; });
        if (list && commas > 0) set("--gpus", std::to_string(commas + 1), w, true);
        break;
      }
    }
  }
  // Ranks without adapters are of a file that is not used; targets alone are nobody's.
  const bool adapters = std::any_of(read.begin(), read.end(), [](const auto& r) { return r.flag == "--lora"; });
  if (!adapters) std::erase_if(read, [](const auto& r) { return r.flag == "--lora-targets"; });
  return read;
}

}  // namespace vlmest::diagnose
