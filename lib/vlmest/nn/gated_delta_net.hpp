// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <vlmest/nn/causal_conv.hpp>
#include <vlmest/nn/delta_rule.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// A layer of linear attention: Gated DeltaNet (arXiv:2412.06464) with a short causal convolution over queries, keys
/// and values and a gated norm behind it. transformers 5.17 models/qwen3_5, class Qwen3_5GatedDeltaNet.
struct DeltaNetConfig {
  std::int64_t hidden = 4096;
  std::int64_t key_heads = 16;
  std::int64_t value_heads = 32;  ///< a multiple of the key heads, each of which is repeated
  std::int64_t key_dim = 128;     ///< channels of a head
  std::int64_t value_dim = 128;
  std::int64_t taps = 4;  ///< linear_conv_kernel_dim
  Activation activation = Activation::silu;

  std::int64_t keys() const { return checked_mul(key_heads, key_dim); }
  std::int64_t values() const { return checked_mul(value_heads, value_dim); }
  /// Channels of the convolution: queries, keys and values.
  std::int64_t channels() const { return checked_add(checked_mul(keys(), 2), values()); }
};

struct DeltaNet {
  const DeltaNetConfig* config = nullptr;
  ScopeId scope = 0, norm_scope = 0;
  CausalConv conv;
  TensorId dt_bias = none, a_log = none, norm = none;
  Linear out, qkv, z, b, a;

  /// The parameter that was declared first.
  TensorId first() const { return conv.weight; }
};

/// In the order of Qwen3_5GatedDeltaNet.__init__.
inline DeltaNet make_delta_net(Context& c, const DeltaNetConfig& g) {
  Module m(c, "linear_attn");
  DeltaNet r{.config = &g, .scope = m.scope};
  r.conv = make_causal_conv(c, "conv1d", g.channels(), g.taps, false, g.activation);
  r.dt_bias = parameter(c, "dt_bias", {g.value_heads});
  r.a_log = parameter(c, "A_log", {g.value_heads});
  {
    Module norm(c, "norm");
    r.norm_scope = norm.scope;
    r.norm = parameter(c, "weight", {g.value_dim});
  }
  r.out = make_linear(c, "out_proj", g.values(), g.hidden, false);
  r.qkv = make_linear(c, "in_proj_qkv", g.hidden, g.channels(), false);
  r.z = make_linear(c, "in_proj_z", g.hidden, g.values(), false);
  r.b = make_linear(c, "in_proj_b", g.hidden, g.value_heads, false);
  r.a = make_linear(c, "in_proj_a", g.hidden, g.value_heads, false);
  return r;
}

/// modeling_qwen3_5.py, Qwen3_5RMSNormGated.forward: rows of a head's channels, in the rows' type again.
inline Value gated_norm(Context& c, const DeltaNet& m, Value arg, const Value& gate) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.norm_scope);
  const DType t = x.dtype();
  x = to(x, DType::fp32);
  const Value variance = mean(pow_scalar(x), -1, true);
  Value scale = rsqrt(add_scalar(variance));
  x = mul(x, std::move(scale));
  x = mul(Value(c.b, m.norm), to(x, t));
  Value opening = unary(functions::silu, to(gate, DType::fp32));
  x = mul(x, std::move(opening));
  return to(x, t);
}

/// -exp(A_log) softplus(a + dt_bias): the decay of each head's state, in log space and fp32.
inline Value log_decay(Context& c, const DeltaNet& m, const Value& a) {
  using namespace eager;
  Value rate = neg(unary(functions::exp, to(Value(c.b, m.a_log), DType::fp32)));
  Value step = unary(functions::softplus, add(to(a, DType::fp32), Value(c.b, m.dt_bias)));
  return mul(std::move(rate), std::move(step));
}

/// The rule over the cache's state, or from none: by the package fla where it is installed, else by torch's ops. Throws
/// Error for keys that fla has no kernel for (fla/ops/common/chunk_delta_h.py).
inline DeltaRuleOutput delta_rule(const Context& c, const DeltaRuleInputs& x, const Value& state, bool keeps_state) {
  constexpr std::int64_t widest_keys = 256;
  if (c.plan.packages.fla && x.k.size(3) > widest_keys)
    throw Error("plan.packages", "fla has no kernel for keys of " + std::to_string(x.k.size(3)) + " channels",
                "leave fla out of plan.packages: transformers' own function runs them");
  if (c.plan.packages.fla)
    return state ? eager::fused_recurrent_gated_delta_rule(x, state) : eager::chunk_gated_delta_rule(x, keeps_state);
  return state ? recurrent_delta_rule(x, state) : chunk_delta_rule(x, {}, keeps_state);
}

/// Throws Error for a stack that does not run this layer op by op: its kernels are not described.
inline void refuse_fused_delta_rule(const Context& c) {
  if (!c.stack().writes_out_linear_attention)
    throw Error("plan.runtime", "kernels that fuse a Gated DeltaNet layer are not modelled",
                "leave plan.runtime out: transformers runs it, by its own ops or by those of plan.packages");
}

/// Qwen3_5GatedDeltaNet.forward: x[B, S, hidden]; `padding` is the mask of sequences of several lengths, else empty.
inline Value forward(Context& c, const DeltaNet& m, Value arg, const Value& padding, CacheLayer& cache) {
  using namespace eager;
  refuse_fused_delta_rule(c);
  const DeltaNetConfig& g = *m.config;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  if (padding) x = to(mul(x, unsqueeze(padding, 2)), x.dtype());
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const bool step = !cache.off && has_states(cache);
  if (step && tokens != 1)
    throw Error("decode", "several tokens over the states of linear attention are not modelled", "decode one token");
  Value mixed = transpose(forward(c, m.qkv, x), 1, 2);
  const Value z = view(forward(c, m.z, x), {batch, tokens, -1, g.value_dim});
  const Value b = forward(c, m.b, x), a = forward(c, m.a, x);
  mixed = causal_conv(c, m.conv, std::move(mixed), cache);
  mixed = transpose(mixed, 1, 2);
  DeltaRuleInputs of;
  {
    std::vector<Value> parts = split(mixed, std::array{g.keys(), g.keys(), g.values()}, -1);
    of.q = reshape(parts[0], {batch, tokens, -1, g.key_dim});
    of.k = reshape(parts[1], {batch, tokens, -1, g.key_dim});
    of.v = reshape(parts[2], {batch, tokens, -1, g.value_dim});
  }
  of.beta = unary(functions::sigmoid, b);
  of.decay = log_decay(c, m, a);
  if (const std::int64_t times = g.value_heads / g.key_heads; times > 1) {
    of.q = repeat_interleave(of.q, times, 2);
    of.k = repeat_interleave(of.k, times, 2);
  }
  DeltaRuleOutput y = delta_rule(c, of, step ? cache.recurrent_state : Value(), !cache.off);
  if (!cache.off) {
    update_recurrent_state(c, cache, y.state);
    cache.seen += tokens;
  }
  y.out = reshape(y.out, {-1, g.value_dim});
  const Value gate = reshape(z, {-1, g.value_dim});
  y.out = gated_norm(c, m, y.out, gate);
  y.out = reshape(y.out, {batch, tokens, -1});
  return forward(c, m.out, y.out);
}

}  // namespace vlmest
