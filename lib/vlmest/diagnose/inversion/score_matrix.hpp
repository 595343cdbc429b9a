// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/graph/part.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// A failed request read backwards as a matrix of attention scores: sequences x heads x N x N (Vaswani et al.,
/// arXiv:1706.03762, section 3.2.1), of elements of two bytes (the product in bf16 or fp16) or four (a softmax in fp32,
/// as transformers' eager_attention_forward runs it; the whole of sdpa's math path since torch 2.5, which computes
/// bf16 and fp16 in fp32: at::globalContext().allowFP16BF16ReductionMathSDP() in aten/src/ATen/native/transformers/
/// attention.cpp; ggml, whose products are fp32). N is solved for, whatever --attention says: a run may have taken
/// another path than it was told to.
namespace vlmest::diagnose {

namespace score_matrix {

/// Scores, or logits, of fewer positions are no reason to run out.
inline constexpr std::int64_t least_positions = 256;
/// Longer than any released vision-language model was made for (Qwen3-VL).
inline constexpr std::int64_t most_positions = 262'144;

/// "66,356"
inline std::string number(std::int64_t n) {
  std::string r = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(r.size()) - 3; at > 0; at -= 3)
    r.insert(static_cast<std::size_t>(at), ",");
  return r;
}

}  // namespace score_matrix

/// A module of a model that attends.
struct AttentionHeads {
  Part part = Part::language;
  std::string scope;  ///< the outermost layer's
  std::int64_t heads = 1;
  std::int64_t fixed = 0;  ///< positions of a tile, where all have as many; 0: as many as the pictures have
  std::int64_t unit = 1;   ///< lengths are multiples of it: patches that are merged into one token
  std::int64_t most = 0;   ///< of the largest picture, or of the model's positions; 0: not known
  std::int64_t patch = 0;  ///< pixels of its side; 0: not known
};

/// One reading of a request as scores.
struct ScoreMatrix {
  AttentionHeads of;
  std::int64_t copies = 1;           ///< sequences of a batch, tiles
  std::int64_t length = 0;           ///< N: the one nearest to the figure
  std::int64_t first = 0, last = 0;  ///< of all that print so
  int element = 2;                   ///< bytes
  bool exact = true;                 ///< false: the request holds more than the scores, N is the most that fits in
  double plausibility = 0;
  Bytes bytes() const;
};

/// What bounds the lengths of a run.
struct LengthBounds {
  std::optional<std::int64_t> seq;     ///< at most so many tokens
  std::optional<std::int64_t> images;  ///< so many pictures, where the run is said to have so many
  std::optional<std::int64_t> pixels;  ///< of all of them together
  std::optional<int> element;          ///< bytes of an element, where the run's type is given
  std::int64_t batch = 1;
};

/// The readings of `f` as scores of these attentions, the most plausible first.
std::vector<ScoreMatrix> score_matrices(const Failure& f, const std::vector<AttentionHeads>& all,
                                        const LengthBounds& bounds);

/// Of models that are not known: the head counts of released towers and language models.
std::vector<ScoreMatrix> score_matrices_of_any_model(const Failure& f, const LengthBounds& bounds);

/// Why the request is taken for scores at all.
enum class ScoreGround : std::uint8_t {
  none,
  stack,   ///< the stack was in an attention
  digits,  ///< a figure in plain bytes is heads x N x N x type of the model to the last digit
  beyond,  ///< one tensor of more than the whole device, or than one buffer may have
  large,   ///< of 32 GiB or more, on a device that is not known
};

ScoreGround score_ground(const Failure& f, const std::vector<ScoreMatrix>& matrices);

DescribedTensor described(const ScoreMatrix& m);

/// "16 heads x 66,356 x 66,356 x 2 bytes = 131.22 GiB: 66,356 patches, which is ..."
std::string matrix_words(const ScoreMatrix& m);

/// When torch's fused attention makes scores after all.
std::string fallback_words(const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/score_matrix.hpp>
#endif
