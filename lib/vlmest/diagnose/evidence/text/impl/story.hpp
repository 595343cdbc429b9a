// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/text/busy_tells.hpp>
#include <vlmest/diagnose/evidence/text/gpu_memory.hpp>
#include <vlmest/diagnose/evidence/text/log_prefix.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/public_models.hpp>
#include <vlmest/diagnose/evidence/text/sentence.hpp>
#include <vlmest/diagnose/evidence/text/sentence_tells.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/story.hpp>
#include <vlmest/diagnose/evidence/text/story_run_words.hpp>
#include <vlmest/diagnose/evidence/text/story_words.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace story {

/// Whether a sentence gives a batch that no answer of a language model has, but crops and pages of a document have.
inline bool speaks_of_many_at_once(std::string_view low) { return cut_off::many_at_once.reached(batch_in(low)); }

/// A line as words are looked for in it: in lower case, between blanks, with one for each mark.
inline std::string plain(std::string_view line) {
  std::string r = " " + log_prefix::lower_case(line) + " ";
  for (char& c : r)
    if (c == ',' || c == '?' || c == '!' || c == ';' || c == '`' || c == '*' || c == '"' || c == '\t') c = ' ';
  for (std::size_t i = 0; i + 1 < r.size(); ++i)
    if ((r[i] == '.' || r[i] == ':' || r[i] == ')' || r[i] == '\'') && r[i + 1] == ' ')
      r[i] = ' ';
    else if (r[i] == ' ' && r[i + 1] == '\'')
      r[i + 1] = ' ';
  return r;
}

/// "64GB RAM" is the host's; "24 GB CUDA RAM" and "GPU内存" are not.
inline bool of_device(std::string_view line, std::size_t at) {
  const auto before = line.substr(at > 5 ? at - 5 : 0, std::min<std::size_t>(at, 5));
  if (line.find("显卡") != std::string_view::npos) return true;  // 内存 in a wider sense
  return before.find("gpu") != std::string_view::npos || before.find("cuda") != std::string_view::npos ||
         before.find("显") != std::string_view::npos;
}

/// "64 GB RAM" and "1TB of RAM" tell what a machine has; of what a run needed or filled they tell nothing.
inline bool is_capacity(std::string_view low, std::size_t at) {
  auto before = low.substr(0, at);
  while (before.ends_with(' ')) before.remove_suffix(1);
  for (const std::string_view w : {" of", " system", " cpu", " total"})
    if (before.ends_with(w)) before.remove_suffix(w.size());
  return size_before(before, before.size()).has_value() &&
         !has_any(low, {"out of", "run out", "runs out", "ran out", "usage", "full",   " used",        " uses",
                        "using",  "exceed",  "consum",   "fill",    "kill",  "enough", "insufficient", "need",
                        "requir", "crash",   "error",    "oom",     "fail",  "hit",    "limit",        "swap"});
}

/// The number of 30,000 to 400,000 right behind "vocab", "vocab_size", "vocabulary of" and the like.
inline std::int64_t vocabulary_in(std::string_view low) {
  for (auto at = low.find("vocab"); at != std::string_view::npos; at = low.find("vocab", at + 5)) {
    auto end = at + 5;
    while (end < low.size() && end - at < 24 && !is_digit(low[end]) && low[end] != ']') ++end;
    std::int64_t n = 0;
    for (; end < low.size() && (is_digit(low[end]) || low[end] == '_') && n < 1'000'000; ++end)
      if (low[end] != '_') n = n * 10 + (low[end] - '0');
    if (n >= 30000 && n <= 400000) return n;
  }
  return 0;
}

/// The largest size that a line gives with "allocat" or "expecting".
inline double allocation_in(std::string_view low) {
  if (!has_any(low, {"allocat", "expecting", "分配"})) return 0;
  double most = 0;
  for (std::size_t at = 0; at < low.size(); ++at)
    if (is_digit(low[at]) && (at == 0 || (!is_digit(low[at - 1]) && low[at - 1] != '.')))
      if (const auto found = size_at(low, at); found && found->size)
        most = std::max(most, static_cast<double>(found->size->value.value()));
  return most;
}

