// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/family/idefics3/smolvlm_merge.hpp>
#include <vlmest/nn/family/image_rows.hpp>
#include <vlmest/nn/projector/idefics3.hpp>
#include <vlmest/nn/vision/idefics3.hpp>

namespace vlmest {

/// Idefics3 and SmolVLM (transformers models/idefics3, smolvlm): tiles as further images, empty ones filtered out,
/// tower, connector, features merged into the embeddings.
struct Idefics3Family {
  Idefics3Vision vision;
  Idefics3Projector projector;
  DecoderConfig language;
  bool tied = false;
  bool smolvlm = false;  ///< model_type "smolvlm": keeps one image where all are empty, and merges by blocks

  static constexpr AssemblyTraits assembly{
      .vision = "vision_model", .projector = "connector", .language = "text_model"};
};

constexpr FamilyTraits traits(const Idefics3Family& g) {
  return {.features = row_features,
          .videos = g.smolvlm ? VideoPixels::tiles : VideoPixels::refused,
          .videos_alone = "processing_smolvlm.py hands over the pixels of one of them, as pixel_values"};
}

using Idefics3Model = Assembly<Idefics3Family>;

inline ImageRows make_inputs(Context& c, const Idefics3Family& g, const Sequences& s) {
  ImageRows r;
  if (!s.images.empty()) r.pixels = make_row_pixels(c, s, g.vision.channels, g.vision.image_size, g.vision.image_size);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// Tiles that hold something, bool[B * tiles]; of SmolVLM the first one where none does.
inline Value real_tiles(Context& c, const Idefics3Family& g, const Value& pixels) {
  using namespace eager;
  Value real = real_rows(pixels);
  if (g.smolvlm) {
    // real[0] |= ~any(real), written back onto itself
    Value none_real = compare_scalar("bitwise_not", reduce("any", DType::boolean, Shape{}, real));
    Value first = pointwise_("bitwise_or_.Tensor", select(real, 0), std::move(none_real));
    // Python assigns the result to real[0], which it is: copy_ finds nothing to do.
    emit_inplace(c.b, "copy_", View{}, {}, first);
  }
  return real;
}

/// Idefics3Model.get_image_features: pixels -> [tiles, tokens, width]. The tower's output is dropped with the function.
inline Value image_features(Context& c, const Idefics3Model& m, const ImageRows& in, const Sequences& s) {
  using namespace eager;
  const Idefics3Family& g = *m.config;
  const std::int64_t count = filled_rows(s);
  Value pixels = flatten(in.pixels, 0, 1);
  Value real = real_tiles(c, g, pixels);
  pixels = masked_index(pixels, real, count);
  // No pixel mask is given: every pixel counts.
  Value pixel_mask = fill(c.b, "ones", {count, pixels.size(2), pixels.size(3)}, DType::boolean);
  Value patches = patches_with_pixels(pixel_mask, g.vision.patch_size);
  Value hidden = forward(c, m.vision, pixels, patches);
  return forward(c, m.projector, hidden);
}

/// Idefics3ForConditionalGeneration.forward over a fresh cache. (SmolVLM's inputs_merger of transformers 5.17 forgets
/// the cast and fails under autocast.)
inline Value prefill(Context& c, const Idefics3Model& m, const ImageRows& in, const Sequences& s, Cache& cache) {
  return prefill_rows(c, m, in, s, cache, [&](const Value& ids, const Value& embeds, const Value& features) {
    return m.config->smolvlm ? merge_blocks(ids, embeds, eager::to(features, embeds.dtype()))
                             : merge_rows(ids, embeds, features);
  });
}

}  // namespace vlmest
