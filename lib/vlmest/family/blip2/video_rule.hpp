// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/family/blip2/rule.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// InstructBLIP-Video: every frame is one square, read by the Q-Former into a fixed count of query tokens.
struct InstructBlipVideo {
  Blip2 frame;
};

/// Placeholders are written for so many frames, however many there are (transformers 5.17
/// processing_instructblipvideo.py, InstructBlipVideoProcessor.__call__).
inline constexpr std::int64_t instruct_blip_frames = 4;

/// A picture is taken for a video of one frame (video_utils.py, make_batched_videos), whose features are fewer than the
/// placeholders.
[[noreturn]] inline ImageLayout layout(const InstructBlipVideo&, ImageSize) {
  throw Error("plan.images", "InstructBLIP-Video takes a video, of which a picture is too short",
              "give plan.images=0 and plan.video.frames=4");
}

/// processing_instructblipvideo.py and video_processing_instructblipvideo.py: all frames are taken, unless a call has
/// them sampled. Features of frames beyond the placeholders' are left over (masked_scatter); fewer are an error.
inline ImageLayout video_layout(const InstructBlipVideo& r, const VideoSource& v) {
  check(v);
  ImageLayout l = layout(r.frame, v.size);
  l.sampled = l.tiles = evenly_taken(v);
  if (l.tiles < instruct_blip_frames)
    throw Error("plan.video.frames",
                std::to_string(l.tiles) + " frames have fewer features than the processor writes placeholders, for " +
                    std::to_string(instruct_blip_frames),
                "give " + std::to_string(instruct_blip_frames));
  l.llm_tokens = checked_mul(l.llm_tokens, instruct_blip_frames);
  return l;
}
inline OwnSampling own_sampling(const InstructBlipVideo&) { return {std::nullopt, max_frames}; }

inline std::vector<InstructBlipVideo> lower(const InstructBlipVideo&, const ImageLayout&) { return {}; }
inline std::string limit_line(const InstructBlipVideo&) { return {}; }

}  // namespace vlmest::image_processor
