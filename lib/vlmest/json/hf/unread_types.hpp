// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace vlmest::json::hf {

/// A model_type that people have files of and no reader reads: the type that is nearest to it, and what it has that
/// nothing models.
struct UnreadType {
  std::string_view type, nearest, missing;
};

/// Of transformers 5.17 (models/*/configuration_*.py), and of checkpoints that bring code of their own (their config
/// and modeling files on Hugging Face).
inline constexpr std::array unread_types{
    UnreadType{"chameleon", "janus", "pictures that a VQ encoder turns into tokens"},
    UnreadType{"cosmos3_edge", "lfm2_vl", "a language model whose MLPs square what ReLU leaves"},
    UnreadType{"emu3", "janus", "pictures that a VQ encoder turns into tokens"},
    UnreadType{"fuyu", "gemma4_unified", "the language model Persimmon"},
    UnreadType{"idefics", "mllama", "gated cross-attention to the latents of a perceiver"},
    UnreadType{"inkling_mm_model", "gemma4_unified", "logits of relative positions and short convolutions"},
    UnreadType{"kimi_k3", "kimi_k25", "Kimi Linear's attention (KDA) and its latent experts"},
    UnreadType{"locateanything", "kimi_vl", "the tower MoonViT in front of Qwen2"},
    UnreadType{"minicpmo", "minicpmv", "sound beside the pictures, and speech"},
    UnreadType{"molmo", "molmo2", "a tower of CLIP with a class token, and another text of its own"},
    UnreadType{"moondream3", "moondream1", "a language model of experts"},
    UnreadType{"ovis2_5", "ovis2", "a tower that takes pictures at their own sizes"},
    UnreadType{"phi4-siglip", "phi4_multimodal", "the tower SigLIP 2 in front of Phi-4"},
    UnreadType{"pi0", "paligemma", "an expert of actions that runs in steps of a flow"},
    UnreadType{"step3_vl", "step3p7", "attention whose queries are factorized (MFA)"},
    UnreadType{"t5gemma2", "gemma3", "an encoder, and a decoder that attends to both at once"},
    UnreadType{"vision-encoder-decoder", "florence2", "towers of Swin, ViT and BEiT that a text decoder attends to"},
};

/// The row of `type`; null: there is none.
inline const UnreadType* find_unread(std::string_view type) {
  const auto* at = std::find_if(unread_types.begin(), unread_types.end(),
                                [&](const UnreadType& t) { return !type.empty() && t.type == type; });
  return at == unread_types.end() ? nullptr : at;
}

}  // namespace vlmest::json::hf
