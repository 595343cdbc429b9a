// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/idefics3/smolvlm_merge.hpp>
#include <vlmest/nn/family/assembly.hpp>
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

/// pixel_values[B, tiles, ...] and a mask of the same, or none: modeling_idefics3.py, modeling_smolvlm.py.
inline std::string idefics3_line(const std::string&, std::int64_t n) {
  return "import itertools; " +
         feature_calls::image_features(
             "pixel_values, mask=None, cut=lambda t: itertools.repeat(None) if t is None else "
             "t.flatten(0, 1).unsqueeze(0).split(" +
                 std::to_string(n) + ", 1)",
             "torch.cat([f(p, m, **k).pooler_output for p, m in zip(cut(pixel_values), cut(mask))])");
}
constexpr FamilyTraits traits(const Idefics3Family& g) {
  return {.features = FeatureCall{idefics3_line, true},
          .videos = g.smolvlm ? VideoPixels::tiles : VideoPixels::refused,
          .videos_alone = "processing_smolvlm.py hands over the pixels of one of them, as pixel_values"};
}

using Idefics3Model = Assembly<Idefics3Family>;

struct Idefics3Inputs {
  TextInputs text;
  Value pixels;  ///< [B, tiles of a sequence, channels, side, side]; the shorter sequences are padded with empty tiles
};

/// Tiles of each sequence of the batch.
inline std::vector<std::int64_t> tiles_of(const Sequences& s) {
  std::vector<std::int64_t> r(static_cast<std::size_t>(s.batch), 0);
  if (s.images.size() % r.size() != 0) throw Error("images", "sequences with different numbers of images");
  const std::size_t each = s.images.size() / r.size();
  for (std::size_t i = 0; i < s.images.size(); ++i) r[i / each] = checked_add(r[i / each], s.images[i].tiles);
  return r;
}

inline Idefics3Inputs make_inputs(Context& c, const Idefics3Family& g, const Sequences& s) {
  Idefics3Inputs r;
  if (!s.images.empty()) {
    const auto tiles = tiles_of(s);
    const std::int64_t most = *std::max_element(tiles.begin(), tiles.end());
    r.pixels = c.b.existing("pixel_values", Role::input, c.dtype(),
                            {s.batch, most, g.vision.channels, g.vision.image_size, g.vision.image_size});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// The tiles of all sequences in one, as pixel_values.flatten(0, 1).unsqueeze(0).split(n, 1) cuts them.
inline std::vector<VisionChunk<Idefics3Inputs>> vision_chunks(Context& c, const Idefics3Inputs& in,
                                                              const Sequences& s) {
  using namespace eager;
  const auto tiles = tiles_of(s);
  if (std::any_of(tiles.begin(), tiles.end(), [&](std::int64_t n) { return n != tiles.front(); }))
    throw Error("plan.vision_chunk",
                "sequences with different numbers of tiles are padded with empty ones, which a call "
                "of its own may hold alone",
                "give images of one size");
  Sequences one = s;
  one.batch = 1;
  const std::vector<ImageLayout> single = single_tiles(s.images);
  const Value rows = unsqueeze(flatten(in.pixels, 0, 1), 0);
  std::vector<Value> pixels = split(rows, chunk_lengths(single.size(), c.plan.vision_chunk), 1);
  std::vector<VisionChunk<Idefics3Inputs>> r;
  for (Sequences& part : chunk_sequences(one, single, c.plan.vision_chunk)) {
    Value rows_of_part = std::move(pixels[r.size()]);
    r.push_back({{}, std::move(part)});
    r.back().inputs.pixels = std::move(rows_of_part);
  }
  return r;
}

/// Tiles that hold something: bool[B * tiles], true where not all values are zero.
inline Value real_tiles(Context& c, const Idefics3Family& g, const Value& pixels) {
  using namespace eager;
  Value empty = compare_scalar("eq.Scalar", pixels);
  Value zeros = count_true(std::move(empty), 3);
  Value real = compare_scalar("ne.Scalar", std::move(zeros));
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
inline Value image_features(Context& c, const Idefics3Model& m, const Idefics3Inputs& in, const Sequences& s) {
  using namespace eager;
  const Idefics3Family& g = *m.config;
  std::int64_t count = 0;
  for (auto n : tiles_of(s)) count = checked_add(count, n);
  Value pixels = flatten(in.pixels, 0, 1);
  Value real = real_tiles(c, g, pixels);
  pixels = masked_index(pixels, real, count);
  // No pixel mask is given: every pixel counts.
  Value pixel_mask = fill(c.b, "ones", {count, pixels.size(2), pixels.size(3)}, DType::boolean);
  Value patches = patches_with_pixels(pixel_mask, g.vision.patch_size);
  Value hidden = forward(c, m.vision, pixels, patches);
  return forward(c, m.projector, hidden);
}

/// Idefics3Model.inputs_merger. (SmolVLM's of transformers 5.17 forgets the cast and fails under autocast.)
inline Value merge(const Idefics3Model& m, const Value& ids, const Value& embeds, const Value& features) {
  using namespace eager;
  Value placed = to(features, embeds.dtype());
  if (m.config->smolvlm) return merge_blocks(ids, embeds, placed);
  Value mask = unsqueeze(compare_scalar("eq.Scalar", ids), -1);
  return masked_scatter(embeds, mask, placed);
}

/// Idefics3ForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const Idefics3Model& m, const Idefics3Inputs& in, const Sequences& s, Cache& cache) {
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    if (in.pixels) {
      features = batch_features(c, m, in, s);
      embeds = merge(m, in.text.ids, embeds, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

}  // namespace vlmest
