// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/leak.hpp>
#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/memory_series.hpp>

/// NaN, overflow and exploding gradients in what a run logged, and the headroom of an FFT in half precision.
namespace vlmest::diagnose {

enum class NumericTrouble : std::uint8_t {
  nan_loss,
  infinite_loss,
  nan_gradient,
  exploding_gradient,  ///< the norm leaves what it was by far, for good or until the loss is NaN
  loss_spike,
  skipped_step,      ///< a loss scaler met an infinity
  scale_at_minimum,  ///< the loss scaler gave up
  anomaly,           ///< autograd's anomaly mode, or a NaN check, named an op
  bad_probabilities  ///< sampling from logits with NaN
};
inline constexpr std::array<std::string_view, 9> numeric_troubles{
    "nan_loss",     "infinite_loss",    "nan_gradient", "exploding_gradient", "loss_spike",
    "skipped_step", "scale_at_minimum", "anomaly",      "bad_probabilities"};
constexpr std::string_view name(NumericTrouble t) { return numeric_troubles[static_cast<std::size_t>(t)]; }

struct NumericFinding {
  NumericTrouble trouble = NumericTrouble::nan_loss;
  std::optional<std::int64_t> step;
  std::int64_t line = 0;   ///< where it is first seen
  std::int64_t times = 1;  ///< how many lines say so
  double value = 0;        ///< the loss, the norm, the scale
  double usual = 0;        ///< of a spike or an explosion: the median before it
  std::string text;        ///< the line, where words gave it away; at most 400 characters
};

namespace numerics {

struct Words {
  std::string_view words;  ///< in lower case
  NumericTrouble trouble;
};
/// Sources: apex and torch.amp's scalers, DeepSpeed (runtime/fp16/loss_scaler.py), Megatron, torch's autograd and
/// multinomial, Lightning, fairseq, detectron2.
inline constexpr auto words = std::to_array<Words>({
    {"scale already at minimum", NumericTrouble::scale_at_minimum},
    {"minimum loss scale reached", NumericTrouble::scale_at_minimum},
    {"loss scale is at its minimum", NumericTrouble::scale_at_minimum},
    {"gradient overflow", NumericTrouble::skipped_step},
    {"overflow! rank", NumericTrouble::skipped_step},
    {"overflow detected. skipping step", NumericTrouble::skipped_step},
    {"overflow detected, setting loss scale", NumericTrouble::skipped_step},
    {"became infinite or nan", NumericTrouble::nan_loss},
    {"skipping step, loss scaler", NumericTrouble::skipped_step},
    {"attempted loss scale", NumericTrouble::skipped_step},
    {"returned nan values in its", NumericTrouble::anomaly},
    {"nan or inf found in input tensor", NumericTrouble::anomaly},
    {"found nan in", NumericTrouble::anomaly},
    {"nan detected", NumericTrouble::anomaly},
    {"found inf or nan", NumericTrouble::anomaly},
    {"value cannot be converted to type at::half without overflow", NumericTrouble::anomaly},
    {"probability tensor contains either", NumericTrouble::bad_probabilities},
    {"gradient norm is nan", NumericTrouble::nan_gradient},
    {"grad norm is nan", NumericTrouble::nan_gradient},
    {"non-finite gradient", NumericTrouble::nan_gradient},
    {"total norm of order 2.0 for gradients from `parameters` is non-finite", NumericTrouble::nan_gradient},
    {"loss is nan", NumericTrouble::nan_loss},
    {"loss is nan or infinite", NumericTrouble::nan_loss},
    {"rerun: found", NumericTrouble::anomaly},
});

inline void note(std::vector<NumericFinding>& all, NumericFinding f) {
  for (auto& known : all)
    if (known.trouble == f.trouble) {
      ++known.times;
      return;
    }
  all.push_back(std::move(f));
}

/// The median of the finite values among the last 100 before i; nothing below 8 of them.
template <class Get>
std::optional<double> usual_before(const std::vector<MemoryRow>& rows, std::size_t i, Get get) {
  std::vector<double> v;
  for (auto k = i; k > 0 && v.size() < 100 && i - k < 400; --k)
    if (const auto x = get(rows[k - 1]); x && std::isfinite(*x)) v.push_back(*x);
  if (v.size() < 8) return std::nullopt;
  return median(std::move(v));
}

}  // namespace numerics

/// What the numbers of a series say: each trouble once, at its first row. A norm explodes where it is over ten times
/// the median of the rows before it, and one of the next three rows is as high, NaN or infinite; a single such row of
/// the loss over three times is a spike.
inline std::vector<NumericFinding> numeric_findings(const MemorySeries& s) {
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

/// What the words of a log say: each trouble once, at its first line, with the number of lines. One pass.
inline std::vector<NumericFinding> numeric_messages(std::string_view text) {
  using namespace numerics;
  std::vector<NumericFinding> all;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto raw = next_counted_line(text, at).substr(0, 1 << 16);
    ++number;
    // All words have one of these, so most lines end here.
    const auto has = [&](std::string_view a, std::string_view b) {
      return raw.find(a) != std::string_view::npos || raw.find(b) != std::string_view::npos;
    };
    if (!has("verflow", "OVERFLOW") && !has("nan", "NaN") && !has("minimum", "Minimum") && !has("NAN", "Nan") &&
        !has("inite", "oss scale"))
      continue;
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

/// Largest finite number of IEEE 754's binary16 and of bfloat16.
inline constexpr double fp16_max = 65504;
inline constexpr double bf16_max = 3.3895313892515355e38;

/// torch.fft's norm argument: what a forward transform is divided by.
enum class FftScale : std::uint8_t { none, root, full };

/// |X_k| = |sum of N terms x_n e^{...}| <= N max|x|, reached by the constant part of values of one sign: an FFT of N
/// points without scaling (norm="backward", torch's default) leaves fp16 where N * mean|x| > 65504.
struct FftHeadroom {
  double largest = 0;     ///< magnitude that an output can reach
  double limit = 0;       ///< of the type
  double safe_input = 0;  ///< max|x| up to which no output can overflow
  bool safe() const { return largest <= limit; }
  double factor() const { return largest > 0 ? limit / largest : 0; }  ///< below 1: by how much it is too large
};
/// points: of the whole transform, H * W for two dimensions. max_abs: of the input.
inline FftHeadroom fft_headroom(std::int64_t points, double max_abs, FftScale scale = FftScale::none,
                                double limit = fp16_max) {
  const auto n = static_cast<double>(std::max<std::int64_t>(points, 1));
  const double gain = scale == FftScale::none ? n : scale == FftScale::root ? std::sqrt(n) : 1;
  return {gain * max_abs, limit, limit / gain};
}

}  // namespace vlmest::diagnose
