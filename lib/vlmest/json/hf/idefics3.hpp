// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/idefics3.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// transformers 5.17, models/idefics3/configuration_idefics3.py and models/smolvlm/configuration_smolvlm.py, which
/// agree in every default.
inline Vlm read_idefics3_parts(const Reader& r, const char* type) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  Idefics3Family f;
  f.smolvlm = std::string_view(type) == "smolvlm";
  f.vision = vit(v, Idefics3Vision{}, "gelu_pytorch_tanh");
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.tied = r.boolean("tie_word_embeddings", false);
  f.projector = {.in = f.vision.hidden, .out = width(f.language), .scale = r.integer("scale_factor", 2, 1, 1 << 10)};
  const std::int64_t side = f.vision.image_size / f.vision.patch_size;
  if (side % f.projector.scale != 0)
    r.fail("scale_factor",
           std::to_string(side) + " patches a side are not divisible by " + std::to_string(f.projector.scale));
  Vlm m{.type = type};
  // The processors that were released with these models scale pictures to four tiles along the longer side.
  m.tokens = tokens::Idefics3{.tile_size = f.vision.image_size,
                              .patch_size = f.vision.patch_size,
                              .merge = f.projector.scale,
                              .longest_edge = checked_mul(4, f.vision.image_size)};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}
inline Vlm read_idefics3(const Reader& r) { return read_idefics3_parts(r, "idefics3"); }
inline Vlm read_smolvlm(const Reader& r) { return read_idefics3_parts(r, "smolvlm"); }

}  // namespace vlmest::json::hf
