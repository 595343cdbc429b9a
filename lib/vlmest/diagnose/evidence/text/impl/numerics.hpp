// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <vlmest/diagnose/evidence/text/numerics.hpp>
#include <vlmest/diagnose/evidence/text/size_text.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace numerics {

VLMEST_INLINE void note(std::vector<NumericFinding>& all, NumericFinding f) {
  for (auto& known : all)
    if (known.trouble == f.trouble) {
      ++known.times;
      return;
    }
  all.push_back(std::move(f));
}

/// Of each of the words a part, in any case, of which a line must hold one.
inline constexpr std::array<std::string_view, 5> parts_of_words{"verflow", "nan", "minimum", "inite", "oss scale"};
inline bool may_be_numeric(std::string_view line) {
  static constexpr auto starts = WordStarts::make(parts_of_words, true);
  for (std::size_t i = 0; i + 3 <= line.size(); ++i)
    for (auto may = starts(line, i); may != 0; may &= may - 1)
      if (size_text::same_letters(line, i, parts_of_words[static_cast<std::size_t>(std::countr_zero(may))]))
        return true;
  return false;
}

}  // namespace numerics

VLMEST_INLINE std::vector<NumericFinding> numeric_findings(const MemorySeries& s) {
  using namespace numerics;
  std::vector<NumericFinding> all;
  const auto loss = [](const MemoryRow& r) { return r.loss; };
  const auto norm = [](const MemoryRow& r) { return r.grad_norm; };
  for (std::size_t i = 0; i < s.rows.size(); ++i) {
    const auto& r = s.rows[i];
    const auto add = [&](NumericTrouble t, double value, double usual = 0) {
      note(all, {t, r.step, r.line, 1, value, usual, {}});
    };
    if (r.loss && std::isnan(*r.loss)) add(NumericTrouble::nan_loss, *r.loss);
    if (r.loss && std::isinf(*r.loss)) add(NumericTrouble::infinite_loss, *r.loss);
    if (r.grad_norm && !std::isfinite(*r.grad_norm)) add(NumericTrouble::nan_gradient, *r.grad_norm);
    if (r.grad_norm && std::isfinite(*r.grad_norm) && *r.grad_norm > 1) {
      // The median is asked for only where the row before is far below.
      const auto before = i > 0 ? s.rows[i - 1].grad_norm : std::nullopt;
      const bool jumps = !before || !std::isfinite(*before) || *r.grad_norm > 1.5 * *before || *r.grad_norm > 100;
      const auto usual = jumps ? usual_before(s.rows, i, norm) : std::nullopt;
      if (usual && *r.grad_norm > 10 * *usual) {
        bool again = false;
        for (auto k = i + 1; k < s.rows.size() && k <= i + 3; ++k)
          again = again || (s.rows[k].grad_norm && !(*s.rows[k].grad_norm <= 10 * *usual)) ||
                  (s.rows[k].loss && !std::isfinite(*s.rows[k].loss));
        if (again) add(NumericTrouble::exploding_gradient, *r.grad_norm, *usual);
      }
    }
    if (r.loss && std::isfinite(*r.loss) && i > 0 && s.rows[i - 1].loss && *r.loss > 1.5 * *s.rows[i - 1].loss) {
      const auto usual = usual_before(s.rows, i, loss);
      if (usual && *usual > 0 && *r.loss > 3 * *usual) add(NumericTrouble::loss_spike, *r.loss, *usual);
    }
  }
  return all;
}

VLMEST_INLINE std::vector<NumericFinding> numeric_messages(std::string_view text) {
  using namespace numerics;
  std::vector<NumericFinding> all;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto raw = next_counted_line(text, at).substr(0, 1 << 16);
    ++number;
    // All words have one of these, so most lines end here.
    if (!may_be_numeric(raw)) continue;
    const auto low = log_prefix::lower_case(raw);
    for (const auto& w : numerics::words)
      if (low.find(w.words) != std::string::npos) {
        // From the words on where a long line stands before them.
        const auto word = low.find(w.words);
        std::vector<LogLine> lines;
        clean_line(raw.substr(word > 300 ? word : 0, 4096), 0, lines);
        note(all, {w.trouble, std::nullopt, number, 1, 0, 0, lines.empty() ? "" : lines[0].text.substr(0, 400)});
        break;
      }
  }
  return all;
}

}  // namespace vlmest::diagnose
