// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

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
  within("plan.batch", p.batch, 1, most_sequences);
  within("plan.images", p.images, 0, most_sequences / p.batch);
  within("plan.vision_chunk", p.vision_chunk, 0, most_tokens);
  within("plan.seq", p.seq.value_or(1), 1, most_tokens);
  within("plan.text", p.text, 0, most_tokens);
  within("plan.new_tokens", p.new_tokens, 0, most_tokens);
  within("plan.target", p.target.value_or(1), 1, most_tokens);
}

/// The sizes of a plan's images, of which the sequences take turns.
inline std::vector<ImageSize> image_sizes(const Vlm& vlm, const Plan& plan) {
  std::vector<ImageSize> r{
      plan.image_height != 0 || plan.image_width != 0 ? ImageSize{plan.image_height, plan.image_width} : vlm.native};
  for (const PixelSize& s : plan.more_sizes) r.push_back({s.height, s.width});
  return r;
}

/// The tokens of a plan's batch: `seq` counts everything, `text` what the images do not bring with them. Throws Error
/// where the images alone need more than `seq`, and where there are more sizes of images than sequences.
inline Sequences make_sequences(const Vlm& vlm, const Plan& plan) {
  check_counts(plan);
  const bool decodes_apart = vlm.family.traits().encoder_decoder;
  if (plan.target && !decodes_apart)
    throw Error("plan.target", "this model has no decoder beside the sequence",
                "leave it out: plan.text and plan.seq say all");
  const std::vector<ImageSize> sizes = image_sizes(vlm, plan);
  const auto turns = static_cast<std::int64_t>(sizes.size());
  if (turns > plan.batch)
    throw Error("plan.more_sizes", std::to_string(turns) + " sizes for a batch of " + std::to_string(plan.batch),
                "raise plan.batch, so that each has a sequence, or give fewer sizes");
  Sequences s;
  s.batch = plan.batch;
  if (decodes_apart) s.target = plan.target.value_or(std::max<std::int64_t>(plan.new_tokens, 1));
  s.image = sizes.front();
  std::vector<std::vector<ImageLayout>> each;  // the images of a sequence, by its turn
  std::vector<std::int64_t> tokens;            // of its images, markers included
  std::int64_t longest = -1;
  for (const ImageSize size : sizes) {
    each.push_back(layouts(vlm.tokens, std::vector<ImageSize>(static_cast<std::size_t>(plan.images), size)));
    const PromptTokens all = sum(each.back());
    const std::int64_t markers = plan.markers ? all.text_overhead : 0;
    tokens.push_back(checked_add(all.llm_tokens, markers));
    if (tokens.back() <= longest) continue;
    longest = tokens.back();
    s.image_tokens = all.llm_tokens;
    s.markers = markers;
  }
  if (plan.seq) {
    if (*plan.seq < longest)
      throw Error("plan.seq",
                  std::to_string(*plan.seq) + " tokens, but the images alone need " + std::to_string(longest),
                  "raise plan.seq, or give fewer or smaller images");
    s.seq = *plan.seq;
    s.text = s.seq - longest;
  } else {
    s.text = plan.text;
    s.seq = checked_add(s.text, longest);
  }
  if (s.seq < 1) throw Error("plan.seq", "the sequence is empty", "give at least one text token or image");
  s.images.reserve(each.front().size() * static_cast<std::size_t>(plan.batch));
  for (std::int64_t b = 0; b < plan.batch; ++b) {
    const auto& one = each[static_cast<std::size_t>(b % turns)];
    s.images.insert(s.images.end(), one.begin(), one.end());
  }
  // With a length given, text fills every sequence up to it.
  if (plan.seq || std::all_of(tokens.begin(), tokens.end(), [&](std::int64_t n) { return n == longest; })) return s;
  for (std::int64_t b = 0; b < plan.batch; ++b)
    s.padding.push_back(longest - tokens[static_cast<std::size_t>(b % turns)]);
  return s;
}

}  // namespace vlmest
