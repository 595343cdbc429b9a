// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace site_match {

VLMEST_INLINE bool inside(const Graph& g, const PlannedAllocation& a, std::span<const std::string_view> words) {
  for (ScopeId s = a.node == none ? scope_of(g, a.tensor) : g.node(a.node).scope; s > 0;
       s = g.scopes[static_cast<std::size_t>(s)].parent) {
    const Scope& x = g.scopes[static_cast<std::size_t>(s)];
    if (has_any(x.name, words)) return true;
    if (x.index != none) break;  // the layer
  }
  return false;
}

}  // namespace site_match

VLMEST_INLINE double agrees(RunPhase phase, const Graph& g, const PlannedAllocation& a) {
  using namespace site_match;
  const std::string_view p = a.phase;
  const bool forward = p == "forward" || p == "prefill" || p == "decode";
  switch (phase) {
    case RunPhase::unknown:
    case RunPhase::module_gather: return open;
    case RunPhase::load_weights: return p == "load" ? yes : no;
    // Checkpointed layers run forward inside the backward, where the stack has both.
    case RunPhase::forward: return forward ? yes : p == "backward" ? open : no;
    case RunPhase::vision_forward: return forward && in_vision(g, a) ? yes : no;
    case RunPhase::loss: return p == "forward" ? yes : no;
    case RunPhase::backward: return p == "backward" ? yes : no;
    case RunPhase::optimizer_step: return p == "step" ? yes : no;
    case RunPhase::decode:
    case RunPhase::server_profile: return p == "prefill" || p == "decode" ? yes : no;
  }
  return open;
}

VLMEST_INLINE double agrees(AllocationSite site, const Graph& g, const TensorKinds& kinds, const PlannedAllocation& a) {
  using namespace site_match;
  const Cause kind = kinds.of(a.tensor);
  const auto is = [](bool b) { return b ? yes : no; };
  switch (site) {
    case AllocationSite::unknown: return open;
    case AllocationSite::score_matrix: return is(kind == Cause::attention_scores);
    case AllocationSite::sdpa: return is(inside(g, a, attention_names));
    case AllocationSite::attention_mask: return is(!inside(g, a, attention_names) && !is_product(g, a));
    case AllocationSite::logits: return is(kind == Cause::logits && is_product(g, a));
    case AllocationSite::logits_upcast:
      return is(kind == Cause::logits && op_of(g, a).find("copy") != std::string_view::npos);
    case AllocationSite::cross_entropy: return is(kind == Cause::logits && !is_product(g, a));
    case AllocationSite::optimizer_state: return is(kind == Cause::optimizer_state);
    case AllocationSite::optimizer_temporary: return is(std::string_view(a.phase) == "step");
    case AllocationSite::gradient:
      return kind == Cause::gradients ? yes : std::string_view(a.phase) == "backward" ? open : no;
    case AllocationSite::weights: return is(kind == Cause::weights);
    case AllocationSite::module_gather: return open;
    case AllocationSite::kv_cache: return is(kind == Cause::kv_cache);
    case AllocationSite::patch_embedding:
    case AllocationSite::image_features:
    case AllocationSite::pixel_values: return is(in_vision(g, a) || kind == Cause::vision_tiles);
    case AllocationSite::mlp: return is(inside(g, a, mlp_names));
    case AllocationSite::projection: return is(is_product(g, a));
    case AllocationSite::norm: return is(inside(g, a, norm_names));
    case AllocationSite::rotary: return is(inside(g, a, attention_names) && !is_product(g, a));
    case AllocationSite::decoded_media: return no;
    case AllocationSite::fft: return is(kind == Cause::fft_buffers);
    case AllocationSite::convolution:
      return is(a.node != none && std::holds_alternative<Convolution>(g.op(g.node(a.node))));
  }
  return open;
}

}  // namespace vlmest::diagnose
