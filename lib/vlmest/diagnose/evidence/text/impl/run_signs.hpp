// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/text/line_signs.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/run_signs.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace run_signs {

inline constexpr auto sign_scan = scan_for(sign_words);

inline std::string_view line_at(std::string_view text, std::size_t at) {
  const auto begin = text.rfind('\n', at);
  const auto from = begin == std::string_view::npos ? 0 : begin + 1;
  return text.substr(from, std::min(text.find('\n', at), text.size()) - from);
}

inline void add_figures(FoundSign& f) {
  const std::string_view line = f.text;
  switch (f.sign) {
    case RunSign::image_beyond_cache: {
      // "image item with length 6132", and since 0.12 "video item with 21504 embedding tokens"
      auto n = number_behind(line, "item with length");
      if (!n) n = number_behind(line, "item with");
      if (const auto c = number_behind(line, "encoder cache size"); n && c) f.numbers = {*n, *c};
      if (line.find("video item") != std::string_view::npos) f.note = "video";
      break;
    }
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

VLMEST_INLINE std::vector<FoundSign> find_run_signs(std::string_view text) {
  using namespace run_signs;
  constexpr std::size_t most = 16 << 20;
  std::size_t skipped = 0;
  if (text.size() > most) {
    skipped = std::min(text.find('\n', text.size() - most), text.size() - 1) + 1;
  }
  const auto whole = text;
  text.remove_prefix(skipped);
  const auto first_line = 1 + line_ends(whole, skipped);
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
  std::array<std::size_t, sign_words.size()> first_at;
  first_at.fill(std::string_view::npos);
  sign_scan.each(text, [&](std::size_t word, std::size_t at) { first_at[word] = std::min(first_at[word], at); });
  for (const auto& w : sign_words) {
    const std::size_t at = first_at[static_cast<std::size_t>(&w - sign_words.data())];
    if (at == std::string_view::npos || (!w.also.empty() && whole.find(w.also) == std::string_view::npos)) continue;
    FoundSign f{.sign = w.sign,
                .line = first_line + line_ends(text, at),
                .text = std::string(line_at(text, at).substr(0, 2000)),
                .numbers = {},
                .note = {}};
    add_figures(f);
    if (f.sign == RunSign::killed && lines.host_total > 0) f.numbers = {lines.host_available / lines.host_total};
    f.text.resize(std::min<std::size_t>(f.text.size(), 300));
    all.push_back(std::move(f));
  }
  sort_stably(all, [](const FoundSign& a, const FoundSign& b) {
    return std::pair(a.sign, b.numbers.size()) < std::pair(b.sign, a.numbers.size());
  });
  all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sign == b.sign; }),
            all.end());
  return all;
}

}  // namespace vlmest::diagnose
