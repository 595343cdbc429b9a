// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/image_processor/qwen3_vl.hpp>

/// The Qwen line and GLM-4V: pixel counts between which a picture is scaled.
namespace vlmest::json {

/// `size` is {shortest_edge, longest_edge}, both pixel counts; min_pixels and max_pixels beside it come first. What the
/// file leaves out is `absent`, the class's own. transformers 5.17 image_processing_qwen2_vl.py, __init__; the class of
/// GLM-4V knows `size` alone.
inline void read_budget(ProcessorKeys& k, image_processor::PixelBudget& budget, image_processor::PixelBudget absent,
                        bool old_names) {
  constexpr std::int64_t most = image_processor::max_side * image_processor::max_side;
  const ProcessorSize s = k.size("size", most);
  if (s.height || s.width) k.fail("size", "has no shortest_edge and longest_edge", "give both, as counts of pixels");
  const bool names_below = k.given("size") && k.value("size").is_object() &&
                           (k.value("size").contains("min_pixels") || k.value("size").contains("max_pixels"));
  budget = {s.shortest_edge.value_or(absent.min_pixels), s.longest_edge.value_or(absent.max_pixels)};
  if (old_names) {
    budget.min_pixels = k.integer("min_pixels", budget.min_pixels, 1, most);
    budget.max_pixels = k.integer("max_pixels", budget.max_pixels, 1, most);
  }
  const bool low = s.shortest_edge || (old_names && k.given("min_pixels"));
  const bool high = s.longest_edge || (old_names && k.given("max_pixels"));
  if (k.given("size") && (!low || !high))
    k.fail("size",
           names_below ? "has min_pixels and max_pixels, which transformers 5 refuses there"
                       : "lacks shortest_edge or longest_edge",
           "give both, as counts of pixels");
  if (budget.min_pixels > budget.max_pixels)
    k.fail(old_names && k.given("min_pixels") ? "min_pixels" : "size",
           "at least " + std::to_string(budget.min_pixels) + " and at most " + std::to_string(budget.max_pixels) +
               " pixels",
           "exchange the limits");
}

/// Those that say what the model's own config says.
template <class Rule>
void read_patch_keys(ProcessorKeys& k, const Rule& rule, std::int64_t frames, const char* frames_are) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", frames, frames_are);
}
/// Of a processor in the Qwen line's form whose model takes single frames.
template <class Rule>
void read_single_frame_keys(ProcessorKeys& k, const Rule& rule) {
  read_patch_keys(k, rule, 1, "the model, which takes single frames,");
}

template <class Rule>
void read_qwen_keys(ProcessorKeys& k, Rule& rule, std::int64_t frames) {
  read_patch_keys(k, rule, frames, "vision_config.temporal_patch_size");
  // Of the class, whatever the checkpoint: image_processing_qwen2_vl.py.
  read_budget(k, rule.budget, {56 * 56, 28 * 28 * 1280}, true);
}

inline void read_image(DescriptionImage& image, image_processor::Qwen3Vl& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::Qwen3Vl& rule, const FamilyTraits& t) {
  read_qwen_keys(k, rule, t.frames);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Qwen3Vl&) {}

}  // namespace vlmest::json
