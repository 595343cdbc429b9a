// SPDX-License-Identifier: Apache-2.0
#include "estimate_flags.hpp"

#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "numbers.hpp"

namespace vlmest::tool {
namespace {

std::string flags_of_training(const Plan& p) {
  std::string f;
  if (p.optimizer != Optimizer::adamw) f += fmt::format(" --optimizer {}", name(p.optimizer));
  if (p.checkpointing != Checkpointing::off)
    f += fmt::format(" --checkpointing {}", p.checkpointed.language ? name(p.checkpointing) : name(Part::vision));
  if (p.checkpointing != Checkpointing::off && p.checkpointed.language && p.checkpointed.layers)
    f += fmt::format(" --checkpoint-layers {}", *p.checkpointed.layers);
  if (p.loss != Loss::unfused) f += fmt::format(" --loss {}", name(p.loss));
  std::vector<std::string_view> frozen;
  if (!p.trainable.vision) frozen.emplace_back(name(Part::vision));
  if (!p.trainable.audio) frozen.emplace_back(name(Part::audio));
  if (!p.trainable.projector) frozen.emplace_back(name(Part::projector));
  if (!p.trainable.language) frozen.emplace_back(name(Part::language));
  if (!frozen.empty()) f += fmt::format(" --freeze {}", fmt::join(frozen, ","));
  if (p.lora.rank > 0) {
    f += fmt::format(" --lora {}", p.lora.rank);
    if (p.lora.targets != Lora{}.targets) f += fmt::format(" --lora-targets {}", fmt::join(p.lora.targets, ","));
    if (p.lora.vision) f += " --lora-vision";
    if (p.lora.dropout) f += " --lora-dropout 0.1";
  }
  if (p.input_gradients) f += fmt::format(" --input-gradients {}", *p.input_gradients ? "on" : "off");
  if (p.gradient_accumulation != 1) f += fmt::format(" --gradient-accumulation {}", p.gradient_accumulation);
  return f;
}

std::string video_words(const VideoPlan& v) {
  std::string f;
  if (v.frames) f += fmt::format(" --frames {}", *v.frames);
  if (v.fps) f += fmt::format(" --fps {}", plain(*v.fps));
  if (v.seconds) f += fmt::format(" --video-seconds {}", plain(*v.seconds));
  if (v.recorded) f += fmt::format(" --recorded-fps {}", plain(*v.recorded));
  if (v.height != 0) f += fmt::format(" --video-size {}x{}", v.height, v.width);
  return f;
}

std::string flags_of_inference(const Plan& p) {
  std::string f;
  if (p.new_tokens != Plan{}.new_tokens) f += fmt::format(" --new-tokens {}", p.new_tokens);
  if (p.denoising_steps) f += fmt::format(" --denoising-steps {}", *p.denoising_steps);
  if (p.kv.dtype) f += fmt::format(" --kv {}", name(*p.kv.dtype));
  if (p.logits == Logits::all) f += fmt::format(" --logits {}", name(p.logits));
  return f;
}

}  // namespace

std::optional<std::string> estimate_flags(const diagnose::Settings& s, diagnose::Mode mode) {
  const Plan& p = s.plan;
  const bool training = mode == diagnose::Mode::training;
  const parallel::Strategy& where = s.placement;
  if (p.kv.kind != KvLayout::Kind::dense || where.sharding != diagnose::Sharding::none ||
      where.offload != diagnose::Offload::none || s.grouped_by_size)
    return std::nullopt;
  std::string f = fmt::format("--phase {} --batch {}", name(training ? Phases::train : Phases::inference), p.batch);
  if (p.seq)
    f += fmt::format(" --seq {}", *p.seq);
  else if (p.text != Plan{}.text)
    f += fmt::format(" --text {}", p.text);
  if (p.images != (p.video || p.audio || !takes_images(s.vlm) ? 0 : 1)) f += fmt::format(" --images {}", p.images);
  if (p.image_height != 0) f += fmt::format(" --image-size {}x{}", p.image_height, p.image_width);
  for (const PixelSize& size : p.more_sizes) f += fmt::format(",{}x{}", size.height, size.width);
  if (p.video) f += video_words(*p.video);
  if (p.audio) f += fmt::format(" --audio-seconds {}", plain(p.audio->seconds));
  if (p.audio && p.audio->clips != 1) f += fmt::format(" --audio-clips {}", p.audio->clips);
  if (p.instruction) f += fmt::format(" --instruction {}", *p.instruction);
  if (p.vision_chunk != 0) f += fmt::format(" --vision-chunk {}", p.vision_chunk);
  if (p.amp)
    f += " --amp";
  else if (p.dtype != s.vlm.dtype.value_or(DType::bf16))
    f += fmt::format(" --dtype {}", name(p.dtype));
  if (p.weights) f += fmt::format(" --weights {}", name(*p.weights));
  if (p.attention != AttentionKind::sdpa) f += fmt::format(" --attention {}", name(p.attention));
  if (p.runtime != Plan{}.runtime) f += fmt::format(" --profile {}", name(p.runtime));
  if (p.packages != KernelPackages{}) f += fmt::format(" --packages {}", names_of(p.packages));
  if (training && s.vlm.family.traits().encoder_decoder)
    if (const std::int64_t target = p.target.value_or(p.new_tokens); target != Plan{}.new_tokens)
      f += fmt::format(" --target {}", target);
  f += training ? flags_of_training(p) : flags_of_inference(p);
  if (s.allocator.expandable_segments) f += " --alloc-conf expandable_segments:True";
  return f;
}

}  // namespace vlmest::tool
