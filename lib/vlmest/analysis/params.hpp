// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// GPUs among which a weight is divided.
inline int ranks_of(const Graph& g, TensorId weight) {
  for (const ShardedWeight& w : g.sharded)
    if (w.weight == weight) return w.ranks;
  return 1;
}

/// Of the whole model, also where this GPU holds a part of it. Parameters by component; a tied weight counts once, the
/// output head belongs to the language model. What belongs to the model as a whole (LLaVA's image_newline) counts with
/// the projector.
struct Parameters {
  Elements vision{}, audio{}, projector{}, language{};
  Elements idle{};  ///< of the experts that a token is not sent to
  Elements total() const { return vision + audio + projector + language; }
  /// Parameters that a token goes through: top_k of each layer's routed experts, and everything else.
  Elements active() const { return total() - idle; }
};

inline Parameters parameters(const Graph& g) {
  Parameters p;
  for (const auto& t : g.loaded()) {
    if (t.role != Role::weight) continue;
    switch (g.scopes[static_cast<std::size_t>(t.scope)].part) {
      case Part::vision: p.vision += parameter_count(t); break;
      case Part::audio: p.audio += parameter_count(t); break;
      case Part::language: p.language += parameter_count(t); break;
      default: p.projector += parameter_count(t); break;
    }
  }
  for (const ShardedWeight& w : g.sharded) {  // the other ranks' parts
    const Tensor& t = g.tensor(w.weight);
    const Elements others = parameter_count(t) * (w.ranks - 1);
    (g.scopes[static_cast<std::size_t>(t.scope)].part == Part::vision ? p.vision : p.language) += others;
  }
  for (const RoutedWeight& r : g.routed) {
    const Elements all = parameter_count(g.tensor(r.weight)) * ranks_of(g, r.weight);
    p.idle += Elements(all.value() / r.experts * (r.experts - r.top_k));
  }
  return p;
}

}  // namespace vlmest
