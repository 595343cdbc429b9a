// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/context.hpp>

namespace vlmest {

/// Keys and values of one decoder layer, [B, kv_heads, tokens, head_dim] each (cache_utils.py, DynamicLayer and
/// DynamicSlidingWindowLayer).
struct CacheLayer {
  Value keys;
  Value values;
  Value window_on_device;  ///< a sliding layer's window, which it copies to the device when it is first used
  std::optional<std::int64_t> window;
  std::int64_t seen = 0;  ///< tokens that have passed, kept or not
  bool off = false;       ///< use_cache=False: keys and values are only passed through
  bool fixed = false;     ///< written once and never extended (cross-attention)
};

/// The cache of a decoder, one entry per layer that has one.
struct Cache {
  std::vector<CacheLayer> layers;
};

/// Appends by concatenation: old and new buffers are alive together until the entry is rebound. A sliding layer hands
/// out the full concatenation and keeps its last window - 1 tokens.
inline void update(Context& c, CacheLayer& layer, Value& k, Value& v) {
  using namespace eager;
  if (layer.off) return;
  layer.seen += k.size(2);
  if (layer.window && !layer.window_on_device) {
    const TensorId size = c.b.result(DType::int64, Shape{}, "sliding_window");
    c.b.emit("_to_copy", HostSync{Bytes(8)}, {}, std::array<TensorId, 1>{size});
    layer.window_on_device = Value(c.b, size);
  }
  auto append = [&](Value& kept, const Value& fresh, const char* label) {
    Value all;
    if (!kept) {
      Value empty = from_host(c.b, Shape{0}, fresh.dtype());
      all = cat(std::move(empty), fresh, -2);
    } else {
      all = cat(kept, fresh, -2);
    }
    c.b.label(all, label, Role::kv_cache);
    return all;
  };
  Value keys = append(layer.keys, k, "keys");
  if (!layer.window) layer.keys = keys;
  Value values = append(layer.values, v, "values");
  if (layer.window) {
    const std::int64_t keep = *layer.window - 1;
    layer.keys = slice(keys, -2, std::max<std::int64_t>(0, keys.size(2) - keep), keys.size(2));
    layer.values = slice(values, -2, std::max<std::int64_t>(0, values.size(2) - keep), values.size(2));
  } else {
    layer.values = values;
  }
  k = std::move(keys);
  v = std::move(values);
}

/// Runs the layers of a decoder one after the other; equal ones are recorded once and copied (graph/repeat.hpp).
class DecoderStack {
 public:
  explicit DecoderStack(Context& c) : repeat_(c.b) {}

  template <class Run>
  Value operator()(const LayerRepeater::Layer& layer, const Value& x, CacheLayer& entry, Run&& run) {
    const std::int64_t seen = entry.seen;
    std::array<Value*, 3> state{&entry.keys, &entry.values, &entry.window_on_device};
    Value y = repeat_(layer, x, state, std::forward<Run>(run));
    if (entry.seen == seen) entry.seen += added_;
    added_ = entry.seen - seen;
    return y;
  }

 private:
  LayerRepeater repeat_;
  std::int64_t added_ = 0;  ///< tokens that each layer appends to its entry
};

}  // namespace vlmest
