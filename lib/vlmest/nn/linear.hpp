// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/lora.hpp>
#include <vlmest/nn/quantized.hpp>
#include <vlmest/nn/sharding.hpp>

namespace vlmest {

/// torch.nn.Linear: weight[out, in], optional bias[out].
struct Linear {
  ScopeId scope = 0;
  TensorId weight = none;
  TensorId bias = none;
  QuantizedWeight quantized;             ///< of a weight in a storage type of its own
  bool stored = false;                   ///< the weight has one
  std::optional<DType> rounds;           ///< what inputs are rounded to: of a weight that was unpacked
  std::int32_t adapter = none;           ///< in Adapters::list
  ShardStyle style = ShardStyle::whole;  ///< how it is divided among GPUs
};

/// Of a linear that is divided: this rank's sizes, and its parameters noted as parts.
inline void declare_shard(Context& c, Linear& l, std::int64_t in, std::int64_t out, bool bias) {
  const bool outputs = splits_outputs(l.style);
  if (!outputs && !splits_inputs(l.style)) throw Error("graph", "a style that no linear has");
  l.weight = outputs ? parameter(c, "weight", {shard_of(c, out), in}) : parameter(c, "weight", {out, shard_of(c, in)});
  note_shard(c, l.weight);
  if (!bias) return;
  l.bias = parameter(c, "bias", {outputs ? shard_of(c, out) : out});
  note_shard(c, l.bias, outputs);
}

/// The linear module of the current scope.
inline Linear declare_linear(Context& c, std::int64_t in, std::int64_t out, bool bias,
                             StoredModule kind = StoredModule::linear) {
  const WeightStorage* how = checkpoint_storage(c, kind);
  Linear l{.scope = c.b.scope(), .adapter = adapter_of(c, in, out), .style = shard_style(c)};
  if (l.style != ShardStyle::whole) {
    declare_shard(c, l, in, out, bias);
    return l;
  }
  InScope own(c.b, base_scope(c, l.adapter, l.scope));
  const StoredSize size{.in = in, .out = out};
  l.stored = how ? !unpacks(c, *how) : quantizes(c, kind);
  if (l.stored) {
    const StoredWeight s = how ? declare_as(c, *how, size) : declare_in(c, *c.plan.weights, size);
    l.weight = s.weight;
    l.quantized = s.quantized;
  } else {
    l.weight = how ? declare_unpacked(c, *how, size) : parameter(c, "weight", {out, in});
    if (how) l.rounds = rounded_type(*how);
  }
  if (bias) l.bias = parameter(c, "bias", {out});
  return l;
}

/// A linear module called `name`, or `name.index`.
inline Linear make_linear(Context& c, const char* name, std::int64_t in, std::int64_t out, bool bias,
                          std::int32_t index = none) {
  Module m(c, name, index);
  return declare_linear(c, in, out, bias);
}

/// The module without an adapter.
inline Value base_layer(Context& c, const Linear& l, Value arg) {
  Value bias = l.bias == none ? Value() : Value(c.b, l.bias);
  const Value weight(c.b, l.weight);
  if (l.stored) return quantized_linear(c, std::move(arg), weight, l.quantized, std::move(bias));
  if (l.rounds) return linear(rounded_inputs(arg, *l.rounds), weight, std::move(bias));
  return linear(std::move(arg), weight, std::move(bias));
}

/// peft/tuners/lora/layer.py, Linear.forward: the sum is made in the adapter's type and cast back. Of a 4-bit layer
/// (peft/tuners/lora/bnb.py, Linear4bit.forward) the base result is copied first and the adapter's result cast instead,
/// or left as autocast makes it.
inline Value adapted(Context& c, const Linear& l, Value arg) {
  using namespace eager;
  const Adapter a = c.adapters->list[static_cast<std::size_t>(l.adapter)];
  const Value given = std::move(arg);
  Value result;
  {
    InScope in(c.b, a.base);
    result = base_layer(c, l, given);
  }
  const DType t = result.dtype();
  if (l.stored) result = clone(std::move(result));
  const auto times = [&](ScopeId scope, TensorId weight, Value of) {
    InScope in(c.b, scope);
    return linear(std::move(of), Value(c.b, weight), Value());
  };
  const bool casts = !l.stored || !c.b.autocast.enabled;
  Value x = casts ? to(given, c.b.graph.tensor(a.a).dtype) : given;
  Value low = times(a.a_scope, a.a, c.plan.lora.dropout ? dropout(c, x) : x);
  Value high = times(a.b_scope, a.b, std::move(low));
  Value change = mul_scalar(std::move(high));
  if (l.stored) {
    if (casts) change = to(std::move(change), t);
    return add(std::move(result), change);
  }
  result = add(std::move(result), std::move(change));
  return to(std::move(result), t);
}

/// transformers 5.17 distributed/tensor_parallel.py, ColwiseParallel and RowwiseParallel. Without gradients a linear
/// works on this rank's tensors and results are summed in place, before the bias; with them DTensor redistributes,
/// which gives results of their own, and each rank's product has its part of the bias.
/// The wrapper around a module's forward holds the module's arguments until it returns.
inline Value sharded(Context& c, const Linear& l, Value arg) {
  using namespace eager;
  const int ranks = c.sharding->ranks;
  const bool trains = c.b.grad_enabled();
  const Value given = std::move(arg), weight(c.b, l.weight);
  Value bias = l.bias == none ? Value() : Value(c.b, l.bias);
  if (splits_outputs(l.style)) {
    const Value x = trains ? sum_gradient(given, ranks) : given;
    Value y = linear(x, weight, std::move(bias));
    return l.style == ShardStyle::colwise ? y : gather_of_ranks(std::move(y), ranks);
  }
  const Value x = l.style == ShardStyle::rowwise_split_input ? split_to_ranks(given, ranks) : given;
  if (trains) {
    Value part = bias ? div_scalar(std::move(bias)) : Value();
    Value y = linear(x, weight, std::move(part));
    return sum_of_ranks(std::move(y), ranks);
  }
  Value y = all_reduce_(linear(x, weight, Value()), ranks);
  return bias ? add(y, std::move(bias)) : y;
}

inline Value forward(Context& c, const Linear& l, Value arg) {
  InScope in(c.b, l.scope);
  if (l.style != ShardStyle::whole) return sharded(c, l, std::move(arg));
  return l.adapter == none ? base_layer(c, l, std::move(arg)) : adapted(c, l, std::move(arg));
}

}  // namespace vlmest