/// "a 16 GB card", "24G显存", "GPU with 24GB memory": the largest size of 4 to 192 GiB that a line gives a GPU.
inline double device_in(std::string_view low) {
  const bool of_gpu = has_any(low, {"gpu", "vram", "card", "显", "rtx", "nvidia"});
  double most = 0;
  for (std::size_t at = 0; of_gpu && at < low.size(); ++at) {
    if (!is_digit(low[at]) || (at > 0 && (is_digit(low[at - 1]) || low[at - 1] == '.' || is_letter(low[at - 1]))))
      continue;
    const auto found = size_at(low, at);
    if (!found || !found->size) continue;
    auto rest = low.substr(found->at);
    for (bool more = true; more;) {
      more = false;
      for (const std::string_view w : {" ", ")", "(", "of ", "nvidia ", "cuda ", "的"})
        if (rest.starts_with(w)) {
          rest.remove_prefix(w.size());
          more = true;
        }
    }
    const double size = static_cast<double>(found->size->value.value());
    const bool told = rest.starts_with("gpu") || rest.starts_with("vram") || rest.starts_with("card") ||
                      rest.starts_with("显") || rest.starts_with("memory") || low.substr(0, at).ends_with("gpu(") ||
                      low.substr(0, at).ends_with("card (");
    if (told && size >= 4.0 * (1 << 30) && size <= 192.0 * (1 << 30)) most = std::max(most, size);
  }
  return most;
}

/// The largest number before a "b" that ends a word, behind what begins one: "-72b-", " 7b ".
inline double parameters_in(std::string_view low) {
  double most = 0;
  for (auto at = low.find('b'); at != std::string_view::npos; at = low.find('b', at + 1)) {
    if (at == 0 || !is_digit(low[at - 1]) || (at + 1 < low.size() && (is_letter(low[at + 1]) || is_digit(low[at + 1]))))
      continue;
    auto begin = at;
    while (begin > 0 && at - begin < 5 && (is_digit(low[begin - 1]) || low[begin - 1] == '.')) --begin;
    const bool starts = begin > 0 && (low[begin - 1] == '-' || low[begin - 1] == '_' || low[begin - 1] == ' ');
    const auto number = parse_number(low.substr(begin, at - begin));
    if (!starts || !number) continue;
    const double n = static_cast<double>(number->digits) / std::pow(10.0, number->decimals);
    if (n >= 0.1 && n <= 1000) most = std::max(most, n * 1e9);
  }
  return most;
}

/// Takes a topic from the first line that has words of it.
inline void look_for(const story_words::Words& w, const std::string& low, bool sentence, std::int64_t number,
                     Story& s) {
  auto& told = s.told[static_cast<std::size_t>(w.topic)];
  if (told || (w.in == story_words::In::sentence && !sentence)) return;
  const auto found = low.find(w.words);
  if (found == std::string::npos || (w.topic == Topic::host && of_device(low, found))) return;
  // Who offloads an optimizer's states tells of what he tried: they are not on the device.
  if (w.topic == Topic::states && low.find("offload") != std::string::npos) return;
  if (w.topic == Topic::host && w.words == " ram " && is_capacity(low, found)) return;
  if (w.topic == Topic::saves && has_any(std::string_view(low).substr(found, w.words.size() + 10), {"memory", "vram"}))
    return;
  // DeepSpeed's launcher (launcher/launch.py) ends the other ranks in a function of that name, whatever the first one
  // died of.
  if (w.topic == Topic::killed && low.compare(found, 15, "sigkill_handler") == 0) return;
  const bool setting = w.topic == Topic::serves || w.topic == Topic::logits;
  if (setting && is_turned_off(std::string_view(low).substr(found + w.words.size()))) return;
  if (w.topic == Topic::serves)
    for (const std::string_view no : {"non-", "not ", "without ", "no "})
      if (std::string_view(low).substr(0, found).ends_with(no)) return;
  // torch's advice, and a figure of XLA's, stand in messages whatever failed.
  if (w.topic == Topic::fragments &&
      (low.find("to avoid fragmentation") != std::string::npos || low.find("% fragmentation") != std::string::npos))
    return;
  told = Story::Told{std::string(w.words.substr(w.words.find_first_not_of(' '))), number};
  while (!told->words.empty() && told->words.back() == ' ') told->words.pop_back();
}

/// The same of those of a list that stand in the line.
template <class List, class Found>
void look_for_all(const List& list, const Found& in, const std::string& low, bool sentence, std::int64_t number,
                  Story& s) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (in[i]) look_for(list[i], low, sentence, number, s);
}

