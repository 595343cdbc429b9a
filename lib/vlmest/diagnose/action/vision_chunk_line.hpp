// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <vlmest/diagnose/action/action_entry.hpp>
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
inline std::string deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models." + type + ".modeling_" + type +
         " import BaseModelOutputWithDeepstackFeatures; " +
         wrapped("model.model.get_image_features", "pixel_values, grid",
                 "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
                 "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
                 "\"deepstack_features\")(f(p, g, **k)) " +
                     packed_pairs(n) + "])");
}
/// modeling_idefics3.py, modeling_smolvlm.py: pixel_values[B, tiles, ...] and a mask of the same, or none.
inline std::string tiles_line(std::int64_t n) {
  return "import itertools; " +
         image_features(
             "pixel_values, mask=None, cut=lambda t: itertools.repeat(None) if t is None else "
             "t.flatten(0, 1).unsqueeze(0).split(" +
                 std::to_string(n) + ", 1)",
             "torch.cat([f(p, m, **k).pooler_output for p, m in zip(cut(pixel_values), cut(mask))])");
}
/// modeling_mllama.py calls the tower itself, with pixel_values[B, images, tiles, ...].
inline std::string mllama_line(std::int64_t n) {
  return "from transformers.modeling_outputs import BaseModelOutput; " +
         wrapped("model.model.vision_model.forward",
                 "pixel_values, aspect_ratio_ids, aspect_ratio_mask, cut=lambda t: " +
                     split("t.flatten(0, 1).unsqueeze(1)", n),
                 "BaseModelOutput(last_hidden_state=torch.cat([f(*a, **k).last_hidden_state for a in "
                 "zip(cut(pixel_values), cut(aspect_ratio_ids), cut(aspect_ratio_mask))]).flatten(0, 1).unflatten(0, "
                 "aspect_ratio_ids.shape))");
}
/// modeling_blip_2.py, Blip2ForConditionalGeneration.forward and generate(); its result then lacks the tower's states.
inline std::string blip2_line(std::int64_t n) {
  return "from transformers.models.blip_2.modeling_blip_2 import BaseModelOutputWithVisionQformerOutputs; " +
         wrapped("model.get_image_features", "pixel_values",
                 "BaseModelOutputWithVisionQformerOutputs(pooler_output=torch.cat([f(pixel_values=p, "
                 "**k).pooler_output for p in " +
                     split("pixel_values", n) + "]))");
}

inline std::string line(FeatureCall call, const std::string& type, std::int64_t n) {
  switch (call) {
    case FeatureCall::no_images: break;
    case FeatureCall::images: return list_line(n);
    case FeatureCall::sized_images: return sizes_line(n);
    case FeatureCall::tensor:
    case FeatureCall::tile_tensor: return tensor_line(n);
    case FeatureCall::tile_rows: return tiles_line(n);
    case FeatureCall::packed: return packed_line(n);
    case FeatureCall::deepstack: return deepstack_line(type, n);
    case FeatureCall::mllama: return mllama_line(n);
    case FeatureCall::blip2: return blip2_line(n);
  }
  return {};
}

}  // namespace chunk

/// What a plan's vision_chunk counts, in its whole batch: images, or tiles.
inline std::int64_t vision_rows(const Vlm& vlm, const Plan& plan) {
  const Sequences s = make_sequences(vlm, plan);
  if (!counts_tiles(vlm.family.traits().features)) return static_cast<std::int64_t>(s.images.size());
  std::int64_t tiles = 0;
  for (const ImageLayout& i : s.images) tiles = checked_add(tiles, i.tiles);
  return tiles;
}

/// Chunks of a half, a third, … down to a sixteenth of the rows, then by halves to one.
inline std::vector<Settings> vision_chunks(const Subject& s) {
  std::vector<Settings> r;
  const std::int64_t rows = vision_rows(s.now.vlm, s.plan());
  std::int64_t last = s.plan().vision_chunk > 0 ? std::min(rows, s.plan().vision_chunk) : rows;
  for (std::int64_t calls = 2; last > 1; calls = calls < lever_steps ? calls + 1 : calls * 2) {
    const std::int64_t n = (rows + calls - 1) / calls;
    if (n >= last) continue;
    last = n;
    r.emplace_back(s.now).plan.vision_chunk = n;
  }
  return r;
}

inline std::string vision_chunk_line(const Settings& s) {
  return chunk::line(s.vlm.family.traits().features, s.vlm.type, s.plan.vision_chunk);
}

}  // namespace vlmest::diagnose
