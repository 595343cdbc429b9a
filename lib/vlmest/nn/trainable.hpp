// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/graph.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// Whether a component is trained; what belongs to the model as a whole goes with the projector.
constexpr bool trains(const Trainable& t, Part p) {
  return p == Part::vision ? t.vision : p == Part::language ? t.language : t.projector;
}

}  // namespace vlmest
