// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE void check_counts(const Plan& p) {
  const auto within = [](const char* flag, std::int64_t n, std::int64_t low, std::int64_t high) {
    if (n < low || n > high)
      throw Error(flag, std::to_string(n) + " is out of range",
                  "give " + std::to_string(low) + " to " + std::to_string(high));
  };
  constexpr std::int64_t most_tokens = std::int64_t{1} << 31;
  within("plan.batch", p.batch, 1, most_sequences);
  within("plan.images", p.images, 0, most_sequences / p.batch);
  if (p.video && p.video->frames) within("plan.video.frames", *p.video->frames, 1, image_processor::max_frames);
  if (p.audio) within("plan.audio.clips", p.audio->clips, 1, most_sequences / p.batch);
  within("plan.vision_chunk", p.vision_chunk, 0, most_tokens);
  within("plan.seq", p.seq.value_or(1), 1, most_tokens);
  within("plan.text", p.text, 0, most_tokens);
  within("plan.new_tokens", p.new_tokens, 0, most_tokens);
  within("plan.target", p.target.value_or(1), 1, most_tokens);
  within("plan.denoising_steps", p.denoising_steps.value_or(1), 1, most_tokens);
}

VLMEST_INLINE VideoSource video_source(const Vlm& vlm, const VideoPlan& v) {
  VideoSource r{.size = v.height != 0 || v.width != 0 ? ImageSize{v.height, v.width} : vlm.native};
  if (v.seconds && !(*v.seconds > 0 && *v.seconds <= 1e5))
    throw Error("plan.video.seconds", "the length of a video is out of range", "give up to 100000 seconds");
  const OwnSampling sampling = own_sampling(vlm.image_processor);
  const std::optional<double> own = sampling.fps;
  if (v.frames) {
    if (v.fps && v.seconds)
      throw Error("plan.video.seconds", "frames and their rate say the length already",
                  "leave one of plan.video.frames, plan.video.fps and plan.video.seconds out");
    if (v.recorded)
      throw Error("plan.video.recorded", "frames that are handed over are not sampled",
                  "leave it out, or leave plan.video.frames out");
    r.frames = *v.frames;
    r.fps = v.fps ? *v.fps : v.seconds ? static_cast<double>(r.frames) / *v.seconds : own.value_or(assumed_fps);
    return r;
  }
  if (!v.seconds)
    throw Error("plan.video.seconds", "is needed to sample a video",
                "give plan.video.seconds, or the frames themselves: plan.video.frames");
  if (!v.fps && !own && !sampling.every_frame)
    throw Error("plan.video.fps", "is needed: this processor has no rate of its own", "give 2, say");
  r.fps = v.recorded.value_or(usual_fps);
  r.frames = std::llround(*v.seconds * r.fps);
  r.take = v.fps ? v.fps : own ? own : r.fps;
  return r;
}

VLMEST_INLINE void check_takes_videos(const Vlm& vlm, const Plan& plan) {
  const FamilyTraits traits = vlm.family.traits();
  if (traits.videos == VideoPixels::refused || !takes_videos(vlm.image_processor))
    throw Error("plan.video", traits.no_videos.empty() ? vlm.type + " takes no videos" : std::string(traits.no_videos),
                "leave it out, or name a model that does: Qwen-VL, GLM-4V, InternVL, SmolVLM2, LLaVA-OneVision, "
                "LLaVA-NeXT-Video, Video-LLaVA, InstructBLIP-Video, VideoLLaMA 3, MiniCPM-V 4.6, EXAONE 4.5, Cosmos 3, "
                "Cohere Compass, Muse Glimmer, ERNIE 4.5 VL, MiniMax-M3 or PerceptionLM");
  if (plan.images > 0 && !traits.videos_alone.empty())
    throw Error("plan.video", "pictures beside a video: " + std::string(traits.videos_alone), "give plan.images=0");
  if (!vlm.blocks.empty())
    throw Error("plan.video", "blocks that a description adds are defined on pictures", "leave one of them out");
}

VLMEST_INLINE void check_takes_audio(const Vlm& vlm) {
  if (!takes_audio(vlm))
    throw Error(
        "plan.audio",
        vlm.family.traits().no_audio.empty() ? vlm.type + " takes no audio" : std::string(vlm.family.traits().no_audio),
        "leave it out, or name a model that does: Qwen2-Audio, Qwen2.5-Omni, Qwen3-Omni, Qwen3-ASR, Voxtral, GLM-ASR, "
        "Gemma 3n, Gemma 4 E2B or E4B, Phi-4-multimodal");
  if (!vlm.blocks.empty())
    throw Error("plan.audio", "blocks that a description adds are defined on pictures", "leave one of them out");
}

