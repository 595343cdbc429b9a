// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/nn/vision/packed_attention.hpp>
#include <vlmest/nn/vision/picture_mask.hpp>
#include <vlmest/unit/words.hpp>

/// Attention of dots.ocr's tower (modeling_dots_vision.py, DOTS_VISION_ATTENTION_CLASSES). Which of the classes runs,
/// vision_config says, whatever the language model is loaded with.
namespace vlmest {

enum class DotsAttention : std::uint8_t {
  eager,     ///< VisionAttention: the scores of all pictures' patches against each other
  eager_v2,  ///< VisionAttentionV2: those of one picture after the other
  sdpa,      ///< VisionSdpaAttention: torch's memory-efficient kernel under a mask of all patches
  flash,     ///< VisionFlashAttention2; without the package flash-attn the class takes eager
};
template <>
inline constexpr std::array<std::string_view, 4> words_of<DotsAttention>{"eager", "eager_v2", "sdpa",
                                                                         "flash_attention_2"};

/// What a module's variables keep until its forward returns.
struct DotsHeld {
  Value mask, weights, lengths;
  std::vector<Value> outs;
};

/// Weights of queries and keys[heads, rows, head_dim] in their own type, from a softmax in fp32.
inline Value dots_scores(const Value& q, const Value& k) {
  using namespace eager;
  return div_scalar(matmul(q, transpose(k, 1, 2)));
}
inline Value dots_weights(const Value& scores) {
  return eager::to(eager::softmax(scores, DType::fp32), scores.dtype());
}

/// VisionAttention.forward between its linears: q, k and v[heads, patches, head_dim] -> the same.
inline Value dots_eager(const Value& q, const Value& k, const Value& v, DotsHeld& held) {
  using namespace eager;
  held.weights = dots_scores(q, k);
  held.weights = add(held.weights, held.mask);
  held.weights = dots_weights(held.weights);
  return matmul(held.weights, v);
}

/// VisionAttentionV2.forward between its linears: q, k and v[patches, heads, head_dim] -> the same.
inline Value dots_by_picture(const Value& q, const Value& k, const Value& v, const Segments& segments, DotsHeld& held) {
  using namespace eager;
  to_host(segment_lengths(segments));
  std::array<std::vector<Value>, 3> parts;
  for (std::size_t i = 0; const Value* y : {&q, &k, &v}) parts[i++] = split(*y, segments.lengths, 0);
  Value out;  // the loop's variable
  for (std::size_t i = 0; i < segments.lengths.size(); ++i) {
    const auto by_head = [&](std::size_t of) { return transpose(parts[of][i], 0, 1); };
    const Value pq = by_head(0), pk = by_head(1), pv = by_head(2);
    out = dots_scores(pq, pk);
    out = dots_weights(out);
    out = matmul(out, pv);
    out = transpose(std::move(out), 0, 1);
    held.outs.push_back(out);
  }
  std::vector<Value> references = held.outs;
  return cat(references, 0);
}

/// VisionSdpaAttention.forward between its linears: q, k and v[heads, patches, head_dim] -> the same.
inline Value dots_sdpa(const Value& q, const Value& k, const Value& v, const DotsHeld& held) {
  using namespace eager;
  const auto batched = [](const Value& y) { return unsqueeze(y, 0); };
  const Value bq = batched(q), bk = batched(k), bv = batched(v);
  return squeeze(only_efficient_attention(bq, bk, bv, held.mask), 0);
}

/// q, k and v[patches, heads, head_dim] -> [patches, width]. Other runtimes have a kernel for packed sequences.
inline Value dots_attend(Context& c, DotsAttention kind, const Value& q, const Value& k, const Value& v,
                         const Segments& segments, DotsHeld& held) {
  using namespace eager;
  const std::int64_t patches = q.size(0);
  if (c.stack().attends_by_flash)
    return reshape(flash_attn_varlen_func(q, k, v, segments.cu_seqlens, segments.lengths), {patches, -1});
  if (kind == DotsAttention::eager_v2) return reshape(dots_by_picture(q, k, v, segments, held), {patches, -1});
  const bool sdpa = kind == DotsAttention::sdpa;
  held.mask = picture_mask(c, segments, patches, sdpa ? "zeros" : "full", sdpa ? DType::boolean : q.dtype());
  const auto by_head = [](const Value& y) { return transpose(y, 0, 1); };
  const Value hq = by_head(q), hk = by_head(k), hv = by_head(v);
  Value out = sdpa ? dots_sdpa(hq, hk, hv, held) : dots_eager(hq, hk, hv, held);
  return reshape(transpose(std::move(out), 0, 1), {patches, -1});
}

/// apply_rotary_pos_emb_vision: x[patches, heads, head_dim] turned in fp32 by angles[patches, head_dim / 2], whose
/// sines and cosines are made for each call.
inline Value turn_patches(const Value& arg, const Value& angles) {
  using namespace eager;
  const DType t = arg.dtype();
  const Value x = to(unsqueeze(arg, 0), DType::fp32);
  const auto spread = [](const Value& v) { return unsqueeze(repeat(unsqueeze(v, 1), {1, 1, 2}), 0); };
  Value cosine = eager::cos(angles);
  Value sine = eager::sin(angles);
  cosine = spread(cosine);
  sine = spread(sine);
  Value out = rotate(x, cosine, sine);
  out = to(out, t);
  return squeeze(std::move(out), 0);
}

/// The classes' forward: x[patches, width] -> the same.
inline Value forward(Context& c, const PackedAttention& a, DotsAttention kind, Value arg, std::int64_t heads,
                     const Value& angles, const Segments& segments) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, a.scope);
  auto [q, k, v] = packed_qkv(c, a, x, heads);
  stacks::rotate(c, q, k, angles, angles, [&, &q = q, &k = k] {
    q = turn_patches(q, angles);
    k = turn_patches(k, angles);
  });
  DotsHeld held;
  Value out = dots_attend(c, kind, q, k, v, segments, held);
  out = forward(c, a.proj, out);
  return out;
}

}  // namespace vlmest
