// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/action/action.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// What an image processor lets one lower: its name differs from family to family.
namespace vlmest::diagnose {

/// The size of a run's pictures, before the processor; of several the first.
inline ImageSize image_size(const Vlm& vlm, const Plan& p) { return image_sizes(vlm, p).front(); }

/// The settings with another rule or other images, and the same text: where the plan gives the whole length of a
/// sequence, that changes by as many tokens as the images do. Throws Error as make_sequences().
inline void keep_text(const Settings& before, Settings& after) {
  if (!after.plan.seq) return;
  Plan loose = after.plan;
  loose.seq.reset();
  loose.text = make_sequences(before.vlm, before.plan).text;
  after.plan.seq = make_sequences(after.vlm, loose).seq;
}

/// The settings with lower limits on the pictures, each with fewer tokens in the tower or the language model than the
/// one before. Empty where there are no pictures, and for towers of one fixed size.
std::vector<Settings> lower_images(const Settings& now);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/action/impl/image_lever.hpp>
#endif
