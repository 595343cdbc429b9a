// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest {

/// The cache as decoding up to `seen` tokens leaves it, `added` at a time, with room for one more: dense rows of the
/// full length; in a sliding layer the last concatenation, of which the newest rows are kept once the window is full;
/// whole pages; or quantised rows and the tokens that wait to be quantised.
void refill(Context& c, Cache& cache, std::int64_t seen, std::int64_t added = 1);

/// Bytes of one cache entry, and where its layer stands. A sliding layer's entry is what it keeps, though the storage
/// behind it may be longer.
struct CacheEntry {
  ScopeId scope = 0;
  Bytes bytes{};
  Bytes states{};      ///< of those, what is of one size whatever the length (linear attention)
  bool fixed = false;  ///< keys and values of a cross-attention
};
std::vector<CacheEntry> entries(Context& c, const Cache& cache);

/// Declares a model's parameters and buffers and nothing that runs.
void declare_parameters(Context& c, const Vlm& vlm);

/// Every parameter asks for gradients, as torch's do; under no_grad none is recorded, but autocast keeps a copy of each
/// weight that is used, so that inference under autocast holds weights in both types.
void ask_for_gradients(Builder& b);

/// The caches of a build: after the prefill, and after the decode step.
struct InferenceCaches {
  std::vector<CacheEntry> prefill, decode;
  std::int64_t decode_kv = 0;  ///< tokens in the decoder's own cache at the decode step, the new ones included
  std::int64_t canvas = 0;     ///< of those, what a step works on that adds none (FamilyTraits::canvas)
  std::int64_t steps = 1;      ///< that a canvas, or else a token, takes
};

/// Builds one forward over a prompt and one decode step over `decode_kv` tokens into c.b.graph: parameters and inputs,
/// then the phases "prefill" and "decode". decode_kv counts the new token; 0 leaves the decode out. A model that works
/// on canvases decodes on the last one that so many tokens need, those before it in the cache.
InferenceCaches build_inference(Context& caller, const Vlm& vlm, const Sequences& s, std::int64_t decode_kv);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/nn/impl/inference.hpp>
#endif
