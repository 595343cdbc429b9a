// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/decoder/mllama.hpp>
#include <vlmest/nn/decoder/opt.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/image_processor/text_only.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/sequence.hpp>

/// Language models alone, as transformers' …ForCausalLM classes run them: the decoder as `model`, beside it the output
/// head. They have no tower, thus no member `vision`, and take no images.
namespace vlmest {

/// What a class does to its logits before it returns them or computes its loss.
enum class LogitStep : std::uint8_t {
  as_is,
  widen,    ///< to fp32 (modeling_mllama.py, MllamaForCausalLM.forward)
  scale,    ///< times logit_scale (modeling_cohere.py, CohereForCausalLM.forward)
  divide,   ///< by logits_scaling (modeling_granite.py, GraniteForCausalLM.forward)
  softcap,  ///< final_logit_softcapping: divided, through tanh, multiplied (modeling_gemma2.py,
            ///< Gemma2ForCausalLM.forward)
};

template <class Text>
struct CausalLm {
  Text language;
  bool tied = false;
  LogitStep logits = LogitStep::as_is;
};
template <class Text>
constexpr FamilyTraits traits(const CausalLm<Text>& g) {
  return {.features = feature_calls::no_images, .plain_head = g.logits == LogitStep::as_is};
}

using CausalLmFamily = CausalLm<DecoderConfig>;
using OptLmFamily = CausalLm<OptConfig>;
using MllamaTextFamily = CausalLm<MllamaText>;

inline std::int64_t vocabulary(const MllamaText& g) { return g.base.vocab; }
inline std::int64_t width(const MllamaText& g) { return g.base.hidden; }

/// The decoder's modules below `model`.
template <class Text>
auto make_language(Context& c, const Text& g) {
  return make_decoder(c, g);
}
/// modeling_opt.py, OPTModel.__init__.
inline OptDecoder make_language(Context& c, const OptConfig& g) {
  Module d(c, "decoder");
  return make_decoder(c, g);
}

template <class Text>
struct CausalLmModel {
  using Language = decltype(make_language(std::declval<Context&>(), std::declval<const Text&>()));

  const CausalLm<Text>* config = nullptr;
  ScopeId model = 0;
  Language language;
  Linear head;
};

/// In the order of …ForCausalLM.__init__.
template <class Text>
CausalLmModel<Text> make_model(Context& c, const CausalLm<Text>& g) {
  CausalLmModel<Text> r{.config = &g};
  {
    Module m(c, "model", Part::language);
    r.model = m.scope;
    r.language = make_language(c, g.language);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

struct CausalLmInputs {
  TextInputs text;
};

/// Throws Error for images.
template <class Text>
CausalLmInputs make_inputs(Context& c, const CausalLm<Text>&, const Sequences& s) {
  if (!s.images.empty()) image_processor::layout(image_processor::TextOnly{}, s.image);
  return {make_text_inputs(c, s.batch, s.seq, s.seq)};
}

/// …Model.forward: token ids[B, S] -> normed hidden states.
template <class Text>
Value last_hidden_state(Context& c, const CausalLmModel<Text>& m, const TextInputs& in, Cache& cache) {
  InScope scope(c.b, m.model);
  Value embeds = embed(c, m.language, in.ids);
  return forward(c, m.language, std::move(embeds), in.mask, cache);
}
/// modeling_mllama.py, MllamaTextModel.forward without pictures: the cross-attention layers are left out.
inline Value last_hidden_state(Context& c, const CausalLmModel<MllamaText>& m, const TextInputs& in, Cache& cache) {
  InScope scope(c.b, m.model);
  return forward(c, m.language, in.ids, in.mask, CrossInputs{}, cache);
}

inline Value finish_logits(LogitStep step, Value arg) {
  using namespace eager;
  Value logits = std::move(arg);
  switch (step) {
    case LogitStep::as_is: break;
    case LogitStep::widen: logits = to(logits, DType::fp32); break;
    case LogitStep::scale: logits = mul_scalar(logits); break;
    case LogitStep::divide: logits = div_scalar(logits); break;
    case LogitStep::softcap:
      logits = div_scalar(logits);
      logits = unary(functions::tanh, logits);
      logits = mul_scalar(logits);
      break;
  }
  return logits;
}

/// …ForCausalLM.forward over a fresh cache. Throws Error for the chunked loss, which has no logits, where the class
/// changes them.
template <class Text>
Value prefill(Context& c, const CausalLmModel<Text>& m, const CausalLmInputs& in, const Sequences&, Cache& cache) {
  const LogitStep step = m.config->logits;
  const bool values_stay = step == LogitStep::as_is || step == LogitStep::widen;
  if (c.labels && !values_stay && loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out what this model does to its logits",
                "give plan.loss=unfused or fused");
  const Value hidden = last_hidden_state(c, m, in.text, cache);
  return head_output(c, m.head, hidden, [step](Value logits) { return finish_logits(step, std::move(logits)); });
}

/// One token over the cache.
template <class Text>
Value decode(Context& c, const CausalLmModel<Text>& m, const TextInputs& in, Cache& cache) {
  const Value hidden = last_hidden_state(c, m, in, cache);
  return finish_logits(m.config->logits, forward(c, m.head, kept_positions(hidden, Logits::last)));
}

}  // namespace vlmest
