// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <variant>

#include <vlmest/nn/decoder/aria_text.hpp>
#include <vlmest/nn/decoder/cohere.hpp>
#include <vlmest/nn/decoder/deepseek.hpp>
#include <vlmest/nn/decoder/exaone4.hpp>
#include <vlmest/nn/decoder/gemma.hpp>
#include <vlmest/nn/decoder/glm.hpp>
#include <vlmest/nn/decoder/gpt_oss.hpp>
#include <vlmest/nn/decoder/internlm2.hpp>
#include <vlmest/nn/decoder/lfm2.hpp>
#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/decoder/llama4.hpp>
#include <vlmest/nn/decoder/qwen_moe.hpp>
#include <vlmest/nn/divided_sequence.hpp>

namespace vlmest {

/// Entries of the vocabulary, and the width of the hidden states, of a language model's config.
template <class Config>
std::int64_t vocabulary(const Config& g) {
  return g.vocab;
}
template <class Config>
std::int64_t width(const Config& g) {
  return g.hidden;
}

/// Every language model that is called with embeddings, a mask and a cache alone. A new one is a header with a config,
/// make_decoder, make_cache, embed and forward, and one word in each list.
using DecoderConfig =
    std::variant<LlamaConfig, GemmaConfig, CohereConfig, GlmConfig, QwenMoeConfig, GptOssConfig, InternLm2Config,
                 DeepseekConfig, Lfm2Config, Exaone4Config, Llama4Config, AriaTextConfig>;
using Decoder =
    std::variant<LlamaDecoder, GemmaDecoder, CohereDecoder, GlmDecoder, QwenMoeDecoder, GptOssDecoder, InternLm2Decoder,
                 DeepseekDecoder, Lfm2Decoder, Exaone4Decoder, Llama4Decoder, AriaTextDecoder>;

inline Decoder make_decoder(Context& c, const DecoderConfig& g) {
  return std::visit([&](const auto& v) -> Decoder { return make_decoder(c, v); }, g);
}
inline Cache make_cache(const DecoderConfig& g) {
  return std::visit([](const auto& v) { return make_cache(v); }, g);
}
inline Value embed(Context& c, const Decoder& d, const Value& input_ids) {
  return std::visit([&](const auto& v) { return embed(c, v, input_ids); }, d);
}
inline Value forward(Context& c, const Decoder& d, Value embeds, const Value& attention_mask, Cache& cache) {
  return std::visit(
      [&](const auto& v) {
        LanguageInputs own = own_part(c, v.scope, std::move(embeds), {}, attention_mask);
        return forward(c, v, std::move(own.embeds), own.mask, cache);
      },
      d);
}
/// A template, so that a decoder without such an overload of its own does not become a DecoderConfig for this one.
template <std::same_as<DecoderConfig> Any>
KernelPackages kernel_packages(const Any& g) {
  return std::visit([](const auto& v) { return packages_of(v); }, g);
}
inline std::int64_t vocabulary(const DecoderConfig& g) {
  return std::visit([](const auto& v) { return vocabulary(v); }, g);
}
inline std::int64_t width(const DecoderConfig& g) {
  return std::visit([](const auto& v) { return width(v); }, g);
}

}  // namespace vlmest
