// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vlmest::diagnose {

/// What is estimated of a run: a training step, or a prefill with its decode steps.
enum class Mode : std::uint8_t { inference, training };

constexpr std::string_view name(Mode m) { return m == Mode::training ? "training" : "inference"; }

}  // namespace vlmest::diagnose
