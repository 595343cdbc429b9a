// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/kv_layout.hpp>

/// Caches in another type than the activations'. A quantiser is one op here: it reads its input and writes values and
/// scales. The temporaries of a library's own quantiser are not counted.
namespace vlmest {

/// Shape and type of the scales of an entry's keys and values together, n values each: [2, groups, 2] in the
/// activations' type, or two fp32 numbers; nothing for plain types.
inline Shape scales_shape(DType stored, Elements n) {
  if (stored == DType::fp8) return {2};
  if (is_grouped(stored)) return {2, (n.value() + kv_group - 1) / kv_group, 2};
  return {0};
}
constexpr DType scales_type(DType stored, DType activations) {
  return stored == DType::fp8 ? DType::fp32 : activations;
}

/// x as values of type `stored`; where `scales` is given, the op also makes the scales of an entry of `entry` values.
inline Value quantize(Context& c, const Value& x, DType stored, Value* scales = nullptr, Elements entry = {}) {
  const Elements n = numel(x.shape());
  const MemoryOp op{.read = eager::data_bytes(x),
                    .written = size_of(n, stored) + scale_bytes(stored, x.dtype(), n),
                    .dtype = x.dtype()};
  std::array<TensorId, 2> outs{c.b.result(stored, x.shape(), "quantize"), none};
  const bool scaled = scales && numel(scales_shape(stored, entry)) > Elements(0);
  if (scaled) outs[1] = c.b.result(scales_type(stored, x.dtype()), scales_shape(stored, entry), "scales");
  const std::array<TensorId, 1> ins{x.id()};
  c.b.emit("quantize", op, ins, std::span<const TensorId>(outs.data(), scaled ? 2 : 1));
  Value r(c.b, outs[0]);
  if (scaled) {
    *scales = Value(c.b, outs[1]);
    c.b.label(*scales, "scales", Role::kv_cache);
  }
  return r;
}
inline Value dequantize(Context& c, const Value& x, DType t) {
  const Elements n = numel(x.shape());
  const TensorId out = c.b.result(t, x.shape(), "dequantize");
  const MemoryOp op{.read = eager::data_bytes(x) + scale_bytes(x.dtype(), t, n), .written = size_of(n, t), .dtype = t};
  Value in = x;
  return eager::emit1(c.b, "dequantize", op, out, {}, in);
}

/// Every token is cast as it comes; attention sees the whole entry cast back, or, where a stack attends to what is
/// stored, the entry itself. Assumed for fp8 and for storage in another float type: transformers 5.17 has no such
/// cache.
inline void update_cast(Context& c, CacheLayer& layer, Value& k, Value& v) {
  using namespace eager;
  const DType t = k.dtype(), stored = *c.plan.kv.dtype;
  const bool first = !layer.keys;
  layer.seen += k.size(2);
  send_window(c, layer);
  auto take = [&](Value& kept, Value& fresh, const char* label, Value* scales) {
    Shape whole = fresh.shape();
    if (!first) whole[2] = checked_add(whole[2], kept.size(2));
    Value all = quantize(c, fresh, stored, scales, numel(whole));
    if (!first) {
      const Value before = kept;
      all = append(c, before, all, label);
    }
    c.b.label(all, label, Role::kv_cache);
    const std::int64_t n = all.size(2), keep = layer.window ? std::min(n, *layer.window - 1) : n;
    kept = keep < n ? slice(all, 2, n - keep, n) : all;
    if (c.stack().attends_to_stored_cache)
      fresh = all;
    else if (!first)
      fresh = dequantize(c, all, t);
  };
  take(layer.keys, k, "keys", nullptr);
  take(layer.values, v, "values", &layer.scales);
}

/// transformers 5.17 cache_utils.py, QuantizedLayer.update: the prompt is quantised at once, later tokens wait in the
/// activations' type and are quantised with everything before them when kv_residual of them have come together.
/// Throws Error for a sliding layer, as QuantizedCache does.
inline void update_grouped(Context& c, CacheLayer& layer, Value& k, Value& v) {
  using namespace eager;
  const DType t = k.dtype(), stored = *c.plan.kv.dtype;
  if (layer.window)
    throw Error("kv", "transformers keeps no quantised cache for sliding layers",
                "use bf16 or fp8, or a plan.runtime that quantises each token as it comes");
  layer.seen += k.size(2);
  auto whole = [&](const Value& keys, const Value& values) {
    layer.keys = quantize(c, contiguous(keys), stored);
    c.b.label(layer.keys, "keys", Role::kv_cache);
    layer.values = quantize(c, contiguous(values), stored, &layer.scales, numel(values.shape()));
    c.b.label(layer.values, "values", Role::kv_cache);
  };
  if (!layer.keys) return whole(k, v);
  const Value old_keys = dequantize(c, layer.keys, t);
  const Value old_values = dequantize(c, layer.values, t);
  auto join = [&](const Value& old, const Value& recent, const Value& fresh) {
    std::vector<Value> parts{old};
    if (recent) parts.push_back(recent);
    parts.push_back(fresh);
    return cat(parts, 2);
  };
  Value keys = join(old_keys, layer.recent_keys, k);
  Value values = join(old_values, layer.recent_values, v);
  if (layer.recent_keys && layer.recent_keys.size(2) + 1 >= kv_residual) {
    whole(keys, values);
    layer.recent_keys.reset();
    layer.recent_values.reset();
  } else {
    const Value before_keys = layer.recent_keys, before_values = layer.recent_values;
    layer.recent_keys = append(c, before_keys, k, "recent keys");
    layer.recent_values = append(c, before_values, v, "recent values");
  }
  k = std::move(keys);
  v = std::move(values);
}

}  // namespace vlmest
