// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/unit/words.hpp>

namespace vlmest {

/// The component of a VLM that a module belongs to. What joins them (scattering features into the sequence, masks) is
/// the model's own.
enum class Part : std::uint8_t { model, vision, projector, language, audio };
template <>
inline constexpr std::array<std::string_view, 5> words_of<Part>{"model", "vision", "projector", "language", "audio"};

}  // namespace vlmest
