// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantized_cache.hpp>

/// Caches in pages of KvLayout::block tokens (Kwon et al., Efficient Memory Management for Large Language Model Serving
/// with PagedAttention, 2023, section 4): memory is held in whole pages, new tokens are written in place, and attention
/// reads the pages where they lie.
namespace vlmest {

/// New tokens into the pages of an entry; `stored` [B, H, whole pages, D] is made with the first ones. The run gives
/// the entry its pages for a whole phase (refill()), so a step never grows it.
inline void update_paged(Context& c, CacheLayer& layer, Value& k, Value& v) {
  using namespace eager;
  const DType t = k.dtype(), stored = c.plan.kv.dtype.value_or(t);
  const std::int64_t fresh = k.size(2), before = layer.seen;
  const bool first = !layer.keys;
  layer.seen += fresh;
  if (!first && layer.keys.size(2) < layer.seen) throw Error("kv", "the pages of this run do not hold its tokens");
  auto write = [&](Value& pages, Value& x, const char* label, Value* scales) {
    if (first) {
      Shape s = x.shape();
      s[2] = held_tokens(c.plan.kv, layer.seen);
      Value in = stored == t ? x : quantize(c, x, stored, scales, numel(s));
      const MemoryOp op{.read = data_bytes(in), .written = data_bytes(in), .dtype = stored};
      const TensorId out = c.b.result(stored, s, label);
      pages = emit1(c.b, "reshape_and_cache", op, out, {}, in);
      c.b.label(pages, label, Role::kv_cache);
    } else {
      Value in = slice(pages, 2, before, layer.seen), from = stored == t ? x : quantize(c, x, stored);
      const MemoryOp op{.read = data_bytes(from), .written = data_bytes(from), .dtype = stored};
      emit_inplace(c.b, "reshape_and_cache", op, {}, in, from);
    }
    if (first && !c.stack().attends_to_stored_cache) return;  // the prompt is attended to as it was computed
    Value all = slice(pages, 2, 0, layer.seen);
    x = stored == t || c.stack().attends_to_stored_cache ? all : dequantize(c, all, t);
  };
  write(layer.keys, k, "keys", nullptr);
  write(layer.values, v, "values", &layer.scales);
}

}  // namespace vlmest
