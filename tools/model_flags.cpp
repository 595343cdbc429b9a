// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vlmest/nn/quantization/unused_rules.hpp>
#include <vlmest/nn/sequence_layout.hpp>

#include "args.hpp"
#include "plan_flags.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

[[noreturn]] void refuse(const char* flag, const std::string& what, const Vlm& vlm) {
  throw Error(flag,
              vlm.type + (takes_audio(vlm) ? " is a model of sound and text: " : " is a plain language model: ") + what,
              std::string("leave ") + flag + " out");
}

/// A plain language model takes no images, nor does a model of sound and text.
void for_language_model(const EstimateArgs& a, const Vlm& vlm, Plan& p) {
  if (a.images && *a.images > 0) refuse("--images", "it takes no images", vlm);
  if (!a.image_size.empty()) refuse("--image-size", "it takes no images", vlm);
  if (p.video) refuse(a.frames ? "--frames" : "--video-seconds", "it takes no videos", vlm);
  if (p.vision_chunk > 0) refuse("--vision-chunk", "it has no vision tower", vlm);
  for (const auto& part : a.freeze)
    if (part != "language" && !(takes_audio(vlm) && part != "vision")) refuse("--freeze", "it has no " + part, vlm);
  if (p.lora.vision) refuse("--lora-vision", "it has no vision tower", vlm);
  if (!p.checkpointed.language) refuse("--checkpointing", "it has no vision tower", vlm);
  p.images = 0;
}

}  // namespace

Plan EstimateArgs::make_plan(const Vlm& vlm) const {
  Plan p = make_plan();
  if (!takes_images(vlm)) for_language_model(*this, vlm, p);
  if (p.video) check_takes_videos(vlm, p);
  if (p.audio) check_takes_audio(vlm);
  if (p.logits == Logits::all && vlm.family.traits().canvas > 0)
    throw Error("--logits", vlm.type + " computes no logits of its prompt", "leave --logits out");
  if (vlm.family.traits().all_logits) p.logits = Logits::all;
  for (const auto& part : freeze)
    if (part == name(Part::audio) && !vlm.family.traits().audio_tower)
      throw Error("--freeze", vlm.type + " has no audio tower", "leave audio out");
  if (p.vision_chunk > 0 && p.images == 0 && vlm.family.traits().videos == VideoPixels::own)
    throw Error("--vision-chunk", "the frames of a video are one call of this model's tower", "leave it out");
  if (dtype.empty() && !p.amp && vlm.dtype) {
    p.dtype = *vlm.dtype;
    p.own_dtype = true;
  }
  if (const auto note = vlm.family.traits().note; !note.empty()) say("note: " + in_flags(std::string(note)));
  const KernelPackages can = vlm.family.traits().packages;
  if (const std::string note = packages_note(can, p.packages); !note.empty()) say("note: " + in_flags(note));
  if (const auto& keys = vlm.unread_keys; !keys.empty()) {
    constexpr std::size_t most = 12;
    const std::vector<std::string> shown(keys.begin(), keys.begin() + std::min(keys.size(), most));
    say(fmt::format("note: config.json has what is not known here and not used: {}{}", fmt::join(shown, ", "),
                    keys.size() > most ? fmt::format(" and {} more", keys.size() - most) : ""));
  }
  if (vlm.quantization && !p.weights) {
    for (const auto& note : vlm.quantization->notes) say("note: " + in_flags(note));
    for (const auto& note : unused_rules(vlm, p)) say("note: " + note);
  }
  return p;
}

}  // namespace vlmest::tool
