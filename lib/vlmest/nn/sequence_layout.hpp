// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// Sequences, and images of a whole batch, beyond which a plan is refused.
inline constexpr std::int64_t most_sequences = std::int64_t{1} << 18;

/// Throws Error for counts that no run has. Sizes of images are the token rule's to check.
void check_counts(const Plan& p);

/// The sizes of a plan's images, of which the sequences take turns.
inline std::vector<ImageSize> image_sizes(const Vlm& vlm, const Plan& plan) {
  std::vector<ImageSize> r{
      plan.image_height != 0 || plan.image_width != 0 ? ImageSize{plan.image_height, plan.image_width} : vlm.native};
  for (const PixelSize& s : plan.more_sizes) r.push_back({s.height, s.width});
  return r;
}

/// Frames a second of a video that is sampled, where nobody says it.
inline constexpr double usual_fps = 30;
/// What processors take frames for that come without a rate (processing_qwen3_vl.py, replace_video_token).
inline constexpr double assumed_fps = 24;

/// A plan's video as it reaches the processor. Throws Error where frames, rate and length contradict each other or say
/// too little.
VideoSource video_source(const Vlm& vlm, const VideoPlan& v);

/// Throws Error where the model takes no videos, or none beside pictures, and where a description adds blocks, which
/// are defined on pictures.
void check_takes_videos(const Vlm& vlm, const Plan& plan);

/// Throws Error where the model takes no audio, and where a description adds blocks, which are defined on pictures.
void check_takes_audio(const Vlm& vlm);

/// Tokens of the text as what makes image features reads it, of a sequence with so many tokens of text; 0 where nothing
/// does. Throws Error where the plan says how many and the model reads none, or less.
std::int64_t instruction_tokens(const Vlm& vlm, const Plan& plan, std::int64_t text);

/// The tokens of a plan's batch: `seq` counts everything, `text` what the images do not bring with them. Throws Error
/// where the images alone need more than `seq`, and where there are more sizes of images than sequences.
Sequences make_sequences(const Vlm& vlm, const Plan& plan);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/nn/impl/sequence_layout.hpp>
#endif
