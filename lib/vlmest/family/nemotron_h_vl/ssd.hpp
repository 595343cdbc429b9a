// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/graph/eager/scan.hpp>
#include <vlmest/graph/eager/triangular.hpp>
#include <vlmest/nn/context.hpp>

/// Mamba-2's scan by chunks (state space duality, arXiv:2405.21060, section 6) as transformers 5.17 runs it without the
/// package mamba_ssm: models/nemotron_h/modeling_nemotron_h.py, mamba2_chunk_scan and mamba2_selective_state_update.
/// What a matrix product would sum up is written out first, in fp32.
namespace vlmest {

/// x[B, S, heads, head_dim], b and c[B, S, groups, state], dt[B, S, heads]; rates a[heads] in fp32, what passes by
/// d[heads], and what is added to the steps, dt_bias[heads]. The caller holds all of them.
struct SsdInputs {
  Value x, b, c, dt, a, d, dt_bias;
};
struct SsdOutput {
  Value out, state;
};

/// segment_sum of steps[..., n]: the sums of what lies between each two tokens, [..., n, n].
inline Value segment_sum(Value steps) {
  using namespace eager;
  const int rank = steps.shape().rank();
  const std::int64_t n = steps.size(-1);
  Shape pairs = steps.shape();
  pairs.push_back(n);
  Builder& b = steps.builder();
  const auto lower = [&] {
    Value ones = fill(b, "ones", {n, n}, DType::boolean);
    return triangle("tril", std::move(ones));
  };
  const auto outside = [](const Value& mask) { return unary("bitwise_not", mask); };
  Value x = expand(unsqueeze(std::move(steps), rank), pairs);
  Value mask = lower();
  x = masked_fill(x, outside(mask));
  Value sums = running_sum_down(x);
  mask = lower();
  return masked_fill(sums, outside(mask));
}

/// Padding behind the last token of x[B, S, …].
inline Value pad_tokens(const Value& x, std::int64_t after) { return eager::pad(x, 1, 0, after); }

/// reshape_into_chunks: [B, S, …] -> [B, chunks, chunk, …].
inline Value into_chunks(const Value& x, std::int64_t after, std::int64_t chunk) {
  Value padded = pad_tokens(x, after);
  Shape s{padded.size(0), -1, chunk};
  for (int d = 2; d < padded.shape().rank(); ++d) s.push_back(padded.size(d));
  return eager::reshape(std::move(padded), s);
}

/// mamba2_chunk_scan of a prompt from no state. Variables of the function are alive until it returns.
inline SsdOutput chunk_scan(const SsdInputs& in, std::int64_t chunk, bool keeps_state) {
  using namespace eager;
  const std::int64_t batch = in.x.size(0), tokens = in.x.size(1), heads = in.x.size(2), head_dim = in.x.size(3);
  const std::int64_t shared = heads / in.b.size(2), after = (chunk - tokens % chunk) % chunk;
  const auto all = [](const Value& v, int dim) { return unsqueeze(v, dim); };
  Value dt = add(in.dt, in.dt_bias);
  dt = unary(functions::softplus, dt);
  dt = clamp(dt, ClampedAt::both);
  Value x = to(in.x, DType::fp32);
  Value b = repeat_interleave(to(in.b, DType::fp32), shared, 2);
  Value c = repeat_interleave(to(in.c, DType::fp32), shared, 2);
  const Value residual = mul(all(in.d, 1), pad_tokens(x, after));
  {
    Value step = to(all(dt, 3), DType::fp32);
    x = mul(x, std::move(step));
  }
  Value a;
  {
    Value step = to(dt, DType::fp32);
    a = mul(in.a, std::move(step));
  }
  {
    Value cx = into_chunks(x, after, chunk), ca = into_chunks(a, after, chunk);
    Value cb = into_chunks(b, after, chunk), cc = into_chunks(c, after, chunk);
    x = std::move(cx), a = std::move(ca), b = std::move(cb), c = std::move(cc);
  }
  a = permute(a, {0, 3, 1, 2});
  const Value sums = running_sum(a);
  const Value within = unary(functions::exp, segment_sum(a));
  Value weights = sum(mul(all(c, 3), all(b, 2)), -1, false);
  const Value masked = sum(mul(all(weights, 5), all(permute(within, {0, 2, 3, 4, 1}), 5)), -1, false);
  const Value diagonal = sum(mul(all(masked, 5), all(x, 2)), 3, false);
  const Value decay = unary(functions::exp, sub(slice(sums, 3, chunk - 1, chunk), sums));
  const Value decayed = mul(b, all(permute(decay, {0, 2, 3, 1}), 4));
  Value states = sum(mul(all(decayed, 4), all(x, 5)), 2, false);
  const Value before = zeros_like(slice_view(states, 1, 0, 1));
  {
    Value first = before;
    states = cat(std::move(first), states, 1);
  }
  Value over_chunks;
  {
    Value ends = pad(select(sums, 3, chunk - 1), -1, 1, 0);
    over_chunks = transpose(unary(functions::exp, segment_sum(std::move(ends))), 1, 3);
  }
  const Value fresh = sum(mul(all(all(over_chunks, 4), 5), all(states, 2)), 1, false);
  const std::int64_t chunks = fresh.size(1) - 1;
  states = slice(fresh, 1, 0, chunks);
  Value last = select(fresh, 1, chunks);
  const Value out_decay = unary(functions::exp, sums);
  const Value read = mul(all(c, 4), all(states, 2));
  Value off;
  {
    Value seen = sum(read, -1, false);
    off = mul(std::move(seen), all(permute(out_decay, {0, 2, 3, 1}), 4));
  }
  Value y = add(diagonal, off);
  y = reshape(y, {batch, -1, heads, head_dim});
  y = add(y, residual);
  if (after > 0) y = slice(y, 1, 0, tokens);
  if (!keeps_state) last.reset();
  return {std::move(y), std::move(last)};
}

/// mamba2_selective_state_update: one token over `state`, which is written over. x[B, heads, head_dim], b and c[B,
/// groups, state], dt, d and dt_bias[B or none, heads, head_dim], a[heads, head_dim, state].
inline Value state_step(const SsdInputs& in, const Value& state) {
  using namespace eager;
  const std::int64_t batch = in.x.size(0), heads = in.x.size(1), head_dim = in.x.size(2);
  const std::int64_t groups = in.b.size(1), n = in.b.size(2);
  Value dt = add(in.dt, in.dt_bias);
  dt = unary(functions::softplus, dt);
  dt = unsqueeze(dt, 3);
  Value da;
  {
    Value wide = to(dt, DType::fp32);
    Value rate = mul(std::move(wide), in.a);
    da = unary(functions::exp, std::move(rate));
  }
  const auto of_heads = [&](const Value& v, const Shape& s) {
    Value each = expand(view(v, {batch, groups, 1, n}), {batch, groups, heads / groups, n});
    return reshape(contiguous(std::move(each)), s);
  };
  const Value b = of_heads(in.b, {batch, heads, 1, n});
  const Value db = mul(dt, b);
  const Value dbx = mul(db, unsqueeze(in.x, 3));
  Value states;
  {
    Value kept = mul(state, da);
    states = add(std::move(kept), dbx);
  }
  copy_over(state, states);
  const Value c = of_heads(in.c, {batch, heads, n});
  states = to(states, c.dtype());
  Value y = bmm(view(states, {batch * heads, head_dim, n}), view(c, {batch * heads, n, 1}));
  y = view(std::move(y), {batch, heads, head_dim});
  {
    Value passed = mul(in.x, in.d);
    y = add(y, std::move(passed));
  }
  return to(y, in.x.dtype());
}

}  // namespace vlmest
