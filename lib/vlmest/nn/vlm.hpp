// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/audio/processor.hpp>
#include <vlmest/nn/block_config.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/kv_layout.hpp>
#include <vlmest/nn/quantization/quantization.hpp>
#include <vlmest/nn/stack/traits.hpp>

namespace vlmest {

/// What transformers' config class of the language model decides beside its sizes.
struct TextClass {
  std::string type;          ///< its model_type
  bool tied = false;         ///< its own tie_word_embeddings
  bool causal_lm = false;    ///< it is run alone
  bool remote_code = false;  ///< the model's classes are not transformers' own
};

/// A vision-language model, or a language model alone: what it is called, how it is put together, how it turns pixels
/// into tokens.
struct Vlm {
  std::string name;
  std::string type;  ///< the model_type of its config.json
  TextClass text;
  Family family;
  ImageProcessor image_processor;
  AudioProcessor audio;                      ///< how its processor takes sound, where it takes any
  ImageSize native;                          ///< the image size that is meant where none is given
  std::vector<BlockConfig> blocks;           ///< what a description adds (nn/block.hpp)
  std::optional<KvLayout> kv;                ///< how a description keeps keys and values
  std::optional<std::int64_t> positions;     ///< max_position_embeddings of its language model, where config.json says
  std::optional<DType> dtype;                ///< of its config.json: the default type of weights and activations
  std::optional<Quantization> quantization;  ///< of its config.json: how it stores its weights
  std::vector<std::string> unread_keys;      ///< of its config.json: those of which nothing here knows what they do
};

/// Whether a model has a vision tower; others take no images.
inline bool takes_images(const Vlm& v) { return v.family.takes_images(); }
inline bool takes_audio(const Vlm& v) { return static_cast<bool>(v.audio); }

/// The storage that a run keeps: the checkpoint's, unless the plan names another, or transformers makes wide weights of
/// it on that GPU. Throws Error where it is not known.
inline const Quantization* quantization_of(const Vlm& vlm, const Plan& plan, const StackTraits& stack, const Gpu& gpu) {
  if (!vlm.quantization || plan.weights) return nullptr;
  if (vlm.quantization->refused) throw *vlm.quantization->refused;
  if (stack.transformers_quantizers && gpu.sm < vlm.quantization->dequantised_below) return nullptr;
  return &*vlm.quantization;
}

}  // namespace vlmest
