// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include <vlmest/family/gemma3n/audio_config.hpp>
#include <vlmest/nn/attention_args.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

/// The attention of Gemma 3n's audio tower (transformers 5.17 modeling_gemma3n.py, Gemma3nAudioAttention with its
/// Gemma3nAudioRelativePositionEmbedding): blocks of states that see a window around them, written out.
namespace vlmest {

struct Gemma3nAudioAttention {
  ScopeId scope = 0, positions_scope = 0;
  Linear positions, q, k, v;
  TensorId timescales = none, per_dim_scale = none, q_scale = none, window = none, softcap = none;
};

/// In the order of __init__.
inline Gemma3nAudioAttention make_gemma3n_audio_attention(Context& c, const Gemma3nAudio& g) {
  const std::int64_t dim = g.hidden / g.heads;
  Module m(c, "attn");
  Gemma3nAudioAttention a{.scope = m.scope};
  {
    Module r(c, "relative_position_embedding");
    a.positions_scope = r.scope;
    a.positions = make_linear(c, "pos_proj", g.hidden, g.hidden, false);
    a.timescales = buffer(c, "inv_timescales", {1, 1, g.hidden / 2}, DType::fp32);
  }
  a.per_dim_scale = parameter(c, "per_dim_scale", {dim});
  a.q = make_linear(c, "q_proj", g.hidden, g.hidden, false);
  a.k = make_linear(c, "k_proj", g.hidden, g.hidden, false);
  a.v = make_linear(c, "v_proj", g.hidden, g.hidden, false);
  a.q_scale = buffer(c, "q_scale", Shape{}, c.dtype());
  a.window = buffer(c, "local_causal_valid_mask", {g.block, g.context()}, DType::boolean);
  a.softcap = buffer(c, "softcap", Shape{}, DType::fp32);
  return a;
}

/// _pad_dim1: zeros on both sides, however many, and a concatenation.
inline Value padded_states(const Value& x, std::int64_t before, std::int64_t behind) {
  using namespace eager;
  const auto zeros = [&](std::int64_t n) {
    Shape s = x.shape();
    s[1] = n;
    return fill(x.builder(), "new_zeros", s, x.dtype());
  };
  std::array<Value, 3> parts{zeros(before), x, Value()};
  parts[2] = zeros(behind);
  return cat(std::span<Value>(parts), 1);
}
/// _convert_to_block.
inline Value state_blocks(const Value& arg, std::int64_t block) {
  using namespace eager;
  Value x = arg;
  const std::int64_t blocks = (x.size(1) + block - 1) / block, lacking = blocks * block - x.size(1);
  if (lacking > 0) x = padded_states(x, 0, lacking);
  return contiguous(reshape(x, {x.size(0), blocks, block, x.size(2), x.size(3)}));
}
/// _extract_block_context of states [N, S, heads, dim], or of a mask [N, S].
inline Value state_contexts(const Value& arg, const Gemma3nAudio& g) {
  using namespace eager;
  Value x = padded_states(arg, g.past(), g.right + g.block - 1);
  Value windows = unfold(x, 1, g.context(), g.block);
  if (windows.shape().rank() > 3) windows = permute(windows, {0, 1, 4, 2, 3});
  return clone_contiguous(windows);
}

/// _get_timing_signal_1d_pos: [1, positions, hidden].
inline Value timing_signal(Context& c, const Gemma3nAudioAttention& a, const Value& places) {
  using namespace eager;
  const Value position = unsqueeze(to(places, DType::fp32), -1);
  const Value scaled = mul(position, Value(c.b, a.timescales));
  Value signal;
  {
    Value sine = sin(scaled), cosine = cos(scaled);
    signal = cat(std::move(sine), std::move(cosine), -1);
  }
  return to(signal, c.dtype());
}

/// _relative_shift: [N, heads, blocks, block, span] -> [N, heads, blocks, block, context].
inline Value relative_shift(const Value& x, std::int64_t context) {
  using namespace eager;
  const Shape s = x.shape();
  const Value padded = pad(x, 4, 0, context + 1 - s[4]);
  Value y = reshape(padded, {s[0], s[1], s[2], s[3] * (context + 1)});
  y = slice(y, -1, 0, s[3] * context);
  return reshape(y, {s[0], s[1], s[2], s[3], context});
}

/// Gemma3nAudioRelativePositionEmbedding.forward of blocks of queries and their contexts' keys: scores.
inline Value relative_scores(Context& c, const Gemma3nAudioAttention& a, const Gemma3nAudio& g, const Value& queries,
                             const Value& keys) {
  using namespace eager;
  InScope in(c.b, a.positions_scope);
  const std::int64_t n = queries.size(0), blocks = queries.size(1), dim = g.hidden / g.heads;
  const std::int64_t span = g.past() + g.right + 1;
  const Value places = unsqueeze(fill(c.b, "arange.start_step", {span}, DType::int64), 0);
  const Value signal = timing_signal(c, a, places);
  const Value projected = forward(c, a.positions, signal);
  const Value rows = squeeze(reshape(projected, {1, span, g.heads, dim}), 0);
  const Value ac = matmul(permute(queries, {0, 3, 1, 2, 4}), permute(keys, {0, 3, 1, 4, 2}));
  const Value flat = reshape(permute(queries, {0, 3, 1, 2, 4}), {n, g.heads, blocks * g.block, dim});
  Value bd = matmul(flat, expand(unsqueeze(permute(rows, {1, 2, 0}), 0), {n, g.heads, dim, span}));
  bd = reshape(bd, {n, g.heads, blocks, g.block, span});
  const Value shifted = relative_shift(bd, g.context());
  return add(ac, shifted);
}

/// Gemma3nAudioAttention.forward of x[N, S, hidden], hidden by mask[N, S]: [N, S, heads, dim], a view.
inline Value forward(Context& c, const Gemma3nAudioAttention& a, const Gemma3nAudio& g, const Value& x,
                     const Value& mask) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t n = x.size(0), states = x.size(1), dim = g.hidden / g.heads;
  const auto project = [&](const Linear& l) {
    return contiguous(reshape(forward(c, l, x), {n, states, g.heads, dim}));
  };
  Value q = project(a.q);
  const Value k = project(a.k), v = project(a.v);
  const Value by = unary(functions::softplus, Value(c.b, a.per_dim_scale));
  {
    Value scaled = mul(q, Value(c.b, a.q_scale));
    q = mul(std::move(scaled), view(by, {1, 1, 1, dim}));
  }
  const Value queries = state_blocks(q, g.block), keys = state_contexts(k, g), values = state_contexts(v, g);
  const std::int64_t blocks = queries.size(1);
  const Value real = pointwise("bitwise_not", DType::boolean, mask);
  const Value seen = state_contexts(real, g);
  const Value visible = pointwise("logical_and", DType::boolean, unsqueeze(unsqueeze(seen, 1), -2),
                                  view(Value(c.b, a.window), {1, 1, 1, g.block, g.context()}));
  Value logits = relative_scores(c, a, g, queries, keys);
  logits = div(logits, Value(c.b, a.softcap));
  logits = unary(functions::tanh, logits);
  logits = mul(logits, Value(c.b, a.softcap));
  {
    Value lowest = fill(c.b, "scalar_tensor", Shape{}, logits.dtype());
    logits = where(visible, logits, std::move(lowest));
  }
  const Value probabilities = to(softmax(logits, DType::fp32), values.dtype());
  const Value weights = reshape(permute(probabilities, {0, 2, 1, 3, 4}), {-1, g.block, g.context()});
  const Value rows = reshape(permute(values, {0, 1, 3, 2, 4}), {-1, g.context(), dim});
  const Value product = bmm(weights, rows);
  Value out = permute(reshape(product, {n, blocks, g.heads, g.block, dim}), {0, 1, 3, 2, 4});
  out = reshape(out, {n, blocks * g.block, g.heads, dim});
  return slice(out, 1, 0, states);
}

}  // namespace vlmest
