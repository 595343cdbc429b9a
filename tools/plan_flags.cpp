// SPDX-License-Identifier: Apache-2.0
#include "plan_flags.hpp"

#include <array>
#include <cctype>
#include <string_view>

namespace vlmest::tool {
namespace {

/// A choice of the plan, or of the layout over GPUs, as the library calls it, and as users type it.
struct PlanFlag {
  std::string_view choice, flag;
};
constexpr auto plan_flags = std::to_array<PlanFlag>({{"plan.batch", "--batch"},
                                                     {"plan.video", "--frames"},
                                                     {"plan.video.frames", "--frames"},
                                                     {"plan.video.fps", "--fps"},
                                                     {"plan.video.seconds", "--video-seconds"},
                                                     {"plan.video.recorded", "--recorded-fps"},
                                                     {"plan.video.size", "--video-size"},
                                                     {"plan.audio", "--audio-seconds"},
                                                     {"plan.audio.seconds", "--audio-seconds"},
                                                     {"plan.audio.clips", "--audio-clips"},
                                                     {"plan.images", "--images"},
                                                     {"plan.more_sizes", "--image-size"},
                                                     {"plan.vision_chunk", "--vision-chunk"},
                                                     {"plan.seq", "--seq"},
                                                     {"plan.text", "--text"},
                                                     {"plan.new_tokens", "--new-tokens"},
                                                     {"plan.denoising_steps", "--denoising-steps"},
                                                     {"plan.target", "--target"},
                                                     {"plan.instruction", "--instruction"},
                                                     {"plan.dtype", "--dtype"},
                                                     {"plan.weights", "--weights"},
                                                     {"plan.kv", "--kv"},
                                                     {"plan.attention", "--attention"},
                                                     {"plan.runtime", "--profile"},
                                                     {"plan.packages", "--packages"},
                                                     {"plan.logits", "--logits"},
                                                     {"plan.checkpointing", "--checkpointing"},
                                                     {"plan.checkpointed.language=false", "--checkpointing vision"},
                                                     {"plan.lora.rank", "--lora"},
                                                     {"plan.lora.targets", "--lora-targets"},
                                                     {"plan.loss", "--loss"},
                                                     {"plan.trainable.language=false", "--freeze language"},
                                                     {"plan.input_gradients", "--input-gradients"},
                                                     {"plan.gradient_accumulation", "--gradient-accumulation"},
                                                     {"plan.amp", "--amp"},
                                                     {"search.goal", "--goal"},
                                                     {"strategy.gpus", "--gpus"},
                                                     {"layout.mesh", "--parallel"},
                                                     {"layout.shard", "--shard"},
                                                     {"layout.param_dtype", "--param-dtype"},
                                                     {"layout.sequence_parallel", "--sequence-parallel"},
                                                     {"layout.schedule", "--schedule"},
                                                     {"layout.micro_batches", "--micro-batches"},
                                                     {"layout.stages", "--stages"},
                                                     {"layout.network", "--network"},
                                                     {"Phases::train", "--phase train"}});

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether `choice` stands at `at` as a word of its own, and not inside the name of a file.
bool stands_at(const std::string& text, std::size_t at, std::string_view choice) {
  if (text.compare(at, choice.size(), choice) != 0) return false;
  const std::size_t end = at + choice.size();
  const auto inside = [&](std::size_t i) { return i < text.size() && is_of_word(text[i]); };
  if (at > 0 && (is_of_word(text[at - 1]) || text[at - 1] == '/' || text[at - 1] == '.')) return false;
  return !inside(end) && !(end < text.size() && text[end] == '.' && inside(end + 1));
}

}  // namespace

std::string in_flags(const std::string& text) {
  std::string r;
  for (std::size_t at = 0; at < text.size();) {
    const PlanFlag* known = nullptr;
    for (const PlanFlag& f : plan_flags)
      if (stands_at(text, at, f.choice)) known = &f;
    if (known == nullptr) {
      r += text[at++];
      continue;
    }
    r += known->flag;
    at += known->choice.size();
    if (at < text.size() && text[at] == '=') {
      r += ' ';
      ++at;
    }
  }
  return r;
}

Error in_flags(const Error& e) { return {in_flags(e.where), in_flags(e.what_happened), in_flags(e.hint)}; }

}  // namespace vlmest::tool
