// SPDX-License-Identifier: Apache-2.0
#include "flag_rules.hpp"

#include <algorithm>
#include <iterator>

#include <vlmest/nn/stack/registry.hpp>

#include "options.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

const std::vector<std::string> inference_flags{"--new-tokens", "--denoising-steps", "--kv", "--logits"};
const std::vector<std::string> training_flags{
    "--target",       "--optimizer",   "--checkpointing", "--checkpoint-layers", "--freeze", "--lora",
    "--lora-targets", "--lora-vision", "--lora-dropout",  "--input-gradients",   "--loss",   "--gradient-accumulation"};
const std::vector<std::string> video_flags{"--fps", "--recorded-fps", "--video-size"};
const std::vector<std::string> run_flags{
    "--batch",        "--seq",           "--text",         "--images",     "--image-size",    "--frames",
    "--fps",          "--video-seconds", "--recorded-fps", "--video-size", "--audio-seconds", "--audio-clips",
    "--vision-chunk", "--instruction",   "--phase",        "--dtype",      "--amp",           "--weights",
    "--attention",    "--profile",       "--packages",     "--alloc-conf"};

}  // namespace

bool GivenFlags::has(const std::string& flag) const {
  const CLI::Option* o = app_->get_option_no_throw(flag);
  return o != nullptr && o->count() > 0;
}

void GivenFlags::no_effect(const std::vector<std::string>& flags, const std::string& when,
                           const std::string& hint) const {
  for (const auto& f : flags)
    if (has(f)) throw UsageError(f, "has no effect " + when, hint);
}

std::vector<std::string> GivenFlags::of_run() const {
  std::vector<std::string> r;
  const std::vector<std::string> where{"--config", "--device", "--gpus"};
  for (const auto* flags : {&where, &run_flags, &inference_flags, &training_flags})
    std::copy_if(flags->begin(), flags->end(), std::back_inserter(r), [this](const auto& f) { return has(f); });
  return r;
}

AskedPhases asked_phases(const std::string& phase) {
  if (phase == name(Phases::all)) return {};
  const bool training = phase == name(Phases::train);
  return {.inference = !training,
          .training = training,
          .words = "with --phase " + phase,
          .hint = "leave it out, or ask for another --phase"};
}

void check_run_flags(const GivenFlags& given, const EstimateArgs& args, const AskedPhases& phases) {
  if (!phases.training) given.no_effect(training_flags, phases.words, phases.hint);
  if (!phases.inference) given.no_effect(inference_flags, phases.words, phases.hint);
  const StackTraits& stack = traits_of(choice<Runtime>("--profile", args.profile));
  if (stack.attends_by_flash && given.has("--attention") && args.attention != name(AttentionKind::flash))
    throw UsageError(
        "--attention", args.attention + " is not what --profile " + args.profile + " runs: it has one fused kernel",
        "leave it out, or take --profile " + std::string(name(first_with(&StackTraits::attends_by_flash, false))));
  if (stack.fuses_loss && given.has("--loss") && args.loss == name(Loss::unfused))
    throw UsageError("--loss", "--profile " + args.profile + " computes it in one kernel",
                     "leave it out, or take --loss chunked");
  if (args.plan.amp && args.dtype == name(DType::fp16))
    throw UsageError("--amp", "autocast is modelled in bf16 alone, not with --dtype fp16",
                     "leave --dtype out for bf16 autocast, or --amp out for weights in fp16");
  const bool video = args.frames || args.video_seconds;
  if (!video) given.no_effect(video_flags, "without a video", "leave it out, or give --frames N or --video-seconds S");
  if (!args.audio_seconds)
    given.no_effect({"--audio-clips"}, "without a length of the clips", "leave it out, or give --audio-seconds S");
  if (args.images == 0) given.no_effect({"--image-size"}, "with --images 0", "leave it out, or give images");
  if (args.images == 0 && !video)
    given.no_effect({"--vision-chunk"}, "with --images 0", "leave it out, or give images");
  if (video && !args.images)
    given.no_effect({"--image-size"}, "on a video, which comes without images", "give --images N, or --video-size");
  if (args.audio_seconds && !video && !args.images)
    given.no_effect({"--image-size", "--vision-chunk"}, "on sound, which comes without images", "give --images N");
  if (args.plan.lora.rank > 0 && args.plan.lora.vision)
    for (const auto& part : args.freeze)
      if (part == name(Part::vision))
        throw UsageError("--freeze", "vision contradicts --lora-vision, which trains adapters there",
                         "leave one of them out");
}

void check_run_is_named(const GivenFlags& given, const std::vector<std::string>& more) {
  if (given.has("--config")) return;
  for (const auto* flags : {&run_flags, &inference_flags, &training_flags, &more})
    given.no_effect(*flags, "without --config", "name the model that the run has: --config FILE");
}

}  // namespace vlmest::tool
