// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <variant>
#include <vector>

#include <vlmest/nn/tokens/aya_vision.hpp>
#include <vlmest/nn/tokens/blip2.hpp>
#include <vlmest/nn/tokens/cohere2_vision.hpp>
#include <vlmest/nn/tokens/gemma3.hpp>
#include <vlmest/nn/tokens/gemma4.hpp>
#include <vlmest/nn/tokens/glm4v.hpp>
#include <vlmest/nn/tokens/idefics3.hpp>
#include <vlmest/nn/tokens/image.hpp>
#include <vlmest/nn/tokens/internvl.hpp>
#include <vlmest/nn/tokens/lighton_ocr.hpp>
#include <vlmest/nn/tokens/llava.hpp>
#include <vlmest/nn/tokens/llava_next.hpp>
#include <vlmest/nn/tokens/llava_onevision.hpp>
#include <vlmest/nn/tokens/mistral3.hpp>
#include <vlmest/nn/tokens/mllama.hpp>
#include <vlmest/nn/tokens/paligemma.hpp>
#include <vlmest/nn/tokens/pixtral.hpp>
#include <vlmest/nn/tokens/qwen2_5_vl.hpp>
#include <vlmest/nn/tokens/qwen2_vl.hpp>
#include <vlmest/nn/tokens/qwen3_vl.hpp>
#include <vlmest/nn/tokens/text_only.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest {

/// How a model family turns pixels into tokens. A further family is one more header and one more alternative.
using TokenRule =
    std::variant<tokens::Llava, tokens::LlavaNext, tokens::LlavaOnevision, tokens::Pixtral, tokens::Mistral3,
                 tokens::LightOnOcr, tokens::Qwen2Vl, tokens::Qwen2_5Vl, tokens::Qwen3Vl, tokens::Glm4v,
                 tokens::InternVl, tokens::AyaVision, tokens::Cohere2Vision, tokens::PaliGemma, tokens::Gemma3,
                 tokens::Gemma4, tokens::Idefics3, tokens::Mllama, tokens::Blip2, tokens::TextOnly>;

/// The layout of one picture, alone in its prompt. Throws Error for sizes or parameters that the processor refuses.
inline ImageLayout layout(const TokenRule& rule, ImageSize image) {
  return std::visit([image](const auto& r) { return tokens::layout(r, image); }, rule);
}

/// The layouts of all pictures of one prompt, in order.
inline std::vector<ImageLayout> layouts(const TokenRule& rule, std::span<const ImageSize> images) {
  const auto* ov = std::get_if<tokens::LlavaOnevision>(&rule);
  const bool untiled = ov != nullptr && !ov->tile_several && images.size() > 1;
  std::vector<ImageLayout> r;
  r.reserve(images.size());
  for (const auto s : images) r.push_back(untiled ? tokens::untiled_layout(*ov, s) : layout(rule, s));
  return r;
}

/// Sums over the pictures of one prompt.
struct PromptTokens {
  std::int64_t images = 0;
  std::int64_t tiles = 0;         ///< batch entries of the vision tower
  std::int64_t tower_tokens = 0;  ///< over all tiles
  std::int64_t llm_tokens = 0;
  std::int64_t text_overhead = 0;
  std::int64_t cross_tokens = 0;
  constexpr bool operator==(const PromptTokens&) const = default;
};

constexpr PromptTokens sum(std::span<const ImageLayout> images) {
  PromptTokens t;
  for (const auto& l : images) {
    ++t.images;
    t.tiles = checked_add(t.tiles, l.tiles);
    t.tower_tokens = checked_add(t.tower_tokens, checked_mul(l.tiles, l.tower_tokens));
    t.llm_tokens = checked_add(t.llm_tokens, l.llm_tokens);
    t.text_overhead = checked_add(t.text_overhead, l.text_overhead);
    t.cross_tokens = checked_add(t.cross_tokens, l.cross_tokens);
  }
  return t;
}

}  // namespace vlmest