/// Tokens of the text as what makes image features reads it: what the plan says, or all, which a tokenizer like BERT's
/// sets between two tokens of its own.
VLMEST_INLINE std::int64_t instruction_tokens(const Vlm& vlm, const Plan& plan, std::int64_t text) {
  const std::int64_t most = vlm.family.traits().instruction;
  if (!plan.instruction) return std::min(std::max<std::int64_t>(text, 2), most);
  if (most == 0)
    throw Error("plan.instruction", vlm.type + " makes its image features without the text",
                "leave it out, or name a model whose Q-Former reads it: InstructBLIP");
  if (*plan.instruction < 1 || *plan.instruction > most)
    throw Error(
        "plan.instruction",
        std::to_string(*plan.instruction) + " is out of range: the Q-Former has " + std::to_string(most) + " positions",
        "give 1 to " + std::to_string(most));
  return *plan.instruction;
}

VLMEST_INLINE Sequences make_sequences(const Vlm& vlm, const Plan& plan) {
  check_counts(plan);
  const bool decodes_apart = vlm.family.traits().encoder_decoder;
  if (plan.target && !decodes_apart)
    throw Error("plan.target", "this model has no decoder beside the sequence",
                "leave it out: plan.text and plan.seq say all");
  check_packages(vlm.family.traits().packages, plan.packages, vlm.type);
  if (plan.denoising_steps && vlm.family.traits().canvas == 0)
    throw Error("plan.denoising_steps", "this model writes a token at a time, without steps",
                "leave it out, or name a model that denoises canvases: DiffusionGemma");
  const std::vector<ImageSize> sizes = image_sizes(vlm, plan);
  const auto turns = static_cast<std::int64_t>(sizes.size());
  if (turns > plan.batch)
    throw Error("plan.more_sizes", std::to_string(turns) + " sizes for a batch of " + std::to_string(plan.batch),
                "raise plan.batch, so that each has a sequence, or give fewer sizes");
  Sequences s;
  s.batch = plan.batch;
  if (decodes_apart) s.target = plan.target.value_or(std::max<std::int64_t>(plan.new_tokens, 1));
  s.image = sizes.front();
  if (plan.video) {
    check_takes_videos(vlm, plan);
    s.video = video_layout(vlm.image_processor, video_source(vlm, *plan.video));
    s.video_tokens = s.video->llm_tokens;
  }
  std::int64_t audio_text = 0;
  if (plan.audio) {
    check_takes_audio(vlm);
    const AudioLayout clip = audio_layout(vlm.audio, {plan.audio->seconds});
    s.audios.assign(static_cast<std::size_t>(checked_mul(plan.batch, plan.audio->clips)), clip);
    s.audio_tokens = checked_mul(clip.llm_tokens, plan.audio->clips);
    audio_text = checked_mul(clip.text_overhead, plan.audio->clips);
  }
  const bool as_tiles = s.video && vlm.family.traits().videos == VideoPixels::tiles;
  std::vector<std::vector<ImageLayout>> each;  // the images of a sequence, by its turn
  std::vector<std::int64_t> tokens;            // of its images, markers included
  std::int64_t longest = -1;
  for (const ImageSize size : sizes) {
    each.push_back(layouts(vlm.image_processor, std::vector<ImageSize>(static_cast<std::size_t>(plan.images), size)));
    const PromptTokens all = sum(each.back());
    const std::int64_t written =
        checked_add(checked_add(all.text_overhead, s.video ? s.video->text_overhead : 0), audio_text);
    const std::int64_t markers = plan.markers ? written : 0;
    const std::int64_t heard = checked_add(s.video_tokens, s.audio_tokens);
    tokens.push_back(checked_add(checked_add(all.llm_tokens, heard), markers));
    if (as_tiles) each.back().push_back(*s.video);
    if (tokens.back() <= longest) continue;
    longest = tokens.back();
    s.image_tokens = all.llm_tokens;
    s.markers = markers;
  }
  std::string visual = s.video ? plan.images == 0 ? "frames" : "images and frames" : "images";
  if (plan.audio) visual = plan.images == 0 && !s.video ? "clips" : visual + " and clips";
  if (plan.seq) {
    if (*plan.seq < longest)
      throw Error("plan.seq",
                  std::to_string(*plan.seq) + " tokens, but the " + visual + " alone need " + std::to_string(longest),
                  "raise plan.seq, or give fewer or smaller " + visual);
    s.seq = *plan.seq;
    s.text = s.seq - longest;
  } else {
    s.text = plan.text;
    s.seq = checked_add(s.text, longest);
  }
  s.instruction = instruction_tokens(vlm, plan, s.text);
  if (s.seq < 1) throw Error("plan.seq", "the sequence is empty", "give at least one text token or image");
  s.images.reserve(each.front().size() * static_cast<std::size_t>(plan.batch));
  for (std::int64_t b = 0; b < plan.batch; ++b) {
    const auto& one = each[static_cast<std::size_t>(b % turns)];
    s.images.insert(s.images.end(), one.begin(), one.end());
  }
  if (s.video && !as_tiles) s.videos.assign(static_cast<std::size_t>(plan.batch), *s.video);
  // With a length given, text fills every sequence up to it.
  if (plan.seq || std::all_of(tokens.begin(), tokens.end(), [&](std::int64_t n) { return n == longest; })) return s;
  for (std::int64_t b = 0; b < plan.batch; ++b)
    s.padding.push_back(longest - tokens[static_cast<std::size_t>(b % turns)]);
  return s;
}

}  // namespace vlmest
