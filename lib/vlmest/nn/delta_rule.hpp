// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// The gated delta rule (Gated DeltaNet, arXiv:2412.06464, section 3) as transformers 5.17 runs it without the packages
/// fla and causal-conv1d: modeling_qwen3_5.py, torch_chunk_gated_delta_rule and torch_recurrent_gated_delta_rule, in
/// fp32 whatever the model's type.
namespace vlmest {

using DeltaRuleInputs = eager::DeltaRuleTensors;
using DeltaRuleOutput = eager::DeltaRuleResult;

/// modeling_qwen3_5.py, l2norm.
inline Value l2_norm(const Value& x) {
  using namespace eager;
  const Value inverse = rsqrt(add_scalar(sum(mul(x, x), -1, true)));
  return mul(x, inverse);
}

/// [B, S, heads, …] -> fp32[B, heads, S, …], row-major where the type is another.
inline Value heads_first(const Value& x) { return eager::to_row_major(eager::transpose(x, 1, 2), DType::fp32); }

/// The arguments in fp32, heads first, q and k of unit length; `scale` is what runs where q is divided by
/// sqrt(key_dim). The originals are the caller's.
template <class Scale>
DeltaRuleInputs normed_inputs(const DeltaRuleInputs& given, Scale&& scale) {
  DeltaRuleInputs x;
  x.q = heads_first(given.q);
  x.k = heads_first(given.k);
  x.v = heads_first(given.v);
  x.beta = heads_first(given.beta);
  x.decay = heads_first(given.decay);
  x.q = l2_norm(x.q);
  x.k = l2_norm(x.k);
  x.q = scale(x.q);
  return x;
}

/// All five padded behind the last token to whole chunks (the default of chunk_size, which no caller changes): three,
/// then the two without channels; what they were stays until each of the group is done.
inline void pad_to_chunks(DeltaRuleInputs& x, std::int64_t after) {
  using namespace eager;
  {
    Value q = pad(x.q, 2, 0, after), k = pad(x.k, 2, 0, after), v = pad(x.v, 2, 0, after);
    x.q = std::move(q);
    x.k = std::move(k);
    x.v = std::move(v);
  }
  Value beta = pad(x.beta, 2, 0, after), decay = pad(x.decay, 2, 0, after);
  x.beta = std::move(beta);
  x.decay = std::move(decay);
}

/// What is known of all chunks before the first one runs, [B, heads, chunks, 64, …].
struct DeltaRuleChunks {
  Value q, k;       ///< q times the decay since its chunk's beginning, k times that up to its end
  Value values;     ///< new values, as far as the chunk's own tokens make them
  Value decayed_k;  ///< keys that read the state before the chunk
  Value attention;  ///< of the chunk's tokens to each other
  Value sums;       ///< of the decay in log space, since its chunk's beginning
  Value decay;      ///< of the state over a whole chunk, [B, heads, chunks, 1, 1]
};

/// The first phase of torch_chunk_gated_delta_rule: the UT transform and attention within chunks. `locals` are the
/// function's variables that the second phase does not read, alive until it returns.
inline DeltaRuleChunks within_chunks(DeltaRuleInputs& x, std::vector<Value>& locals) {
  using namespace eager;
  const std::int64_t n = delta_rule_chunk;
  const auto by_chunk = [&](const Value& v) { return view(v, {v.size(0), v.size(1), -1, n, v.size(3)}); };
  Value v_beta = mul(x.v, unsqueeze(x.beta, -1));
  Value k_beta = mul(x.k, unsqueeze(x.beta, -1));
  DeltaRuleChunks r;
  r.q = by_chunk(x.q);
  r.k = by_chunk(x.k);
  k_beta = by_chunk(k_beta);
  v_beta = by_chunk(v_beta);
  x.q.reset();
  x.k.reset();
  const Value decay = view(std::move(x.decay), {x.beta.size(0), x.beta.size(1), -1, n});
  Value ones = fill(r.q.builder(), "ones", {n, n}, DType::boolean);
  const Value upper = triangle("triu", std::move(ones));
  r.sums = running_sum(decay);
  const Value& sums = r.sums;
  Value pairs = sub(unsqueeze(sums, 4), unsqueeze(sums, 3));
  pairs = masked_fill(pairs, upper);
  pairs = unary(functions::exp, pairs);
  const Value system = mul(matmul(k_beta, matrix_transpose(r.k)), pairs);
  r.attention = mul(matmul(r.q, matrix_transpose(r.k)), pairs);
  const Value decayed_k_beta = mul(k_beta, unsqueeze(unary(functions::exp, sums), -1));
  r.values = solve_triangular(system, v_beta);
  r.decayed_k = solve_triangular(system, decayed_k_beta);
  locals = {x.v, x.beta, v_beta, k_beta, decay, upper, pairs, system, decayed_k_beta};
  return r;
}

/// torch_chunk_gated_delta_rule over `initial` (none: zeros). `keeps_state`: the caller asks for the final state.
inline DeltaRuleOutput chunk_delta_rule(const DeltaRuleInputs& given, const Value& initial, bool keeps_state) {
  using namespace eager;
  const DType type = given.q.dtype();
  const std::int64_t tokens = given.q.size(1), n = delta_rule_chunk, after = (n - tokens % n) % n;
  DeltaRuleInputs x = normed_inputs(given, [](const Value& q) { return mul_scalar(q); });
  const std::int64_t batch = x.v.size(0), heads = x.v.size(1), key_dim = x.k.size(3), value_dim = x.v.size(3);
  pad_to_chunks(x, after);
  std::vector<Value> locals;
  DeltaRuleChunks c = within_chunks(x, locals);
  const Value& sums = c.sums;
  Builder& b = sums.builder();
  Value state =
      initial ? to(initial, c.values.dtype()) : fill(b, "zeros", {batch, heads, key_dim, value_dim}, c.values.dtype());
  Value out = zeros_like(c.values);
  c.q = mul(c.q, unsqueeze(unary(functions::exp, sums), -1));
  Value rest = sub(slice(sums, -1, n - 1, n), sums);
  c.k = mul(c.k, unsqueeze(unary(functions::exp, std::move(rest)), -1));
  c.decay = unsqueeze(unsqueeze(unary(functions::exp, select(sums, -1, n - 1)), 3), 4);
  Value fresh, earlier;  // variables of the loop
  for (std::int64_t i = 0; i < (tokens + after) / n; ++i) {
    Value own = select(c.values, 2, i), keys = select(c.decayed_k, 2, i);
    Value known = matmul(std::move(keys), state);
    fresh = sub(std::move(own), std::move(known));
    Value queries = select(c.q, 2, i);
    earlier = matmul(std::move(queries), state);
    Value weights = select(c.attention, 2, i);
    Value within = matmul(std::move(weights), fresh);
    Value both = add(earlier, std::move(within));
    assign_part(out, 2, i, std::move(both));
    Value decay = select(c.decay, 2, i);
    Value decayed = mul(state, std::move(decay));
    Value update = matmul(matrix_transpose(select(c.k, 2, i)), fresh);
    state = add(std::move(decayed), std::move(update));
  }
  if (!keeps_state) state.reset();
  out = reshape(out, {batch, heads, -1, value_dim});
  out = slice(out, 2, 0, tokens);
  out = to_row_major(transpose(out, 1, 2), type);
  return {std::move(out), std::move(state)};
}

/// torch_recurrent_gated_delta_rule of one token over `initial`.
inline DeltaRuleOutput recurrent_delta_rule(const DeltaRuleInputs& given, const Value& initial) {
  using namespace eager;
  const DType type = given.q.dtype();
  DeltaRuleInputs x = normed_inputs(given, [](const Value& q) { return div_scalar(q); });
  Value state = to(initial, x.v.dtype());
  Value out = zeros_like(x.v);
  const Value q = select(x.q, 2, 0), k = select(x.k, 2, 0), v = select(x.v, 2, 0);
  const Value decay = unsqueeze(unsqueeze(unary(functions::exp, select(x.decay, 2, 0)), 2), 3);
  state = mul(state, decay);
  const Value beta = unsqueeze(select(x.beta, 2, 0), -1);
  const Value known = sum(mul(state, unsqueeze(k, -1)), -2, false);
  Value missing = sub(v, known);
  const Value delta = mul(std::move(missing), beta);
  state = add(state, mul(unsqueeze(k, -1), unsqueeze(delta, -2)));
  assign_part(out, 2, 0, sum(mul(state, unsqueeze(q, -1)), -2, false));
  out = to(contiguous(transpose(out, 1, 2)), type);
  return {std::move(out), std::move(state)};
}

}  // namespace vlmest
