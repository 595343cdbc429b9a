// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sequence_layout.hpp>

namespace vlmest {

/// The cache as decoding up to `seen` tokens leaves it: dense rows of the full length; in a sliding layer the last step's
/// concatenation, of which all but the first row are kept once the window is full.
inline void refill(Context& c, Cache& cache, std::int64_t seen) {
  for (auto& l : cache.layers) {
    if (!l.keys) continue;
    auto grown = [&](const Value& v, const char* name) {
      Shape s = v.shape();
      s[2] = l.window ? std::min(seen, *l.window) : seen;
      Value all = c.b.existing(name, Role::kv_cache, v.dtype(), s);
      const std::int64_t kept = l.window ? std::min(seen, *l.window - 1) : seen;
      return eager::slice(std::move(all), 2, s[2] - kept, s[2]);
    };
    if (l.fixed) continue;
    l.keys = grown(l.keys, "keys");
    l.values = grown(l.values, "values");
    l.seen = seen;
  }
}

/// Bytes of one cache entry's keys and values, and where its layer stands. A sliding layer's entry is what it keeps, though
/// the storage behind it may be longer.
struct CacheEntry {
  ScopeId scope = 0;
  Bytes bytes{};
};
inline std::vector<CacheEntry> entries(Context& c, const Cache& cache) {
  std::vector<CacheEntry> r;
  for (const auto& l : cache.layers) {
    if (!l.keys) continue;
    const TensorId owner = c.b.graph.owner(l.keys.id());
    r.push_back({c.b.graph.tensor(owner).scope, eager::data_bytes(l.keys) + eager::data_bytes(l.values)});
  }
  return r;
}

/// The caches of a build: after the prefill, and after the decode step.
struct InferenceCaches {
  std::vector<CacheEntry> prefill, decode;
};

/// Builds one forward over a prompt and one decode step over `decode_kv` tokens into c.b.graph: parameters and inputs,
/// then the phases "prefill" and "decode". decode_kv counts the new token; 0 leaves the decode out.
inline InferenceCaches build_inference(Context& c, const Vlm& vlm, const Sequences& s, std::int64_t decode_kv) {
  InferenceCaches r;
  std::visit(
      [&](const auto& family) {
        auto model = make_model(c, family);
        auto inputs = make_inputs(c, family, s);
        Cache cache = make_cache(family.language);
        c.b.begin_phase("prefill");
        prefill(c, model, inputs, s, cache);
        c.b.end_phase();
        r.prefill = entries(c, cache);
        if (decode_kv < 1) return;
        if (decode_kv - 1 != s.seq) refill(c, cache, decode_kv - 1);
        const TextInputs next = make_text_inputs(c, s.batch, 1, decode_kv);
        c.b.begin_phase("decode");
        decode(c, model, next, cache);
        c.b.end_phase();
        r.decode = entries(c, cache);
      },
      vlm.family);
  return r;
}

}  // namespace vlmest