/// What sentences tell by several words together: what is quoted of them.
struct Together {
  Topic topic;
  bool (*speaks)(std::string_view low);
  std::string_view words;
};
inline constexpr auto together = std::to_array<Together>({
    {Topic::grows, speaks_of_growth, "memory that goes up"},
    {Topic::grows, speaks_of_kept_memory, "memory that is kept"},
    {Topic::host, speaks_of_terabytes, "memory in terabytes"},
    {Topic::host, speaks_of_host_memory, "memory of the machine"},
    {Topic::busy_host, speaks_of_busy_host, "a busy CPU"},
    {Topic::slow, speaks_of_gpu_by_turns, "a GPU that works by turns"},
    {Topic::slow_data, speaks_of_gpu_by_turns, "a GPU that works by turns"},
    {Topic::slow, speaks_of_gpu_that_waits, "a GPU that waits"},
    {Topic::slow_data, speaks_of_gpu_that_waits, "a GPU that waits"},
    {Topic::saves, speaks_of_saving, "saving"},
    {Topic::logits, speaks_of_kept_predictions, "predictions that are kept"},
    {Topic::logits, speaks_of_the_loss, "a loss"},
    {Topic::states, speaks_of_the_step, "a step of the optimizer"},
    {Topic::varies, speaks_of_larger_inputs, "inputs that fail and others that do not"},
    {Topic::varies, speaks_of_later_steps, "steps that went well"},
    {Topic::one_device, speaks_of_one_of_several, "one of several GPUs"},
    {Topic::answered, speaks_of_requests, "requests"},
    {Topic::batches, speaks_of_many_at_once, "a batch"},
});

inline void read_part(std::string_view text, std::int64_t first_line, Story& s) {
  static constexpr auto failure_scan = scan_for(story_words::of_failures);
  static constexpr auto run_scan = scan_for(story_words::of_runs);
  std::int64_t number = first_line;
  bool full_cpu = false, idle_gpu = false;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const auto line = next_counted_line(text, at).substr(0, 4096);
    if (line.empty()) continue;
    const bool sentence = is_sentence(line);
    const std::string low = plain(line);
    s.named = std::max(s.named, public_models::parameters_in(low));
    s.parameters = std::max({s.parameters, s.named, parameters_in(low)});
    if (sentence && s.gpus == 0) s.gpus = gpus_in(low);
    if (sentence)
      for (const Together& t : together)
        if (auto& told = s.told[static_cast<std::size_t>(t.topic)]; !told && t.speaks(low))
          told = Story::Told{std::string(t.words), number};
    // Of the two one sentence speaks and another one of the other.
    full_cpu = full_cpu || (sentence && speaks_of_full_cpu(low));
    idle_gpu = idle_gpu || (sentence && speaks_of_idle_gpu(low));
    if (auto& told = s.told[static_cast<std::size_t>(Topic::busy_host)]; !told && full_cpu && idle_gpu)
      told = Story::Told{"a busy CPU", number};
    if (sentence) s.largest = std::max(s.largest, allocation_in(low));
    if (auto& loads = s.told[static_cast<std::size_t>(Topic::loads)];
        !loads && sentence && has_any(low, {"allocat"}) && has_any(low, {" weights "}))
      loads = Story::Told{"weights", number};
    if (s.vocabulary == 0) s.vocabulary = vocabulary_in(low);
    if (s.device == 0) s.device = std::max(sentence ? device_in(low) : 0, gpu_memory::named_in(low));
    look_for_all(story_words::of_failures, failure_scan.in(low), low, sentence, number, s);
    look_for_all(story_words::of_runs, run_scan.in(low), low, sentence, number, s);
  }
}

}  // namespace story

VLMEST_INLINE bool Story::empty() const {
  return std::none_of(told.begin(), told.end(), [](const auto& t) { return t.has_value(); });
}

VLMEST_INLINE Story read_story(std::string_view text) {
  constexpr std::size_t part = 256 << 10;
  Story s;
  story::read_part(text.substr(0, part), 1, s);
  if (text.size() > part) {
    const std::size_t from = std::max(part, text.size() - std::min(text.size(), part));
    const auto begin = std::min(text.find('\n', from), text.size() - 1) + 1;
    story::read_part(text.substr(begin), 1 + line_ends(text, begin), s);
  }
  return s;
}

}  // namespace vlmest::diagnose
