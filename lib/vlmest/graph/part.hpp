// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vlmest {

/// The component of a VLM that a module belongs to. What joins them (scattering features into the sequence, masks) is
/// the model's own.
enum class Part : std::uint8_t { model, vision, projector, language };

constexpr std::string_view name(Part p) {
  switch (p) {
    case Part::model: return "model";
    case Part::vision: return "vision";
    case Part::projector: return "projector";
    case Part::language: return "language";
  }
  return "";
}

}  // namespace vlmest
