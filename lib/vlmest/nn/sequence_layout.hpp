// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// Sequences, and images of a whole batch, beyond which a plan is refused.
inline constexpr std::int64_t most_sequences = std::int64_t{1} << 18;

/// Throws Error for counts that no run has. Sizes of images are the token rule's to check.
inline void check_counts(const Plan& p) {
  const auto within = [](const char* flag, std::int64_t n, std::int64_t low, std::int64_t high) {
    if (n < low || n > high)
      throw Error(flag, std::to_string(n) + " is out of range",
                  "give " + std::to_string(low) + " to " + std::to_string(high));
  };
  constexpr std::int64_t most_tokens = std::int64_t{1} << 31;
  within("--batch", p.batch, 1, most_sequences);
  within("--images", p.images, 0, most_sequences / p.batch);
  within("--vision-chunk", p.vision_chunk, 0, most_tokens);
  within("--seq", p.seq.value_or(1), 1, most_tokens);
  within("--text", p.text, 0, most_tokens);
  within("--new-tokens", p.new_tokens, 0, most_tokens);
}

/// The tokens of a plan's batch: `seq` counts everything, `text` what is not an image feature. Throws Error where the
/// images alone need more than `seq`.
inline Sequences make_sequences(const Vlm& vlm, const Plan& plan) {
  check_counts(plan);
  Sequences s;
  s.batch = plan.batch;
  s.image =
      plan.image_height != 0 || plan.image_width != 0 ? ImageSize{plan.image_height, plan.image_width} : vlm.native;
  const std::vector<ImageSize> sizes(static_cast<std::size_t>(plan.images), s.image);
  std::vector<ImageLayout> one = layouts(vlm.tokens, sizes);
  std::int64_t overhead = 0;
  for (const auto& i : one) {
    s.image_tokens = checked_add(s.image_tokens, i.llm_tokens);
    overhead = checked_add(overhead, i.text_overhead);
  }
  if (plan.seq) {
    if (*plan.seq < s.image_tokens)
      throw Error("--seq",
                  std::to_string(*plan.seq) + " tokens, but the images alone need " + std::to_string(s.image_tokens),
                  "raise --seq, or give fewer or smaller images");
    s.seq = *plan.seq;
    s.text = s.seq - s.image_tokens;
  } else {
    s.text = plan.text;
    s.seq = checked_add(s.text, s.image_tokens);
  }
  if (s.seq < 1) throw Error("--seq", "the sequence is empty", "give at least one text token or image");
  s.images.reserve(one.size() * static_cast<std::size_t>(plan.batch));
  for (std::int64_t b = 0; b < plan.batch; ++b) s.images.insert(s.images.end(), one.begin(), one.end());
  return s;
}

}  // namespace vlmest
