// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/decoder/qwen3_5_text.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/minicpmv4_6.hpp>
#include <vlmest/nn/vision/minicpmv4_6.hpp>

namespace vlmest {

/// MiniCPM-V 4.6 (transformers models/minicpmv4_6): SigLIP over whole pictures and slices of them, windows merged
/// inside the tower and squares behind it, Qwen3.5's text model. Its forward computes the logits of every position.
struct MiniCpmFamily {
  MiniCpmVision vision;
  std::int64_t merge = 2;   ///< merge_kernel_size
  std::int64_t rounds = 1;  ///< merger_times
  Qwen35TextConfig language;
  bool tied = false;
};

/// pixel_values in one row and target_sizes, by position; a list with an entry for each piece.
inline std::string minicpm_line(const std::string&, std::int64_t n) {
  return feature_calls::image_features(
      "pixel_values, sizes",
      "[y for p, s in zip(pixel_values.split([model.config.patch_size * int(s.prod(-1).sum()) "
      "for s in " +
          feature_calls::split("sizes", n) + "], -1), " + feature_calls::split("sizes", n) +
          ") for y in f(p, s, **k).pooler_output]");
}
constexpr FamilyTraits traits(const MiniCpmFamily&) {
  return {.features = FeatureCall{minicpm_line, true},
          .frames = 1,
          .videos = VideoPixels::own,
          .note = "MiniCPMV4_6ForConditionalGeneration computes the logits of every position of the prompt"};
}

struct MiniCpmModel {
  const MiniCpmFamily* config = nullptr;
  ScopeId model = 0;
  MiniCpmTower vision;
  Qwen35Text language;
  MiniCpmMerger merger;
  Linear head;
};

/// In the order of MiniCPMV4_6Model.__init__ and MiniCPMV4_6ForConditionalGeneration.__init__.
inline MiniCpmModel make_model(Context& c, const MiniCpmFamily& g) {
  MiniCpmModel r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    {
      Module v(c, "vision_tower", Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    {
      Module l(c, "language_model", Part::language);
      r.language = make_decoder(c, g.language);
    }
    Module p(c, "merger", Part::projector);
    r.merger = make_merger(c, g.merge, g.rounds, g.vision.hidden, width(g.language));
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct MiniCpmInputs {
  TextInputs text;
  MiniCpmImages images, videos;
};

/// Grids of the pieces that each picture or frame is handed over as: itself in small, and its slices.
inline std::vector<Grid> pieces_of(std::span<const ImageLayout> images) {
  std::vector<Grid> r;
  for (const ImageLayout& i : images)
    for (std::int64_t frame = 0; frame < i.frames; ++frame) {
      r.push_back(i.patches);
      r.insert(r.end(), static_cast<std::size_t>(i.tiles - 1), i.slices);
    }
  return r;
}

inline MiniCpmInputs make_inputs(Context& c, const MiniCpmFamily& g, const Sequences& s) {
  const MiniCpmVision& v = g.vision;
  const auto packed = [&](std::span<const ImageLayout> of, const char* pixels, const char* sizes) {
    const std::vector<Grid> pieces = pieces_of(of);
    MiniCpmImages r;
    r.pixels = c.b.existing(pixels, Role::input, c.dtype(),
                            {1, v.channels, v.patch_size, checked_mul(total(pieces), v.patch_size)});
    r.sizes = c.b.existing(sizes, Role::input, DType::int32, {static_cast<std::int64_t>(pieces.size()), 2});
    return r;
  };
  MiniCpmInputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (!s.images.empty()) r.images = packed(s.images, "pixel_values", "target_sizes");
  if (!s.videos.empty()) r.videos = packed(s.videos, "pixel_values_videos", "target_sizes_videos");
  return r;
}

/// What get_image_features returns, which the forward keeps until it is called again or returns.
struct MiniCpmFeatures {
  Value last;
  std::vector<Value> parts;
};

/// modeling_minicpmv4_6.py, MiniCPMV4_6Model.get_image_features.
inline MiniCpmFeatures piece_features(Context& c, const MiniCpmModel& m, const MiniCpmImages& in,
                                      std::span<const ImageLayout> images) {
  std::vector<Grid> pieces = pieces_of(images);
  MiniCpmFeatures r;
  r.last = forward(c, m.vision, in, pieces);
  Value sizes = in.sizes;
  if (m.config->vision.merges) {  // whether the tower has merged any or not
    sizes = eager::floor_divide(sizes);
    for (Grid& g : pieces) g = halved(g);
  }
  r.parts = merge_pieces(c, m.merger, r.last, sizes, pieces);
  return r;
}

/// A picture or frame for each piece.
inline std::vector<ImageLayout> single_pieces(std::span<const ImageLayout> images) {
  std::vector<ImageLayout> r;
  for (const Grid& g : pieces_of(images)) r.push_back({.patches = g, .tower_tokens = g.count()});
  return r;
}

/// Pieces in chunks, whose patches the host counts.
inline MiniCpmFeatures chunked_features(Context& c, const MiniCpmModel& m, const MiniCpmImages& in,
                                        const Sequences& s) {
  using namespace eager;
  const std::vector<ImageLayout> pieces = single_pieces(s.images);
  std::vector<Value> sizes = split(in.sizes, chunk_lengths(pieces.size(), c.plan.vision_chunk), 0), pixels;
  const std::vector<Sequences> parts = chunk_sequences(s, pieces, c.plan.vision_chunk);
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Value counts = reduce("prod.dim_int", DType::int64, {sizes[i].size(0)}, sizes[i]);
    item(sum_all(std::move(counts)));
    widths.push_back(checked_mul(total(pieces_of(parts[i].images)), m.config->vision.patch_size));
  }
  pixels = split(in.pixels, widths, -1);
  MiniCpmFeatures all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ChunkRun one(c, i, parts.size() + video_calls(s));
    MiniCpmFeatures part = piece_features(c, m, {pixels[i], sizes[i]}, parts[i].images);
    std::move(part.parts.begin(), part.parts.end(), std::back_inserter(all.parts));
  }
  return all;
}

/// Features into the places of their token, as the forward does it for pictures and once more for frames.
inline void place_pieces(Value& embeds, const Value& ids, MiniCpmFeatures& found, Value& features, Value& mask) {
  using namespace eager;
  {
    std::vector<Value> parts = found.parts;  // the list of them stays
    Value row = to(cat(parts, 0), embeds.dtype());
    features = repeat(std::move(row), {1, 1});
  }
  Value at = compare_scalar("eq.Scalar", ids);
  {
    const Value count = sum_all(at);
    at = unsqueeze(std::move(at), -1);
    check_features(embeds, at, features.size(0), count);
  }
  mask = std::move(at);
  embeds = masked_scatter(embeds, mask, features);
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6ForConditionalGeneration.forward over a fresh cache: every position's logits.
inline Value prefill(Context& c, const MiniCpmModel& m, const MiniCpmInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    MiniCpmFeatures vision;  // variables of the function: alive until it returns
    Value pictures, frames, mask;
    if (in.images.pixels) {
      if (c.plan.vision_chunk == 0) {
        const ChunkRun one(c, 0, 1 + video_calls(s));
        vision = piece_features(c, m, in.images, s.images);
      } else {
        vision = chunked_features(c, m, in.images, s);
      }
      place_pieces(embeds, in.text.ids, vision, pictures, mask);
    }
    if (in.videos.pixels) {
      const std::size_t before = c.plan.vision_chunk == 0 || s.images.empty()
                                     ? image_calls(c, s)
                                     : chunk_lengths(pieces_of(s.images).size(), c.plan.vision_chunk).size();
      const ChunkRun call(c, before, before + 1);
      {
        const MiniCpmImages once{in.videos.pixels, repeat(in.videos.sizes, {1, 1})};
        vision = piece_features(c, m, once, s.videos);
      }
      place_pieces(embeds, in.text.ids, vision, frames, mask);
    }
    hidden = forward(c, m.language, embeds, Value(), in.text.mask, cache);
  }
  if (c.labels) return head_output(c, m.head, hidden);
  return forward(c, m.head, hidden);
}

/// One token over the cache.
inline Value decode(Context& c, const MiniCpmModel& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, Value(), in.mask, cache);
  }
  return forward(c, m.head, hidden);
}

}  // namespace vlmest
