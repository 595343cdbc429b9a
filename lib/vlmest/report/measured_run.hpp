// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/plan/plan.hpp>

namespace vlmest {

/// A run of a whole model that was measured: what ran, and the figures by the names that the recorder gives them
/// (docs/reference/measured-rows.md; bytes, counts, milliseconds).
struct MeasuredRun {
  std::string model;   ///< as the row names it
  std::string config;  ///< path of its config.json where the row gives one
  std::string image;   ///< "image" as a description has it, in JSON: what the image processor was set to; or empty
  Plan plan;
  bool training = false;
  bool out_of_memory = false;
  bool cache_emptied = false;  ///< between the first training step and the measured second one
  std::map<std::string, double, std::less<>> figures;

  std::optional<double> figure(std::string_view name) const {
    const auto found = figures.find(name);
    return found == figures.end() ? std::nullopt : std::optional(found->second);
  }
};

/// "llava-1.5-7b b2 text 256 images 1 336x336 checkpointing lora 16": what tells runs apart.
inline std::string name(const MeasuredRun& run) {
  const Plan& p = run.plan;
  std::string s = run.model + " b" + std::to_string(p.batch) + " text " + std::to_string(p.text) + " images " +
                  std::to_string(p.images);
  if (p.image_height > 0) s += " " + std::to_string(p.image_height) + "x" + std::to_string(p.image_width);
  for (const PixelSize& o : p.more_sizes) s += "," + std::to_string(o.height) + "x" + std::to_string(o.width);
  if (p.video && p.video->frames) s += " frames " + std::to_string(*p.video->frames);
  if (p.video && p.video->height > 0) s += " " + std::to_string(p.video->height) + "x" + std::to_string(p.video->width);
  if (p.vision_chunk > 0) s += " vision in chunks of " + std::to_string(p.vision_chunk);
  if (p.packages != KernelPackages{}) s += " " + names_of(p.packages);
  if (p.attention != AttentionKind::sdpa) s += p.attention == AttentionKind::eager ? " eager" : " flash";
  if (p.amp)
    s += " amp";
  else if (p.dtype != DType::bf16)
    s += " " + std::string(name(p.dtype));
  if (p.logits == Logits::all && !run.training) s += " all logits";
  if (!run.training) return s;
  if (p.optimizer != Optimizer::adamw) s += " " + std::string(name(p.optimizer));
  if (p.checkpointing != Checkpointing::off)
    s += p.checkpointing == Checkpointing::full ? " checkpointing" : " selective checkpointing";
  if (p.checkpointing != Checkpointing::off && p.checkpointed.layers)
    s += " of " + std::to_string(*p.checkpointed.layers) + " layers";
  if (p.lora.rank > 0) s += " lora " + std::to_string(p.lora.rank);
  if (!p.trainable.vision) s += " vision frozen";
  if (p.gradient_accumulation > 1) s += " " + std::to_string(p.gradient_accumulation) + " micro-batches";
  return s;
}

}  // namespace vlmest
