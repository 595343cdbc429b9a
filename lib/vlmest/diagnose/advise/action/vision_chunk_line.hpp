// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/nn/sequence_layout.hpp>

/// The vision tower on a few images at a time: how many there are, and the line that wraps what a model of
/// transformers 5 calls, so that it runs over slices and gives back what its caller reads. nn/family/vision_chunks.hpp
/// estimates these lines.
namespace vlmest::diagnose {

namespace chunk {

/// "pixel_values.split(4)" and the like.
inline std::string split(const std::string& tensor, std::int64_t n) {
  return tensor + ".split(" + std::to_string(n) + ")";
}
inline const std::string& outputs() {
  static const std::string line = "from transformers.modeling_outputs import BaseModelOutputWithPooling; ";
  return line;
}
/// A method of `of` becomes a function of `arguments` that calls it, as f, and gives `result`.
inline std::string wrapped(const std::string& of, const std::string& arguments, const std::string& result) {
  return of + " = lambda " + arguments + ", f=" + of + ", **k: " + result;
}
inline std::string image_features(const std::string& arguments, const std::string& pooled) {
  return outputs() + wrapped("model.model.get_image_features", arguments,
                             "BaseModelOutputWithPooling(pooler_output=" + pooled + ")");
}

/// The caller takes pooler_output as one tensor: forward() of modeling_internvl.py, modeling_aya_vision.py,
/// modeling_vipllava.py, modeling_gemma3.py and modeling_paligemma.py.
inline std::string tensor_line(std::int64_t n) {
  return image_features("pixel_values",
                        "torch.cat([f(pixel_values=p, **k).pooler_output for p in " + split("pixel_values", n) + "])");
}
/// The caller joins pooler_output, a list with an entry for each image: forward() of modeling_llava.py.
inline std::string list_line(std::int64_t n) {
  return image_features("pixel_values",
                        "[y for p in " + split("pixel_values", n) + " for y in f(pixel_values=p, **k).pooler_output]");
}
/// The same with image_sizes: modeling_llava.py over Pixtral, modeling_mistral3.py, modeling_llava_next.py,
/// modeling_llava_onevision.py.
inline std::string sizes_line(std::int64_t n) {
  return image_features("pixel_values, image_sizes",
                        "[y for p, s in zip(" + split("pixel_values", n) + ", " + split("image_sizes", n) +
                            ") for y in f(pixel_values=p, image_sizes=s, **k).pooler_output]");
}
/// The same with image_position_ids, called by position: modeling_gemma4.py, modeling_gemma4_unified.py.
inline std::string positions_line(std::int64_t n) {
  return image_features("pixel_values, image_position_ids", "[y for p, s in zip(" + split("pixel_values", n) + ", " +
                                                                split("image_position_ids", n) +
                                                                ") for y in f(p, s, **k).pooler_output]");
}
/// Pairs of pixels and grids; each chunk's patches are counted from its grid.
inline std::string packed_pairs(std::int64_t n) {
  return "for p, g in zip(pixel_values.split([int(g.prod(-1).sum()) for g in " + split("grid", n) + "]), " +
         split("grid", n) + ")";
}
/// modeling_qwen2_vl.py, modeling_qwen2_5_vl.py, modeling_glm4v.py: called by position, a list for each image.
inline std::string packed_line(std::int64_t n) {
  return image_features("pixel_values, grid", "[y " + packed_pairs(n) + " for y in f(p, g, **k).pooler_output]");
}
/// modeling_qwen3_vl.py, modeling_qwen3_vl_moe.py: also a list of DeepStack features, one tensor for each layer.
std::string deepstack_line(const std::string& type, std::int64_t n);
/// modeling_idefics3.py, modeling_smolvlm.py: pixel_values[B, tiles, ...] and a mask of the same, or none.
std::string tiles_line(std::int64_t n);
/// modeling_mllama.py calls the tower itself, with pixel_values[B, images, tiles, ...].
std::string mllama_line(std::int64_t n);
/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward and generate(); its result then lacks the tower's states.
inline std::string blip2_line(std::int64_t n) {
  return "from transformers.models.blip_2.modeling_blip_2 import BaseModelOutputWithVisionQformerOutputs; " +
         wrapped("model.get_image_features", "pixel_values",
                 "BaseModelOutputWithVisionQformerOutputs(pooler_output=torch.cat([f(pixel_values=p, "
                 "**k).pooler_output for p in " +
                     split("pixel_values", n) + "]))");
}

std::string line(FeatureCall call, const std::string& type, std::int64_t n);

}  // namespace chunk

/// What a plan's vision_chunk counts, in its whole batch: images, or tiles.
std::int64_t vision_rows(const Vlm& vlm, const Plan& plan);

/// Chunks of a half, a third, … down to a sixteenth of the rows, then by halves to one.
std::vector<Settings> vision_chunks(const Subject& s);

inline std::string vision_chunk_line(const Settings& s) {
  return chunk::line(s.vlm.family.traits().features, s.vlm.type, s.plan.vision_chunk);
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/vision_chunk_line.hpp>
#endif
