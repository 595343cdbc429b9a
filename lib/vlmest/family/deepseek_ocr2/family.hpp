// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include <vlmest/family/deepseek_ocr2/rule.hpp>
#include <vlmest/family/deepseek_ocr2/tower.hpp>
#include <vlmest/nn/decoder/deepseek_moe.hpp>
#include <vlmest/nn/family/assembly.hpp>

namespace vlmest {

/// DeepSeek-OCR-2 (transformers models/deepseek_ocr2): its tower over the whole picture and over its tiles, a linear
/// layer, DeepSeek-V2's experts.
struct DeepseekOcr2Family {
  DeepseekOcr2Vision vision;
  DeepseekMoeConfig language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{.newline = "view_separator", .newline_last = true};
};

inline Linear make_projector(Context& c, const DeepseekOcr2Family& g) {
  return declare_linear(c, g.vision.encoder.hidden, width(g.language), true);
}

/// get_image_features(pixel_values, pixel_values_local, num_local_patches), by position; a list for each image.
inline std::string deepseek_ocr2_line(const std::string&, std::int64_t n) {
  const std::string step = std::to_string(n), from = "[i:i+" + step + "]";
  return feature_calls::image_features("p, l, n", "[y for n in [n.tolist()] for i in range(0, len(p), " + step +
                                                      ") for y in f(p" + from + ", l[sum(n[:i]):sum(n[:i+" + step +
                                                      "])] if sum(n" + from + ") else None, n" + from +
                                                      ", **k).pooler_output]");
}
inline constexpr FeatureCall deepseek_ocr2_call{deepseek_ocr2_line};

constexpr FamilyTraits traits(const DeepseekOcr2Family&) { return {.features = deepseek_ocr2_call}; }

using DeepseekOcr2Model = Assembly<DeepseekOcr2Family>;

struct DeepseekOcr2Inputs {
  TextInputs text;
  Value pixels;  ///< whole views, one row for each image; none without images
  Value counts;  ///< num_local_patches: int64[images], which the host reads; none in a part of a batch
  Value local;   ///< tiles of all images; none where no image has any
};

inline std::vector<std::int64_t> local_counts(const Sequences& s) {
  std::vector<std::int64_t> n;
  for (const ImageLayout& i : s.images) n.push_back(image_processor::local_tiles(i));
  return n;
}

inline DeepseekOcr2Inputs make_inputs(Context& c, const DeepseekOcr2Family& g, const Sequences& s) {
  DeepseekOcr2Inputs in;
  if (!s.images.empty()) {
    const auto images = static_cast<std::int64_t>(s.images.size());
    const std::int64_t side = s.images.front().patches.rows * g.vision.sam.patch_size;
    const auto pixels = [&](const char* name, std::int64_t rows, std::int64_t square) {
      return c.b.existing(name, Role::input, c.dtype(), {rows, g.vision.sam.channels, square, square});
    };
    in.pixels = pixels("pixel_values", images, side);
    in.counts = c.b.existing("num_local_patches", Role::input, DType::int64, {images});
    std::int64_t tiles = 0, square = 0;
    for (const ImageLayout& i : s.images) {
      if (image_processor::local_tiles(i) == 0) continue;
      tiles = checked_add(tiles, image_processor::local_tiles(i));
      square = image_processor::local_side(i);
    }
    if (tiles > 0) in.local = pixels("pixel_values_local", tiles, square);
  }
  in.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return in;
}

/// Slices of the images, their tiles with them.
inline std::vector<VisionChunk<DeepseekOcr2Inputs>> vision_chunks(Context& c, const DeepseekOcr2Inputs& in,
                                                                  const Sequences& s) {
  eager::to_host(in.counts);
  auto chunks = cut_rows(c, in, s, s.images);
  std::int64_t at = 0;
  for (auto& chunk : chunks) {
    const std::vector<std::int64_t> n = local_counts(chunk.sequences);
    const std::int64_t tiles = std::accumulate(n.begin(), n.end(), std::int64_t{0});
    chunk.inputs.counts.reset();
    chunk.inputs.local = tiles > 0 ? eager::slice(in.local, 0, at, at + tiles) : Value();
    at += tiles;
  }
  return chunks;
}

/// modeling_deepseek_ocr2.py, DeepseekOcr2Model.get_image_features: of each image its tiles' features, those of the
/// whole view, the separator.
inline std::vector<Value> image_features(Context& c, const DeepseekOcr2Model& m, const DeepseekOcr2Inputs& in,
                                         const Sequences& s) {
  using namespace eager;
  if (in.counts) to_host(in.counts);
  const std::size_t calls = in.local ? 2 : 1;
  const auto features = [&](std::size_t call, const Value& pixels, Value& states) {
    {
      const ChunkRun one(c, call, calls);
      states = forward(c, m.vision, pixels);
    }
    return forward(c, m.projector, states);
  };
  Value global_states, local_states;
  const Value global = features(0, in.pixels, global_states);
  Value local;
  std::vector<Value> tiles;
  if (in.local) {
    local = features(1, in.local, local_states);
    tiles = split(local, local_counts(s), 0);
  }
  const Value separator = unsqueeze(Value(c.b, m.newline), 0);
  const std::int64_t channels = global.size(-1);
  std::vector<Value> all;
  Value whole, flat;  // variables of the loop
  for (std::size_t i = 0; i < s.images.size(); ++i) {
    whole = reshape(select(global, 0, static_cast<std::int64_t>(i)), {-1, channels});
    std::vector<Value> parts;
    if (in.local) {
      flat = reshape(tiles[i], {-1, channels});
      parts.push_back(flat);
    }
    parts.push_back(whole);
    parts.push_back(separator);
    all.push_back(cat(parts, 0));
  }
  return all;
}

}  // namespace vlmest
