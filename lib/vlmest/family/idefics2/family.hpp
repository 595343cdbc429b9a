// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/family/idefics2/connector.hpp>
#include <vlmest/nn/family/image_rows.hpp>
#include <vlmest/nn/vision/idefics3.hpp>

namespace vlmest {

/// Idefics2 (transformers 5.17 models/idefics2): pictures in their own aspect ratios, padded to the largest one of the
/// batch, a tower that Idefics3 has too, a gated MLP and a perceiver resampler, features merged into the embeddings.
struct Idefics2Family {
  Idefics3Vision vision{.hidden = 768, .heads = 12};
  Idefics2Projector projector;
  DecoderConfig language;
  bool tied = false;
  /// Type of pixel_attention_mask; none: that of the pixels. The processor makes both in fp32
  /// (image_processing_idefics2.py, _preprocess), and inputs.to(device, dtype) casts both.
  std::optional<DType> pixel_mask;

  static constexpr AssemblyTraits assembly{
      .vision = "vision_model", .projector = "connector", .language = "text_model"};
};

constexpr FamilyTraits traits(const Idefics2Family&) { return {.features = row_features}; }

using Idefics2Model = Assembly<Idefics2Family>;

/// Of all pictures the size of the largest one, in each direction (image_processing_idefics2.py, get_max_height_width).
inline ImageRows make_inputs(Context& c, const Idefics2Family& g, const Sequences& s) {
  ImageRows r;
  if (!s.images.empty()) {
    ImageSize most;
    for (const ImageLayout& i : s.images)
      most = {std::max(most.height, i.resized.height), std::max(most.width, i.resized.width)};
    r.pixels = make_row_pixels(c, s, g.vision.channels, most.height, most.width);
    r.pixel_mask = c.b.existing("pixel_attention_mask", Role::input, g.pixel_mask.value_or(c.dtype()),
                                {s.batch, r.pixels.size(1), most.height, most.width});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// Patches of which every pixel counts: mask[N, H, W] -> bool[N, h, w].
inline Value whole_patches(const Value& mask, std::int64_t patch) {
  using namespace eager;
  const Value grid = unfold(unfold(mask, 1, patch, patch), 2, patch, patch);
  Value inside =
      mask.dtype() == DType::boolean ? count_true(grid, 2) : sum_over(grid, {false, false, false, true, true});
  return compare_scalar("eq.Scalar", std::move(inside));
}

/// Idefics2Model.get_image_features: pixels -> [pieces, latents, width]. The tower's output is dropped with the
/// function.
inline Value image_features(Context& c, const Idefics2Model& m, const ImageRows& in, const Sequences& s) {
  using namespace eager;
  const Idefics2Family& g = *m.config;
  const std::int64_t count = filled_rows(s);
  std::int64_t with_pixels = 0;
  for (const ImageLayout& i : s.images) with_pixels = checked_add(with_pixels, i.real_patches);
  Value pixels = flatten(in.pixels, 0, 1);
  const Value real = real_rows(pixels);
  pixels = masked_index(pixels, real, count);
  const Value mask = masked_index(flatten(in.pixel_mask, 0, 1), real, count);
  const Value patches = whole_patches(mask, g.vision.patch_size);
  const bool padded = with_pixels < numel(patches.shape()).value();
  const Value hidden = forward(c, m.vision, TowerInput{.pixels = pixels, .images = {}}, patches, with_pixels).last;
  const Value features = forward(c, m.projector, hidden, view(patches, {count, -1}), padded);
  return view(features, {-1, features.size(-1)});
}

/// Idefics2ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Idefics2Model& m, const ImageRows& in, const Sequences& s, Cache& cache) {
  return prefill_rows(c, m, in, s, cache, merge_rows);
}

}  // namespace vlmest
