// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// A decode step of a …ForConditionalGeneration whose inner model (`m.model`) calls its language model with embeddings,
/// a mask and a cache alone: one token over the cache.
template <class Model>
Value decode_one_token(Context& c, const Model& m, const TextInputs& in, Cache& cache) {
  Value hidden;
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.ids);
    hidden = forward(c, m.language, embeds, in.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, Logits::last));
}

}  // namespace vlmest
