// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/diagnose/action/action_entry.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// The vision tower on a few images at a time: how many there are, and the line that wraps what a model of
/// transformers 5 calls, so that it runs over slices and gives back what its caller reads. nn/family/vision_chunks.hpp
/// estimates these lines.
namespace vlmest::diagnose {

/// What a plan's vision_chunk counts, in its whole batch: images, or tiles.
std::int64_t vision_rows(const Vlm& vlm, const Plan& plan);

/// Chunks of a half, a third, … down to a sixteenth of the rows, then by halves to one.
std::vector<Settings> vision_chunks(const Subject& s);

inline std::string vision_chunk_line(const Settings& s) {
  const FeatureCall call = s.vlm.family.traits().features;
  return call.line ? call.line(s.vlm.type, s.plan.vision_chunk) : std::string();
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/action/impl/vision_chunk_line.hpp>
#endif
