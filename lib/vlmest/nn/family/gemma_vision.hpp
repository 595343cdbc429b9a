// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/family/assembly.hpp>

/// What PaliGemma and Gemma 3 share around their decoders.
namespace vlmest {

/// Inputs of a forward; types[B, S] (token_type_ids, int64) tell the tokens that see each other in both directions.
struct GemmaInputs {
  TextInputs text;
  Value types;
  Value pixels;
};

inline GemmaInputs make_gemma_inputs(Context& c, const SiglipVision& vision, const Sequences& s) {
  GemmaInputs r;
  if (!s.images.empty()) r.pixels = make_pixels(c, vision, s);
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  r.types = c.b.existing("token_type_ids", Role::input, DType::int64, {s.batch, s.seq});
  return r;
}

inline std::vector<VisionChunk<GemmaInputs>> vision_chunks(Context& c, const GemmaInputs& in, const Sequences& s) {
  return cut_rows(c, in, s, single_tiles(s.images));
}

/// The ids that are embedded: where the placeholder lies outside the vocabulary it is replaced by 0 in a copy.
struct EmbeddedIds {
  Value ids;
  Value placeholders;  ///< a variable of the caller, rebound when the features are scattered
};
inline EmbeddedIds embedded_ids(const Value& input_ids, bool placeholder_outside) {
  using namespace eager;
  EmbeddedIds r{.ids = input_ids};
  if (!placeholder_outside) return r;
  r.placeholders = compare_scalar("eq.Scalar", input_ids);
  r.ids = clone(input_ids);
  r.ids = pointwise_("index_put_", r.ids, r.placeholders);
  return r;
}

}  // namespace vlmest
