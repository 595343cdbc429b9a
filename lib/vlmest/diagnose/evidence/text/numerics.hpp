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

#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

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

void note(std::vector<NumericFinding>& all, NumericFinding f);

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
std::vector<NumericFinding> numeric_findings(const MemorySeries& s);

/// What the words of a log say: each trouble once, at its first line, with the number of lines. One pass.
std::vector<NumericFinding> numeric_messages(std::string_view text);

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

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/numerics.hpp>
#endif
