// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/nn/experts.hpp>

/// Experts that Python goes through in a loop over those that got rows: modeling_step3p7.py, Step3p7Experts, whose
/// class has no other implementation.
namespace vlmest::stacks::transformers {

/// Step3p7Experts._apply_gate: x[rows, 2 * inner], which stays to the end of the function.
inline Value clamped_halves(Context& c, const Moe& m, Value arg) {
  using namespace eager;
  const Value gate_up = std::move(arg);
  std::vector<Value> halves = split(gate_up, std::array{m.inner, m.inner}, -1);
  Value gate = std::move(halves[0]), up = std::move(halves[1]);
  halves.clear();
  Value activated;
  {
    InScope a(c.b, m.activation_scope);
    activated = activate(c, m.config->activation, gate);
  }
  gate = clamp(std::move(activated), ClampedAt::max);
  up = clamp(up, ClampedAt::both);
  return mul(gate, up);
}

/// Step3p7Experts.forward: x[tokens, hidden]. Marks of every token's experts, int64[experts, top_k, tokens], stay to
/// its end; the host reads which experts have any, and for each of these where they are. What an expert gives is as
/// wide as the weights it is multiplied by.
inline Value looped_experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  if (m.gate_up_stored.how || m.down_stored.how)
    throw Error("quantization_config",
                "experts that run one after the other from weights in a storage type of their own are not modelled",
                "leave the experts out of the quantised modules");
  InScope in(c.b, m.experts_scope);
  const std::int64_t tokens = x.size(0);
  const std::vector<std::int64_t> rows = rows_of_experts(c, m, tokens);
  Value y = zeros_like(x);
  Value mask, hit;
  {
    const NoGrad off(c.b);
    Value marks = fill(c.b, "zeros", {tokens, g.top_k, g.experts}, DType::int64);
    mask = permute(mark_places(std::move(marks), unsqueeze(r.experts, -1)), {2, 1, 0});
    Value counts = sum_over(mask, std::array<bool, Shape::max_rank>{false, true, true});
    hit = nonzero(compare_scalar("gt.Scalar", std::move(counts)),
                  std::count_if(rows.begin(), rows.end(), [](auto n) { return n > 0; }));
  }
  const Value gate_up(c.b, m.gate_up), down(c.b, m.down);
  Value expert, place, token, current;  // variables of the loop
  std::int64_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;
    const auto index = static_cast<std::int64_t>(i);
    expert = select(select(hit, 0, at++), 0, 0);
    item(compare_scalar("eq.Scalar", expert));
    item(expert);
    {
      const Value found = nonzero(select(mask, 0, index), rows[i]);
      place = select(found, 1, 0);
      token = select(found, 1, 1);
    }
    Value of_expert = take_rows(x, token);
    item(expert);
    of_expert = linear(std::move(of_expert), select(gate_up, 0, index), {});
    current = clamped_halves(c, m, std::move(of_expert));
    item(expert);
    of_expert = linear(current, select(down, 0, index), {});
    Value weight = take_pairs(unsqueeze(r.weights, -1), token, place);
    current = mul(std::move(of_expert), std::move(weight));
    Value added = to(current, x.dtype());
    y = index_add_(std::move(y), token, std::move(added));
  }
  return y;
}

}  // namespace vlmest::stacks::transformers
