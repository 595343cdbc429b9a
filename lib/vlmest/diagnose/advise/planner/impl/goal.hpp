// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/diagnose/advise/action/image_lever.hpp>
#include <vlmest/diagnose/advise/planner/goal.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE void turn(Settings& s, Goal goal, std::int64_t n) {
  switch (goal) {
    case Goal::max_batch: s.plan.batch = n; break;
    case Goal::max_seq: s.plan.seq = n; break;
    case Goal::max_pixels: {
      const ImageSize asked = image_size(s.vlm, s.plan);
      s.plan.image_width = columns(asked, n);
      s.plan.image_height = n;
      break;
    }
    case Goal::max_frames: s.plan.video->frames = n; break;
    case Goal::fastest: break;
  }
}

/// Of as few frames as the processor takes, to as many as it ever samples. Of those that fill one temporal patch each
/// number makes the same.
VLMEST_INLINE SearchVariable frames_variable(const Settings& s) {
  if (!s.plan.video || !s.plan.video->frames)
    throw Error("search.goal", "max-frames of a run without frames that are handed over", "give plan.video.frames");
  const auto takes = [&](std::int64_t n) {
    Settings with = s;
    with.plan.video->frames = n;
    try {
      make_sequences(with.vlm, with.plan);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const std::int64_t most = std::max(own_sampling(s.vlm.image_processor).most_frames, *s.plan.video->frames);
  std::int64_t least = 1;
  while (least < *s.plan.video->frames && !takes(least)) ++least;
  return {.least = least, .most = most, .asked = *s.plan.video->frames, .growth = 8};
}

VLMEST_INLINE SearchVariable search_variable(const Settings& s, Goal goal) {
  const Sequences now = make_sequences(s.vlm, s.plan);
  switch (goal) {
    case Goal::max_batch:
      return {.least = static_cast<std::int64_t>(s.plan.more_sizes.size()) + 1,
              .most = most_sequences / std::max<std::int64_t>(1, s.plan.images),
              .asked = s.plan.batch,
              .growth = 8};
    case Goal::max_seq:
      // Kernels work on whole groups of 8 rows: the values up to the next of them are tried.
      return {.least = now.visual_tokens() + 1,
              .most = std::max(now.visual_tokens() + 1, std::int64_t{1} << 24),
              .asked = now.seq,
              .window = 8};
    case Goal::max_pixels: {
      if (!s.plan.more_sizes.empty())
        throw Error("search.goal", "max-pixels of images of several sizes", "give one size of images");
      if (!takes_images(s.vlm))
        throw Error("search.goal", "max-pixels of a plain language model",
                    "give another goal: max-batch, max-seq or fastest");
      if (s.plan.images < 1)
        throw Error("search.goal", "max-pixels of a run without images", "give plan.images of 1 or more");
      const ImageSize asked = image_size(s.vlm, s.plan);
      const std::int64_t most = std::min(most_rows, most_rows * asked.height / asked.width);
      const auto at = [&](std::int64_t rows) { return layout(s.vlm.image_processor, {rows, columns(asked, rows)}); };
      const ImageLayout large = at(most);
      std::int64_t least = 1;
      while (least < asked.height) try {
          if (at(least).llm_tokens > 0) break;
        } catch (const Error&) {
          ++least;
        }
      if (at(least) == large)
        throw Error("search.goal",
                    "max-pixels: the image processor makes " + std::to_string(large.resized.height) + "x" +
                        std::to_string(large.resized.width) + " of every image",
                    "give another goal: max-batch, max-seq or fastest");
      // Above this size the processor's own limit gives the same again.
      std::int64_t low = least, high = most;
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (at(middle) == large)
          high = middle;
        else
          low = middle + 1;
      }
      return {.least = least, .most = high, .asked = std::clamp(asked.height, least, high), .window = 3};
    }
    case Goal::max_frames: return frames_variable(s);
    case Goal::fastest: break;
  }
  return {};
}

}  // namespace vlmest::diagnose
