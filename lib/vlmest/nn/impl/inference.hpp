// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/block.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/quantization/quantization.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/sharded_model.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE void refill(Context& c, Cache& cache, std::int64_t seen, std::int64_t added) {
  const KvLayout& kv = c.plan.kv;
  for (auto& l : cache.layers) {
    if (l.conv_state) l.seen = seen;
    if (!l.keys || l.fixed || l.preallocated) continue;
    const DType stored = l.keys.dtype();
    const bool paged = kv.kind == KvLayout::Kind::paged && !l.window;
    const std::int64_t recent =
        is_grouped(stored) && !paged && c.stack().keeps_recent_wide ? (seen - l.seen) % kv_residual : 0;
    auto entry = [&](const Value& v, const char* name, DType t, std::int64_t tokens) {
      Shape s = v.shape();
      s[2] = tokens;
      return c.b.existing(name, Role::kv_cache, t, s);
    };
    auto grown = [&](const Value& v, const char* name) {
      if (paged) return entry(v, name, stored, held_tokens(kv, seen + 1));
      const std::int64_t tokens = l.window ? std::min(seen - added, *l.window - 1) + added : seen - recent;
      const std::int64_t kept = l.window ? std::min(seen, *l.window - 1) : tokens;
      return eager::slice(entry(v, name, stored, tokens), 2, tokens - kept, tokens);
    };
    l.keys = grown(l.keys, "keys");
    if (l.values) l.values = grown(l.values, "values");
    if (l.index_keys) l.index_keys = grown(l.index_keys, "index keys");
    if (l.scales)
      l.scales = c.b.existing("scales", Role::kv_cache, l.scales.dtype(), scales_shape(stored, numel(l.keys.shape())));
    l.recent_keys = recent > 0 ? entry(l.keys, "recent keys", c.dtype(), recent) : Value();
    l.recent_values = recent > 0 ? entry(l.values, "recent values", c.dtype(), recent) : Value();
    l.seen = seen;
  }
}

VLMEST_INLINE std::vector<CacheEntry> entries(Context& c, const Cache& cache) {
  std::vector<CacheEntry> r;
  for (const auto& l : cache.layers) {
    const Value& first = l.keys ? l.keys : l.conv_state;
    if (!first) continue;
    const TensorId owner = c.b.graph.owner(first.id());
    Bytes bytes{};
    for (const Value* v : {&l.keys, &l.values, &l.scales, &l.recent_keys, &l.recent_values, &l.index_keys})
      bytes += eager::data_bytes(*v);
    const Bytes states = eager::data_bytes(l.conv_state) + eager::data_bytes(l.recurrent_state);
    r.push_back({c.b.graph.tensor(owner).scope, bytes + states, states, l.fixed});
  }
  return r;
}

VLMEST_INLINE void declare_parameters(Context& c, const Vlm& vlm) {
  c.quantization = quantization_of(vlm, c.plan, c.stack(), c.b.gpu);
  const std::optional<Sharding> sharding = sharding_of(c, vlm);
  if (sharding) c.sharding = &*sharding;
  vlm.family.make_model(c);
  c.sharding = nullptr;
  make_blocks(c, vlm.blocks);
}

VLMEST_INLINE void ask_for_gradients(Builder& b) {
  for (TensorId t = 0; t < static_cast<TensorId>(b.graph.tensors.size()); ++t)
    if (const Tensor& x = b.graph.tensor(t); x.role == Role::weight && is_floating(x.dtype)) b.require_grad(t);
}

VLMEST_INLINE InferenceCaches build_inference(Context& caller, const Vlm& vlm, const Sequences& s,
                                              std::int64_t decode_kv) {
  InferenceCaches r;
  Plan plan = caller.plan;
  plan.kv = chosen_layout(vlm.kv, plan.kv);
  if (plan.amp) plan.dtype = DType::fp32;
  check_kv_type(plan.kv.dtype.value_or(plan.dtype));
  Context c{caller.b, plan, caller.runtime};
  c.routed_rows = caller.routed_rows;
  c.quantization = quantization_of(vlm, plan, c.stack(), c.b.gpu);
  const std::optional<Sharding> sharding = sharding_of(c, vlm);
  if (sharding) c.sharding = &*sharding;
  c.padded = s.padded();
  Blocks blocks;
  const FamilyModel model = vlm.family.make_model(c);
  if (!vlm.blocks.empty()) {
    blocks = make_blocks(c, vlm.blocks);
    c.blocks = &blocks;
  }
  std::optional<Autocast> amp;
  if (plan.amp) {
    ask_for_gradients(c.b);
    amp.emplace(c.b, DType::bf16);
  }
  const FamilyInputs inputs = vlm.family.make_inputs(c, s);
  Cache cache = vlm.family.make_cache();
  c.b.graph.script = c.scripts().inference;
  c.b.begin_phase(PhaseKind::prefill);
  build_divided(sharding, [&] { model.prefill(c, inputs, s, cache); });
  c.b.end_phase();
  if (!s.images.empty()) check_all_ran(blocks);
  r.prefill = entries(c, cache);
  if (decode_kv < 1) return r;
  // An encoder-decoder model keeps the prompt apart: its decoder began with one token.
  const FamilyTraits traits = vlm.family.traits();
  const bool apart = traits.encoder_decoder;
  r.canvas = traits.canvas;
  if (r.canvas > 0) r.steps = plan.denoising_steps.value_or(traits.denoising_steps);
  const std::int64_t added = std::max<std::int64_t>(r.canvas, 1), seen = apart ? 1 : s.seq;
  const std::int64_t kept = checked_add(seen, checked_mul((decode_kv - s.seq - 1) / added, added));
  r.decode_kv = checked_add(kept, added);
  if (kept != seen || plan.kv.kind == KvLayout::Kind::paged) refill(c, cache, kept, added);
  TextInputs next;
  if (r.canvas > 0)
    next.ids = c.b.existing("canvas", Role::input, DType::int64, {s.batch, r.canvas});
  else
    next = make_text_inputs(c, s.batch, 1, apart ? s.seq : decode_kv);
  c.b.begin_phase(PhaseKind::decode);
  model.decode(c, next, cache);
  c.b.end_phase();
  r.decode = entries(c, cache);
  return r;
}

}  // namespace vlmest
