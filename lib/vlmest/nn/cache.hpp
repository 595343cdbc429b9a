// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/paged_cache.hpp>
#include <vlmest/nn/quantized_cache.hpp>

namespace vlmest {

/// Takes the keys and values of new tokens into a layer's entry as the run's KvLayout says, and makes of k and v what
/// attention sees. A cross-attention entry is always dense.
inline void update(Context& c, CacheLayer& layer, Value& k, Value& v) {
  if (layer.off) return;
  const KvLayout& kv = c.plan.kv;
  const DType stored = kv.dtype.value_or(k.dtype());
  if (layer.fixed) return update_dense(c, layer, k, v);
  if (kv.kind == KvLayout::Kind::paged && !layer.window) return update_paged(c, layer, k, v);
  if (is_grouped(stored) && c.stack().keeps_recent_wide) return update_grouped(c, layer, k, v);
  if (stored != k.dtype()) return update_cast(c, layer, k, v);
  update_dense(c, layer, k, v);
}

/// Runs the layers of a decoder one after the other; equal ones are recorded once and copied (graph/repeat.hpp).
class DecoderStack {
 public:
  /// position_ids: every layer gets them, none reads them. Empty where a model passes none on.
  DecoderStack(Context& c, const Value& position_ids) : repeat_(c.b) {
    pass(position_ids);
    if (c.plan.checkpointed.layers) repeat_.checkpoint_only(*c.plan.checkpointed.layers);
  }

  /// A further argument that every layer gets.
  void pass(const Value& argument) { repeat_.pass(argument); }

  /// `own`: a further argument that each layer has its own of.
  Value operator()(const LayerRepeater::Layer& layer, const Value& x, CacheLayer& entry,
                   layer_gradient::LayerForward run, Value own = {}) {
    const std::int64_t seen = entry.seen;
    std::array<Value*, 10> state{
        &entry.keys,          &entry.values,     &entry.window_on_device, &entry.scales,          &entry.recent_keys,
        &entry.recent_values, &entry.index_keys, &entry.conv_state,       &entry.recurrent_state, &own};
    static_assert(std::tuple_size_v<decltype(state)> <= LayerTemplate::max_state);
    Value y = repeat_(layer, x, state, run);
    if (entry.seen == seen) entry.seen += added_;
    added_ = entry.seen - seen;
    return y;
  }

 private:
  LayerRepeater repeat_;
  std::int64_t added_ = 0;  ///< tokens that each layer appends to its entry
};

}  // namespace vlmest
