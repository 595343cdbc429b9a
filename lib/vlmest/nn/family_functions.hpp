// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/family/feature_calls.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/plan/kernel_packages.hpp>
#include <vlmest/unit/required.hpp>

/// What a model family is asked, and what it answers with.
namespace vlmest {

struct LlamaConfig;

/// Whose input the frames of a video are: nobody's, rows of pixel_values as a picture's tiles are, or an input of their
/// own, pixel_values_videos, over which the tower is called once more.
enum class VideoPixels : std::uint8_t { refused, tiles, own };

/// What a family is asked beside its graph. Each says so itself, as an overload `traits(config)`.
struct FamilyTraits {
  Required<FeatureCall> features;  ///< how its forward gets features of pixels
  bool plain_head = true;  ///< hidden states -> lm_head -> logits, with nothing behind: another loss can take its place
  bool bare_projections = false;  ///< attention's linear modules are called q, k, v and o, without _proj
  bool encoder_decoder = false;   ///< the sequence is an encoder's; a decoder writes another one
  std::int64_t frames = 2;        ///< copies of a still picture that fill the tower's temporal patch
  VideoPixels videos = VideoPixels::refused;
  bool all_logits = false;             ///< its forward computes those of every position, whatever is asked for
  bool audio_tower = false;            ///< modules of its own run over sound, and can be frozen
  std::string_view no_videos = {};     ///< why it takes none, where its processor does
  std::string_view no_audio = {};      ///< why it takes no sound, where its processor does
  std::string_view videos_alone = {};  ///< why a prompt with a video has no pictures, where it may not
  std::int64_t instruction = 0;        ///< most tokens that what makes image features reads of the text; 0: none
  std::string_view note = {};          ///< what an estimate assumes of the run that others of this model do not
  /// Tokens of a canvas, over which a decode step runs again and again until they join the cache; 0: a step adds one.
  std::int64_t canvas = 0;
  std::int64_t denoising_steps = 0;  ///< the most that generate() takes on a canvas where nothing else is said
  KernelPackages packages = {};      ///< those whose kernels can run parts of its language model
};

/// What a family's make_inputs made, the part of it that every model takes, and what a loss is computed against: a
/// member `labels`, where the inputs have one, else the text's ids.
struct FamilyInputs {
  std::shared_ptr<void> own;
  const TextInputs* text = nullptr;
  const Value* labels = nullptr;
};

/// A family's functions over its config, its modules and its inputs, whose types are left out.
struct FamilyFunctions {
  bool takes_images;
  std::shared_ptr<void> (*copy)(const void* config);
  FamilyTraits (*traits)(const void* config);
  std::shared_ptr<void> (*make_model)(Context&, const void* config);
  FamilyInputs (*make_inputs)(Context&, const void* config, const Sequences&);
  Cache (*make_cache)(const void* config);
  Value (*prefill)(Context&, const void* model, void* inputs, const Sequences&, Cache&);
  Value (*decode)(Context&, const void* model, const TextInputs&, Cache&);
  LlamaConfig* (*llama)(void* config);
};

}  // namespace vlmest
