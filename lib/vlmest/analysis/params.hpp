// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// Parameters by component; a tied weight counts once, the output head belongs to the language model. What belongs to
/// the model as a whole (LLaVA's image_newline) counts with the projector.
struct Parameters {
  Elements vision{}, projector{}, language{};
  Elements idle{};  ///< of the experts that a token is not sent to
  Elements total() const { return vision + projector + language; }
  /// Parameters that a token goes through: top_k of each layer's routed experts, and everything else.
  Elements active() const { return total() - idle; }
};

inline Parameters parameters(const Graph& g) {
  Parameters p;
  for (const auto& t : g.loaded()) {
    if (t.role != Role::weight) continue;
    switch (g.scopes[static_cast<std::size_t>(t.scope)].part) {
      case Part::vision: p.vision += parameter_count(t); break;
      case Part::language: p.language += parameter_count(t); break;
      default: p.projector += parameter_count(t); break;
    }
  }
  for (const RoutedWeight& r : g.routed) {
    const Elements all = parameter_count(g.tensor(r.weight));
    p.idle += Elements(all.value() / r.experts * (r.experts - r.top_k));
  }
  return p;
}

}  // namespace vlmest
