// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/family/nemotron_h_vl/mamba2_config.hpp>
#include <vlmest/family/nemotron_h_vl/ssd.hpp>
#include <vlmest/nn/causal_conv.hpp>
#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/linear.hpp>

/// A layer of Mamba-2 (arXiv:2405.21060) with a short causal convolution and a gated norm by groups. transformers 5.17
/// models/nemotron_h, class NemotronHMamba2Mixer.
namespace vlmest {

struct Mamba2 {
  const Mamba2Config* config = nullptr;
  ScopeId scope = 0, norm_scope = 0;
  CausalConv conv;
  Linear in, out;
  TensorId dt_bias = none, a_log = none, norm = none, d = none;
};

/// In the order of NemotronHMamba2Mixer.__init__.
inline Mamba2 make_mamba2(Context& c, const Mamba2Config& g) {
  Mamba2 m{.config = &g, .scope = c.b.scope()};
  m.conv = make_causal_conv(c, "conv1d", g.channels(), g.taps, g.conv_bias, g.activation);
  m.in = make_linear(c, "in_proj", g.hidden, g.projected(), g.bias);
  m.dt_bias = parameter(c, "dt_bias", {g.heads});
  m.a_log = parameter(c, "A_log", {g.heads});
  {
    const Module norm(c, "norm");
    m.norm_scope = norm.scope;
    m.norm = parameter(c, "weight", {g.inner()});
  }
  m.d = parameter(c, "D", {g.heads});
  m.out = make_linear(c, "out_proj", g.inner(), g.hidden, g.bias);
  return m;
}

/// transformers 5.17 models/zamba2/modeling_zamba2.py, Zamba2RMSNormGated.forward: the caller's argument and the gate
/// live through it.
inline Value group_norm(Context& c, const Mamba2& m, Value arg, const Value& gate) {
  using namespace eager;
  const Value given = std::move(arg);
  InScope in(c.b, m.norm_scope);
  const Mamba2Config& g = *m.config;
  Value x = to(given, DType::fp32);
  {
    Value opening = unary(functions::silu, to(gate, DType::fp32));
    x = mul(x, std::move(opening));
  }
  Value groups = view(x, {x.size(0), x.size(1), g.groups, g.inner() / g.groups});
  const Value variance = mean(pow_scalar(groups), -1, true);
  {
    Value scale = rsqrt(add_scalar(variance));
    groups = mul(groups, std::move(scale));
  }
  x = view(groups, {x.size(0), x.size(1), g.inner()});
  return mul(Value(c.b, m.norm), to(x, given.dtype()));
}

/// Throws Error for what runs this layer in a way that nothing here describes.
inline void refuse_fused_mamba2(const Context& c) {
  if (!c.stack().writes_out_linear_attention)
    throw Error("plan.runtime", "kernels that fuse a Mamba-2 layer are not modelled",
                "leave plan.runtime out: transformers runs it by its own ops");
  refuse_part(c, "states along the sequence");
}

/// NemotronHMamba2Mixer.forward of x[B, S, hidden].
inline Value forward(Context& c, const Mamba2& m, Value arg, CacheLayer& cache) {
  using namespace eager;
  refuse_fused_mamba2(c);
  const Value given = std::move(arg);
  InScope in(c.b, m.scope);
  const Mamba2Config& g = *m.config;
  const std::int64_t batch = given.size(0), tokens = given.size(1);
  const bool step = !cache.off && has_states(cache);
  if (step && tokens != 1)
    throw Error("decode", "several tokens over the states of Mamba-2 are not modelled", "decode one token");
  const Value projected = forward(c, m.in, given);
  SsdInputs ssd;
  ssd.a = neg(unary(functions::exp, to(Value(c.b, m.a_log), DType::fp32)));
  std::vector<Value> parts = split(projected, std::array{g.inner(), g.channels(), g.heads}, -1);
  const Value gate = std::move(parts[0]);
  Value mixed = transpose(std::move(parts[1]), 1, 2);
  ssd.dt = std::move(parts[2]);
  parts.clear();
  mixed = causal_conv(c, m.conv, std::move(mixed), cache);
  mixed = transpose(mixed, 1, 2);
  parts = split(mixed, std::array{g.inner(), g.grouped(), g.grouped()}, -1);
  ssd.d = Value(c.b, m.d);
  ssd.dt_bias = Value(c.b, m.dt_bias);
  Value y;
  SsdOutput scanned;  // the pair is the function's variable, as its parts are
  if (step) {
    ssd.x = view(parts[0], {batch, g.heads, g.head_dim});
    ssd.b = view(parts[1], {batch, g.groups, g.state});
    ssd.c = view(parts[2], {batch, g.groups, g.state});
    ssd.dt = expand(transpose(ssd.dt, 1, 2), {batch, g.heads, g.head_dim});
    ssd.a = expand(unsqueeze(unsqueeze(ssd.a, 1), 2), {-1, g.head_dim, g.state});
    ssd.d = expand(unsqueeze(ssd.d, 1), {-1, g.head_dim});
    ssd.dt_bias = expand(unsqueeze(ssd.dt_bias, 1), {-1, g.head_dim});
    y = view(state_step(ssd, cache.recurrent_state), {batch, 1, g.inner()});
  } else {
    ssd.x = view(parts[0], {batch, tokens, g.heads, g.head_dim});
    ssd.b = view(parts[1], {batch, tokens, g.groups, g.state});
    ssd.c = view(parts[2], {batch, tokens, g.groups, g.state});
    scanned = chunk_scan(ssd, g.chunk, !cache.off);
    if (!cache.off) update_recurrent_state(c, cache, scanned.state);
    y = view(scanned.out, {batch, tokens, g.inner()});
  }
  if (!cache.off) cache.seen += tokens;
  y = group_norm(c, m, y, gate);
  return forward(c, m.out, to(y, given.dtype()));
}

}  // namespace vlmest
