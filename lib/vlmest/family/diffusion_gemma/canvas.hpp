// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// What generate() does with the logits of a canvas (transformers 5.17 models/diffusion_gemma,
/// generation_diffusion_gemma.py, EntropyBoundSampler and StableAndConfidentStoppingCriteria, the sampler and the
/// criterion that it has by default). It takes more memory than the model itself: most of it works on fp32 copies of
/// all logits.
namespace vlmest {

/// torch.distributions.Categorical over logits, the properties that are computed when they are first asked for.
struct Categorical {
  Value logits, probs;
};

/// Categorical.__init__(logits=…): normalised, and held to be real (Distribution.__init__ validates its arguments).
inline Categorical categorical(const Value& scores) {
  using namespace eager;
  Categorical d;
  d.logits = sub(scores, logsumexp(scores));
  Value valid = compare("eq.Tensor", d.logits, d.logits);
  valid = all_of(valid, -1);
  item(is_all_true(valid));
  return d;
}

/// Categorical.entropy, [B, canvas].
inline Value entropy(Categorical& d) {
  using namespace eager;
  const Value logits = clamp(d.logits, ClampedAt::min);
  d.probs = softmax(d.logits);
  const Value p_log_p = mul(logits, d.probs);
  return neg(sum(p_log_p, -1, false));
}

/// Variables that EntropyBoundSampler and the stopping criterion keep from step to step.
struct SamplerStates {
  Value accepted;  ///< accepted_token_mask, bool[B, canvas]
  Value history;   ///< argmax_canvas_history, int64[1, B, canvas]
};

inline Value random_canvas(Builder& b, std::int64_t batch, std::int64_t canvas) {
  return eager::fill(b, "randint.low", {batch, canvas}, DType::int64);
}

/// EntropyBoundSampler.accept_canvas: the tokens of lowest entropy, as many as the bound allows.
inline Value accept_canvas(SamplerStates& s, const Value& canvas, const Value& drawn, const Value& logits) {
  using namespace eager;
  Categorical dist = categorical(logits);
  const Value token_entropy = entropy(dist);
  const Ranked sorted = sort_rows(token_entropy);
  const Value cumulative = cumsum(sorted.values, DType::fp32);
  const Value selected = compare_scalar("le.Scalar", sub(cumulative, sorted.values));
  s.accepted = scatter(zeros_like(selected), sorted.indices, selected);
  return where(s.accepted, drawn, canvas);
}

/// EntropyBoundSampler.renoise_canvas: random tokens in the place of those that were not accepted.
inline Value renoise_canvas(const SamplerStates& s, const Value& accepted) {
  using namespace eager;
  const Value renoised = pointwise("bitwise_not", DType::boolean, s.accepted);
  const Value random = random_canvas(accepted.builder(), accepted.size(0), accepted.size(1));
  return where(renoised, random, accepted);
}

/// StableAndConfidentStoppingCriteria.__call__ with stability_threshold 1: which sequences are done, bool[B].
inline Value is_stable_and_confident(SamplerStates& s, const Value& best, const Value& logits) {
  using namespace eager;
  Value stable = compare("eq.Tensor", s.history, unsqueeze(best, 0));
  stable = all_of(std::move(stable), -1);
  stable = all_of(std::move(stable), 0);
  s.history = pointwise("roll", DType::int64, s.history);
  copy_over(select(s.history, 0, 0), best);
  Categorical dist = categorical(logits);
  const Value token_entropy = entropy(dist);
  const Value confident = compare_scalar("lt.Scalar", mean(token_entropy, -1, false));
  return pointwise("bitwise_and.Tensor", DType::boolean, stable, confident);
}

/// What a denoising step leaves to the next one.
struct Denoised {
  Value canvas, best, logits, finished;
};

/// LinearTemperatureScheduleLogitsProcessor.__call__: the temperature is a tensor, since the step's number is one.
inline Value heated(const Value& logits, const Value& step) {
  using namespace eager;
  Value fraction = pointwise("div.Tensor", DType::fp32, step);
  Value temperature = mul_scalar(std::move(fraction));
  temperature = add_scalar(std::move(temperature));
  return pointwise("div.Tensor", logits.dtype(), logits, std::move(temperature));
}

/// DiffusionGemmaGenerationMixin._denoising_step behind the model, where no sequence is finished: raw[B, canvas, vocab]
/// are the model's logits, which its output holds to the end.
inline Denoised sample_canvas(SamplerStates& s, const Value& raw, const Value& step, const Value& canvas,
                              Value finished, DType embeddings) {
  using namespace eager;
  const std::int64_t batch = canvas.size(0), tokens = canvas.size(1);
  const Value processed = heated(raw, step);
  const Value probs = softmax(processed, DType::fp32);
  Value drawn = multinomial(view(probs, {checked_mul(batch, tokens), probs.size(-1)}));
  drawn = view(std::move(drawn), {batch, tokens});
  Denoised r;
  r.best = argmax(processed);
  Value accepted = accept_canvas(s, canvas, drawn, processed);
  accepted = clone(accepted);
  r.canvas = renoise_canvas(s, accepted);
  r.canvas = clone(r.canvas);
  item(reduce("any", DType::boolean, Shape{}, finished));
  r.finished = pointwise_("bitwise_or_.Tensor", std::move(finished), is_stable_and_confident(s, r.best, processed));
  r.logits = to(processed, embeddings);
  return r;
}

}  // namespace vlmest
