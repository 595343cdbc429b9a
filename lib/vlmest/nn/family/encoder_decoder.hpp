// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/loss.hpp>

/// What models with an encoder and a decoder share.
namespace vlmest {

/// Throws Error for choices under which such a language model, called `name`, is not modelled.
inline void refuse_for_encoder_decoder(const Context& c, const std::string& name) {
  if (c.plan.weights.value_or(c.dtype()) != c.dtype() || c.quantization)
    throw Error("plan.weights", "quantised weights of " + name + " are not modelled",
                "use plan.dtype=bf16, fp16 or fp32");
  if (c.plan.kv.kind != KvLayout::Kind::dense || c.plan.kv.dtype.value_or(c.dtype()) != c.dtype())
    throw Error("plan.kv", "the cache of an encoder-decoder model is modelled dense and in the activations' type alone",
                "leave plan.kv out");
  if (c.input_gradients)
    throw Error("plan.input_gradients", "gradients of " + name + "'s input embeddings are not modelled",
                "give plan.input_gradients=off");
  if (loss_kind(c) != Loss::unfused)
    throw Error("plan.loss", name + " computes its loss itself: transformers knows no fused one for it",
                "use plan.loss=unfused");
}

/// modeling_t5.py, T5PreTrainedModel._shift_right; modeling_florence2.py, shift_tokens_right.
inline Value shift_right(const Value& labels) {
  using namespace eager;
  const std::int64_t tokens = labels.size(1);
  Value shifted = fill(labels.builder(), "new_zeros", labels.shape(), DType::int64);
  {
    Value rest = clone_contiguous(slice(labels, 1, 0, tokens - 1));
    copy_(slice(shifted, 1, 1, tokens), rest);
  }
  fill_(select(shifted, 1, 0));
  Value hidden = compare_scalar("eq.Scalar", shifted);
  return masked_fill_(shifted, std::move(hidden));
}

}  // namespace vlmest
