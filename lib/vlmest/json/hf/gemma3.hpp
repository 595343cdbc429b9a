// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/json/hf/paligemma.hpp>
#include <vlmest/nn/family/gemma3.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// Gemma3MultiModalProjector.__init__: windows of whole patches whose averages are mm_tokens_per_image tokens.
inline Gemma3Projector read_gemma3_projector(const Reader& r, const SiglipVision& v, std::int64_t width,
                                             std::int64_t tokens) {
  Gemma3Projector p{.in = v.hidden, .out = width, .side = v.image_size / v.patch_size};
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  p.window = p.side / side;
  if (p.window < 1 || (p.side / p.window) * (p.side / p.window) != tokens)
    r.fail("mm_tokens_per_image",
           std::to_string(tokens) + " tokens cannot be averaged from " + std::to_string(p.side) + "x" +
               std::to_string(p.side) + " patches",
           "compare with the vision_config's image_size and patch_size");
  return p;
}

/// model_type "gemma3": transformers 5.17, models/gemma3/configuration_gemma3.py.
inline Vlm read_gemma3(const Reader& r) {
  Gemma3Family f;
  f.vision = read_siglip_only(r.object("vision_config"));
  const Reader t = r.object("text_config");
  const std::string type = t.string("model_type", "gemma3_text");
  if (type != "gemma3_text") t.fail("model_type", "'" + type + "' is not supported here", "known: gemma3_text");
  f.language = read_gemma3_text_config(t);
  const std::int64_t tokens = r.integer("mm_tokens_per_image", 256, 1, 1 << 20);
  f.projector = read_gemma3_projector(r, f.vision, f.language.hidden, tokens);
  f.tied = r.boolean("tie_word_embeddings", true);
  f.placeholder_outside = read_placeholder_outside(r, 262144, f.language.vocab);
  Vlm m{.type = "gemma3"};
  m.tokens =
      tokens::Gemma3{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .image_tokens = tokens};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
