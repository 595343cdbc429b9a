// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest::diagnose {

/// The attentions of a model, those of its tower first: read off its graph with scores written out.
std::vector<AttentionHeads> attention_heads(const Vlm& vlm, const Plan& plan, const Device& device);

/// The layout of the largest picture that the processor hands to the tower.
std::optional<ImageLayout> largest_picture(const ImageProcessor& rule);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/attention_heads.hpp>
#endif
