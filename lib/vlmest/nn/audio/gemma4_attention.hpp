// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/attention_args.hpp>
#include <vlmest/nn/clipped_linear.hpp>
#include <vlmest/nn/mask_function.hpp>
#include <vlmest/nn/norm.hpp>

/// The attention of Gemma 4's audio tower (transformers 5.17 models/gemma4, Gemma4AudioAttention): blocks of states
/// that see a window around them, positions relative to it, scores squashed by tanh, all of it in fp32 and written out.
namespace vlmest {

/// Gemma 4's audio tower (Gemma4AudioModel), a conformer.
struct Gemma4Audio {
  std::int64_t hidden = 1024;
  std::int64_t layers = 12;
  std::int64_t heads = 8;
  std::array<std::int64_t, 2> channels{128, 32};  ///< of the two convolutions that shorten the sequence
  std::int64_t kernel = 5;                        ///< of each layer's convolution over time
  std::int64_t out = 1536;                        ///< output_proj_dims
  std::int64_t block = 12;                        ///< attention_chunk_size
  std::int64_t left = 13;                         ///< attention_context_left, the state itself included
  std::int64_t right = 0;                         ///< attention_context_right
  Activation activation = Activation::silu;
  bool clips = true;  ///< use_clipped_linears

  std::int64_t context() const { return block + left - 1 + right; }
};

struct Gemma4AudioAttention {
  ScopeId scope = 0;
  ClippedLinear q, k, v, post;
  Linear relative_k;
  TensorId per_dim_scale = none, softcap = none;
};

/// Gemma4AudioAttention.__init__.
inline Gemma4AudioAttention make_audio_attention(Context& c, const Gemma4Audio& g) {
  const std::int64_t head_dim = g.hidden / g.heads, width = checked_mul(g.heads, head_dim);
  Module m(c, "self_attn");
  Gemma4AudioAttention a{.scope = m.scope};
  a.q = make_clipped_linear(c, "q_proj", g.hidden, width, g.clips);
  a.k = make_clipped_linear(c, "k_proj", g.hidden, width, g.clips);
  a.v = make_clipped_linear(c, "v_proj", g.hidden, width, g.clips);
  a.post = make_clipped_linear(c, "post", g.hidden, g.hidden, g.clips);
  a.relative_k = make_linear(c, "relative_k_proj", g.hidden, width, false);
  a.per_dim_scale = parameter(c, "per_dim_scale", {head_dim});
  a.softcap = buffer(c, "softcap", Shape{}, c.dtype());
  return a;
}

/// sliding_window_mask_function: (0 <= q - k < left) or (q < k < q + right).
inline Value window_of_states(const MaskGrid& g) {
  using namespace eager;
  const auto both = [](Value a, Value b) {
    return pointwise("bitwise_and.Tensor", DType::boolean, std::move(a), std::move(b));
  };
  const Value distance = sub(view(g.query, g.column), g.key);
  Value left;
  {
    Value behind = compare_scalar("ge.Scalar", distance);
    Value near = compare_scalar("lt.Scalar", distance);
    left = both(std::move(behind), std::move(near));
  }
  Value right;
  {
    Value ahead = compare_scalar("lt.Scalar", distance);
    Value near = compare_scalar("lt.Scalar", neg(distance));
    right = both(std::move(ahead), std::move(near));
  }
  return pointwise("bitwise_or.Tensor", DType::boolean, left, right);
}

/// create_bidirectional_mask within a window, then _convert_4d_mask_to_blocked_5d: [N, 1, blocks, block, context].
inline Value blocked_mask(Context& c, const Gemma4Audio& g, const Value& real, std::int64_t states) {
  using namespace eager;
  const std::int64_t n = real.size(0), blocks = (states + g.block - 1) / g.block, padded = blocks * g.block;
  Value whole;
  {
    const Value padding = real;
    const MaskGrid at = mask_grid(c, {.batch = n, .q_len = states, .kv_len = states}, true);
    auto everything = [&] { return compare_scalar("ge.Scalar", at.query); };
    auto window = [&] { return window_of_states(at); };
    // and_masks of the two, both of whose first are of the queries alone.
    auto inside = [&] {
      Value shown = fill(c.b, "new_ones", at.unit, DType::boolean);
      shown = pointwise("bitwise_and.Tensor", DType::boolean, shown, everything());
      shown = view(std::move(shown), at.unit_column);
      return pointwise("bitwise_and.Tensor", DType::boolean, shown, window());
    };
    auto is_real = [&] { return padding_function(at, padding); };
    whole = whole_mask(at, and_masks(c, at, inside, is_real));
  }
  if (c.plan.attention == AttentionKind::eager) {
    Value zero = from_host(c.b, Shape{}, c.dtype());
    Value lowest = fill(c.b, "scalar_tensor", Shape{}, c.dtype());
    whole = where(whole, std::move(zero), std::move(lowest));
  }
  const Value square = pad(whole, {{-2, 0, padded - states}, {-1, 0, padded - states}});
  Value mask = reshape(square, {n, 1, blocks, g.block, padded});
  mask = pad(mask, -1, g.left - 1, g.right);
  Value starts = mul_scalar(arange(c.b, blocks));
  Value offsets = arange(c.b, g.context());
  Value index = add(unsqueeze(starts, 1), unsqueeze(offsets, 0));
  index = expand(view(index, {1, 1, blocks, 1, g.context()}), {n, 1, blocks, g.block, g.context()});
  return gather_last(mask, index);
}

/// _convert_to_block.
inline Value blocks_of(const Value& x, std::int64_t block) {
  using namespace eager;
  const std::int64_t n = x.size(0), blocks = (x.size(1) + block - 1) / block;
  Value y = pad(x, 1, 0, blocks * block - x.size(1));
  return contiguous(reshape(y, {n, blocks, block, x.size(2), x.size(3)}));
}
/// _extract_block_context.
inline Value contexts_of(const Value& x, const Gemma4Audio& g) {
  using namespace eager;
  Value y = pad(x, 1, g.left - 1, g.right + g.block - 1);
  y = unfold(y, 1, g.context(), g.block);
  y = permute(y, {0, 1, 4, 2, 3});
  return contiguous(y);
}
/// _rel_shift.
inline Value shifted(const Value& x, std::int64_t context) {
  using namespace eager;
  const Shape s = x.shape();
  Value y = pad(x, 4, 0, context + 1 - s[4]);
  y = view(y, {s[0], s[1], s[2], s[3] * (context + 1)});
  y = slice(y, -1, 0, s[3] * context);
  return view(y, {s[0], s[1], s[2], s[3], context});
}

/// Gemma4AudioAttention.forward.
inline Attended forward(Context& c, const Gemma4AudioAttention& a, const Gemma4Audio& g, const Value& x,
                        const Value& mask, const Value& positions) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t n = x.size(0), states = x.size(1), dim = g.hidden / g.heads;
  const auto project = [&](const ClippedLinear& l) {
    return view(to(forward(c, l, x), DType::fp32), {n, states, g.heads, dim});
  };
  Value q = project(a.q);
  Value k = project(a.k);
  Value v = project(a.v);
  {
    Value scaled = mul_scalar(q);
    Value by = unary(functions::softplus, Value(c.b, a.per_dim_scale));
    q = mul(std::move(scaled), std::move(by));
  }
  k = mul_scalar(k);
  q = blocks_of(q, g.block);
  k = contexts_of(k, g);
  v = contexts_of(v, g);
  const std::int64_t blocks = q.size(1);
  Value relative = forward(c, a.relative_k, positions);
  relative = view(relative, {-1, g.heads, dim});
  relative = to(relative, DType::fp32);
  const Value queries = permute(q, {0, 3, 1, 2, 4});
  const Value ac = matmul(queries, permute(k, {0, 3, 1, 4, 2}));
  const Value flat = reshape(queries, {n, g.heads, -1, dim});
  Value bd = matmul(flat, expand(unsqueeze(permute(relative, {1, 2, 0}), 0), {n, g.heads, dim, relative.size(0)}));
  bd = reshape(bd, {n, g.heads, blocks, g.block, -1});
  bd = shifted(bd, g.context());
  Value weights = add(ac, bd);
  weights = div(weights, Value(c.b, a.softcap));
  weights = unary(functions::tanh, weights);
  weights = mul(weights, Value(c.b, a.softcap));
  if (mask) {
    Value hidden = pointwise("logical_not", DType::boolean, mask);
    weights = masked_fill(weights, std::move(hidden));
  }
  weights = softmax(weights, DType::fp32);
  Value out = matmul(weights, permute(v, {0, 3, 1, 2, 4}));
  out = reshape(permute(out, {0, 2, 3, 1, 4}), {n, blocks * g.block, -1});
  out = contiguous(slice(out, 1, 0, states));
  Value narrow = to(out, x.dtype());
  out = forward(c, a.post, narrow);
  return {out, weights};
}

}  // namespace vlmest
