// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include <vlmest/diagnose/inversion/attention_heads.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace attention_heads_of {

/// A tower that is shown pictures of any size has one length for each; others cut them into tiles of one size.
inline AttentionHeads of_tower(AttentionHeads a, const Vlm& vlm, const ImageLayout& now, std::int64_t length) {
  const auto largest = largest_picture(vlm.image_processor);
  if (!largest) return a;
  a.patch = largest->patches.rows > 0 && largest->tiles == 1 ? largest->resized.height / largest->patches.rows : 0;
  if (largest->tower_tokens == now.tower_tokens) {
    a.fixed = length;
    return a;
  }
  a.most = largest->tower_tokens;
  if (largest->llm_tokens > 0 && largest->patches.count() % largest->llm_tokens == 0 && largest->tiles == 1)
    a.unit = largest->patches.count() / largest->llm_tokens;
  return a;
}

}  // namespace attention_heads_of

VLMEST_INLINE std::optional<ImageLayout> largest_picture(const ImageProcessor& rule) {
  std::optional<ImageLayout> best;
  // Shapes to which processors with tiles fit their grids; processors with a budget of pixels round any of them to it.
  for (const auto& [h, w] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 2}, {3, 4}, {1, 3}})
    try {
      const ImageLayout l = layout(rule, {h * 4096, w * 4096});
      if (!best || l.tiles * l.tower_tokens > best->tiles * best->tower_tokens) best = l;
    } catch (const Error&) {
      continue;  // a size or shape that the processor refuses
    }
  return best;
}

VLMEST_INLINE std::vector<AttentionHeads> attention_heads(const Vlm& vlm, const Plan& given, const Device& device) {
  Plan plan = solve::short_prompt(vlm);
  plan.attention = AttentionKind::eager;
  plan.image_height = given.image_height;
  plan.image_width = given.image_width;
  std::vector<AttentionHeads> r;
  solve::Builds builds(vlm, device, false);
  if (!builds.build(plan)) return r;
  const Graph& g = builds.graph();
  const TensorKinds kinds(g);
  std::map<std::pair<Part, std::int64_t>, std::pair<std::int64_t, AttentionHeads>> widest;
  for (std::size_t i = 0; i < g.tensors.size(); ++i) {
    const Tensor& t = g.tensors[i];
    if (t.alias_of != none || t.role != Role::activation || t.shape.rank() < 3 || t.shape[-1] != t.shape[-2]) continue;
    if (kinds.of({static_cast<TensorId>(i), "", none, requested_bytes(t)}) != Cause::attention_scores) continue;
    const Part part = g.scopes[static_cast<std::size_t>(t.scope)].part;
    auto& [length, a] = widest[{part == Part::vision ? part : Part::language, t.shape[-3]}];
    if (t.shape[-1] <= length) continue;
    length = t.shape[-1];
    a = {.part = part == Part::vision ? part : Part::language, .scope = path(g, t.scope), .heads = t.shape[-3]};
  }
  for (auto& [key, found] : widest) {
    auto& [length, a] = found;
    if (a.part == Part::vision && !builds.sequences().images.empty())
      a = attention_heads_of::of_tower(a, vlm, builds.sequences().images.front(), length);
    else
      a.most = vlm.positions.value_or(0);
    r.push_back(a);
  }
  return r;
}

}  // namespace vlmest::diagnose
