// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sharding.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// torch.nn.LayerNorm over the last dimension.
struct LayerNorm {
  ScopeId scope = 0;
  TensorId weight = none;
  TensorId bias = none;
};

inline LayerNorm make_layer_norm(Context& c, const char* name, std::int64_t width) {
  Module m(c, name);
  return {.scope = m.scope, .weight = parameter(c, "weight", {width}), .bias = parameter(c, "bias", {width})};
}

inline Value forward(Context& c, const LayerNorm& n, Value arg) {
  InScope in(c.b, n.scope);
  return eager::layer_norm(std::move(arg), Value(c.b, n.weight), Value(c.b, n.bias));
}

/// Root-mean-square norm with a weight, as transformers' modules write it out.
struct RmsNorm {
  /// llama: the result is cast back, then multiplied by the weight (modeling_llama.py, LlamaRMSNorm.forward).
  /// gemma: multiplied in fp32 by 1 + weight, then cast back (modeling_gemma.py, GemmaRMSNorm.forward).
  /// gpt_oss: multiplied in fp32 by the weight, then cast back (modeling_gpt_oss.py, GptOssRMSNorm.forward). A model
  /// in fp16 keeps these weights in fp32 (GptOssPreTrainedModel, _keep_in_fp32_modules).
  /// t5: what is normed stays in its own type, of which a product with fp32 makes fp32; that is cast to the weight's
  /// where it is a half type (modeling_t5.py, T5LayerNorm.forward).
  /// gemma4: multiplied in fp32 by the weight, where it has one, then cast back, the root taken as a power
  /// (modeling_gemma4.py, Gemma4RMSNorm.forward).
  /// llama4: as llama's, but what is normed in fp32 goes once it is cast, and may have no weight (modeling_llama4.py,
  /// Llama4TextRMSNorm.forward, Llama4TextL2Norm.forward).
  /// molmo2: as llama's, but the product in fp32 goes once it is cast (allenai/molmo2 modeling_molmo2.py,
  /// Molmo2RMSNorm.forward).
  enum class Kind : std::uint8_t { llama, gemma, gpt_oss, t5, gemma4, llama4, molmo2 } kind = Kind::llama;
  ScopeId scope = 0;
  TensorId weight = none;
  bool sums_gradient = false;  ///< of heads that are divided among GPUs: each one's gradient is of its own heads
};

inline RmsNorm make_rms_norm(Context& c, const char* name, std::int64_t width,
                             RmsNorm::Kind kind = RmsNorm::Kind::llama) {
  Module m(c, name);
  const DType t = kind == RmsNorm::Kind::gpt_oss && c.dtype() == DType::fp16 ? DType::fp32 : c.dtype();
  return {.kind = kind,
          .scope = m.scope,
          .weight = c.b.persistent("weight", Role::weight, t, {width}),
          .sums_gradient = shard_style(c) == ShardStyle::replicated_with_grad_allreduce};
}

/// modeling_gemma4.py, Gemma4RMSNorm.__init__ with with_scale=False, and modeling_llama4.py, Llama4TextL2Norm: no
/// weight.
inline RmsNorm make_weightless_norm(Context& c, const char* name, RmsNorm::Kind kind = RmsNorm::Kind::gemma4) {
  return {.kind = kind, .scope = c.b.child(name)};
}

/// modeling_gemma4.py, Gemma4RMSNorm.forward and _norm, whose argument and mean square live until it returns.
inline Value gemma4_norm(const Value& arg, Value weight) {
  using namespace eager;
  Value y;
  {
    const Value x = to(arg, DType::fp32);
    const Value mean_squared = add_scalar(mean(pow_scalar(x), -1, true));
    y = mul(x, pow_scalar(mean_squared));
  }
  if (weight) y = mul(y, to(std::move(weight), DType::fp32));
  return to(y, arg.dtype());
}

/// modeling_llama.py, LlamaRMSNorm.forward: the argument is rebound to its fp32 copy while the caller still holds the
/// original; pow and mean are temporaries.
inline Value forward(Context& c, const RmsNorm& n, Value arg) {
  using namespace eager;
  InScope in(c.b, n.scope);
  Value weight = n.weight == none ? Value() : Value(c.b, n.weight);
  if (n.sums_gradient) weight = sum_gradient_in_place(weight, c.sharding->ranks);
  return stacks::norm(c, Norm::Kind::rms_norm, arg, weight, [&] {
    if (n.kind == RmsNorm::Kind::gemma4) return gemma4_norm(arg, std::move(weight));
    const DType t = arg.dtype();
    if (n.kind == RmsNorm::Kind::t5) {
      Value wide = to(arg, DType::fp32);
      const Value variance = mean(pow_scalar(std::move(wide)), -1, true);
      Value scale = rsqrt(add_scalar(variance));
      Value hidden = mul(arg, std::move(scale));
      if (is_half(weight.dtype())) hidden = to(hidden, weight.dtype());
      return mul(std::move(weight), hidden);
    }
    Value x = to(arg, DType::fp32);
    if (n.kind == RmsNorm::Kind::llama4) {
      Value scale = rsqrt(add_scalar(mean(pow_scalar(x), -1, true)));
      x = mul(x, std::move(scale));
      Value narrow = to(std::move(x), t);
      return weight ? mul(std::move(narrow), std::move(weight)) : narrow;
    }
    if (n.kind == RmsNorm::Kind::gemma) {
      Value scale = rsqrt(add_scalar(mean(pow_scalar(x), -1, true)));
      Value output = mul(std::move(x), std::move(scale));
      Value gain = add_scalar(to(std::move(weight), DType::fp32));
      output = mul(output, std::move(gain));
      return to(output, t);
    }
    Value variance = mean(pow_scalar(x), -1, true);
    Value scale = rsqrt(add_scalar(variance));
    x = mul(x, std::move(scale));
    if (n.kind == RmsNorm::Kind::gpt_oss) return to(mul(std::move(weight), x), t);
    if (n.kind == RmsNorm::Kind::molmo2) x = to(std::move(x), t);
    return mul(std::move(weight), to(x, t));
  });
}

}  // namespace vlmest
