// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/nn/experts.hpp>
#include <vlmest/nn/stack/transformers/looped_experts.hpp>

namespace vlmest::stacks::transformers {

/// What the model's router module decides.
inline Routing route(Context&, CallRef<Routing> module) { return module(); }

/// What modeling_gpt_oss.py, GptOssExperts._apply_gate, takes apart: every other channel is a gate.
inline Value clamped_pairs(const Value& gate_up) {
  const std::int64_t channels = gate_up.size(-1);
  Value gate = eager::slice(gate_up, -1, 0, channels, 2), up = eager::slice(gate_up, -1, 1, channels, 2);
  return clamped_glu(gate, up);
}

/// act(gate) * up over the halves of the last dimension (integrations/moe.py, _default_apply_gate), or clamped as
/// modeling_minimax_m3_vl.py, MiniMaxM3VLExperts._apply_gate, does it.
inline Value apply_gate(Context& c, const Moe& m, const Value& gate_up) {
  if (m.config->gate == ExpertGate::clamped_pairs) return clamped_pairs(gate_up);
  const std::int64_t inner = m.inner;
  std::vector<Value> halves = eager::split(gate_up, std::array{inner, inner}, -1);
  Value gate = std::move(halves[0]), up = std::move(halves[1]);
  if (m.config->gate == ExpertGate::clamped_halves) return clamped_glu(gate, up);
  Value activated;
  {
    InScope a(c.b, m.activation_scope);
    activated = activate(c, m.config->activation, gate);
  }
  return eager::mul(std::move(activated), up);
}

/// modeling_aria.py, sequential_experts_gemm: the rows of each expert times its matrix[in, out], one after the other,
/// copied into a tensor of all rows. The host reads how many there are (`counts`), and an expert without rows is called
/// too.
inline Value product_of_each(const Value& tokens, const Value& weight, const Value& counts,
                             const std::vector<std::int64_t>& rows) {
  using namespace eager;
  to_host(counts);
  Value output = fill(weight.builder(), "zeros", {tokens.size(0), weight.size(-1)}, tokens.dtype());
  Value part, out;  // variables of the loop
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t end = begin + rows[i];
    part = slice(tokens, 0, begin, end);
    out = mm(part, select(weight, 0, static_cast<std::int64_t>(i)));
    assign(
        output, [begin, end](const Value& v) { return slice(v, 0, begin, end); }, out);
    begin = end;
  }
  return output;
}

/// modeling_aria.py, AriaExperts.forward, behind its choice of experts; the gate is silu, whatever the config says.
inline Value sequential_experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  InScope in(c.b, m.experts_scope);
  const std::int64_t tokens = x.size(0);
  const std::vector<std::int64_t> rows = rows_of_experts(c, m, tokens);
  Value numbers = to(reshape(r.experts, {-1}), DType::fp32);
  Value histogram = histc(std::move(numbers), g.experts);
  const Value counts = to(std::move(histogram), r.experts.dtype());
  const Value order = sort(reshape(r.experts, {-1})).indices;
  Value source = unary("floor_divide", order);
  const Value permuted = index_select(x, 0, std::move(source));
  const auto product = [&](ScopeId scope, const Value& of, TensorId weight) {
    InScope module(c.b, scope);
    return product_of_each(of, Value(c.b, weight), counts, rows);
  };
  Value inner = product(m.gate_up_scope, permuted, m.gate_up);
  const std::vector<Value> halves = split(inner, std::array{g.inner, g.inner}, -1);
  inner = mul(unary(functions::silu, halves[0]), halves[1]);
  const Value of_experts = product(m.down_scope, inner, m.down);
  Value back = fill(c.b, "zeros", {checked_mul(tokens, g.top_k), g.hidden}, of_experts.dtype());
  back = index_copy_(std::move(back), order, of_experts);
  back = view(std::move(back), {tokens, g.top_k, g.hidden});
  return sum(mul(back, unsqueeze(r.weights, -1)), 1, false);
}

/// transformers 5.17 integrations/moe.py, grouped_mm_experts_forward, the implementation that is chosen by default
/// where torch has grouped_mm: rows are sorted by expert, go through two grouped products and back to their places.
/// The masks for rows of experts on other ranks are made and applied on one rank too. Biases are gathered for each row
/// and added in place (_grouped_linear).
inline Value experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  if (g.sequential) return sequential_experts(c, m, x, r);
  if (g.looped) return looped_experts(c, m, x, r);
  const int ranks = m.masked ? shard_ranks(c) : 1;
  InScope in(c.b, m.experts_scope);
  const std::int64_t tokens = x.size(0), rows = checked_mul(tokens, g.top_k), active = active_experts(m, tokens);
  Value sample_weights = reshape(r.weights, {-1}), ids = reshape(r.experts, {-1});
  Ranked sorted = sort(ids);
  Value source = unary("floor_divide", sorted.indices);
  Value selected = take_rows(x, std::move(source));
  Value weights = take_rows(sample_weights, sorted.indices);
  Value histogram_input = to(sorted.values, DType::int32);
  Value counts = histc(histogram_input, m.experts);
  Value offsets = cumsum(counts, DType::int32);
  Value elsewhere = unsqueeze(compare_scalar("ge.Scalar", sorted.values), -1);
  sorted.values = pointwise_("clamp_", std::move(sorted.values));
  Value bias;
  const auto product = [&](const Value& of, TensorId weight, const QuantizedWeight& stored) {
    Value p = expert_matmul(c, of, weight, stored, offsets, active, g.inputs_first, ranks);
    return bias ? add_(std::move(p), bias) : p;
  };
  if (g.biased) bias = take_rows(to(Value(c.b, m.gate_up_bias), c.dtype()), sorted.values);
  selected = masked_fill_(std::move(selected), elsewhere);
  Value y = product(selected, m.gate_up, m.gate_up_stored);
  y = masked_fill(y, elsewhere);
  y = apply_gate(c, m, y);
  if (g.biased) bias = take_rows(to(Value(c.b, m.down_bias), c.dtype()), sorted.values);
  y = product(y, m.down, m.down_stored);
  y = masked_fill(y, elsewhere);
  Value weighted = mul(y, unsqueeze(weights, -1));
  Value places = empty_like(sorted.indices);
  Value order = arange(c.b, rows);
  places = put_rows(std::move(places), sorted.indices, std::move(order));
  weighted = take_rows(weighted, places);
  Value y_sum = sum(view(weighted, {tokens, g.top_k, g.hidden}), 1, false);
  return to(std::move(y_sum), x.dtype());
}

}  // namespace vlmest::stacks::transformers
