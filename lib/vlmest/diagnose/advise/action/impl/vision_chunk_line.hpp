// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/vision_chunk_line.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace chunk {

VLMEST_INLINE std::string deepstack_line(const std::string& type, std::int64_t n) {
  return "from operator import attrgetter; from transformers.models." + type + ".modeling_" + type +
         " import BaseModelOutputWithDeepstackFeatures; " +
         wrapped("model.model.get_image_features", "pixel_values, grid",
                 "(lambda r: BaseModelOutputWithDeepstackFeatures(pooler_output=[y for a, _ in r for y in a], "
                 "deepstack_features=[torch.cat(d) for d in zip(*(b for _, b in r))]))([attrgetter(\"pooler_output\", "
                 "\"deepstack_features\")(f(p, g, **k)) " +
                     packed_pairs(n) + "])");
}

VLMEST_INLINE std::string tiles_line(std::int64_t n) {
  return "import itertools; " +
         image_features(
             "pixel_values, mask=None, cut=lambda t: itertools.repeat(None) if t is None else "
             "t.flatten(0, 1).unsqueeze(0).split(" +
                 std::to_string(n) + ", 1)",
             "torch.cat([f(p, m, **k).pooler_output for p, m in zip(cut(pixel_values), cut(mask))])");
}

VLMEST_INLINE std::string mllama_line(std::int64_t n) {
  return "from transformers.modeling_outputs import BaseModelOutput; " +
         wrapped("model.model.vision_model.forward",
                 "pixel_values, aspect_ratio_ids, aspect_ratio_mask, cut=lambda t: " +
                     split("t.flatten(0, 1).unsqueeze(1)", n),
                 "BaseModelOutput(last_hidden_state=torch.cat([f(*a, **k).last_hidden_state for a in "
                 "zip(cut(pixel_values), cut(aspect_ratio_ids), cut(aspect_ratio_mask))]).flatten(0, 1).unflatten(0, "
                 "aspect_ratio_ids.shape))");
}

VLMEST_INLINE std::string line(FeatureCall call, const std::string& type, std::int64_t n) {
  switch (call) {
    case FeatureCall::no_images: break;
    case FeatureCall::images: return list_line(n);
    case FeatureCall::sized_images: return sizes_line(n);
    case FeatureCall::positioned_images: return positions_line(n);
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

VLMEST_INLINE std::int64_t vision_rows(const Vlm& vlm, const Plan& plan) {
  const Sequences s = make_sequences(vlm, plan);
  if (!counts_tiles(vlm.family.traits().features)) return static_cast<std::int64_t>(s.images.size());
  std::int64_t tiles = 0;
  for (const ImageLayout& i : s.images) tiles = checked_add(tiles, i.tiles);
  return tiles;
}

VLMEST_INLINE std::vector<Settings> vision_chunks(const Subject& s) {
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

}  // namespace vlmest::diagnose
