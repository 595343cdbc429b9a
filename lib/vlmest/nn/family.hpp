// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/family/feature_calls.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/plan/kernel_packages.hpp>
#include <vlmest/unit/required.hpp>

/// What the rest of the library knows of a model family: one value, whatever its config is. Only the folders of
/// family/ know the configs themselves.
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

/// The table of a config: functions found by its type where a model with that config is made (nn/family_table.hpp).
/// Compiled once, those of the registry's families stand beside their readers, and a family of a program's own is a
/// specialisation that returns family_table. Never inlined: most who ask want the table's address.
template <class F>
[[gnu::noinline]] const FamilyFunctions& family_functions();

/// The modules of a family in a graph.
class FamilyModel {
 public:
  FamilyModel(const FamilyFunctions& f, std::shared_ptr<void> model) : functions_(&f), model_(std::move(model)) {}

  /// A forward over a fresh cache: the logits, or where the context has labels the loss.
  Value prefill(Context& c, const FamilyInputs& in, const Sequences& s, Cache& cache) const {
    return functions_->prefill(c, model_.get(), in.own.get(), s, cache);
  }
  /// One token over the cache.
  Value decode(Context& c, const TextInputs& in, Cache& cache) const {
    return functions_->decode(c, model_.get(), in, cache);
  }

 private:
  const FamilyFunctions* functions_;
  std::shared_ptr<void> model_;
};

/// How a model is put together: the config of one family, with its functions. Copies share the config until one of
/// them is changed. A new family is a header with a config and make_model, make_inputs, make_cache of its language
/// model, prefill, decode and traits; it is named nowhere else but by its reader (family/registry.hpp).
class Family {
 public:
  Family() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Family>)
      Family(F&& config)  // NOLINT(google-explicit-constructor): a config is a family
      : functions_(&family_functions<std::remove_cvref_t<F>>()),
        config_(std::make_shared<std::remove_cvref_t<F>>(std::forward<F>(config))) {}

  bool takes_images() const { return functions_->takes_images; }
  FamilyTraits traits() const { return functions_->traits(config_.get()); }
  FamilyModel make_model(Context& c) const { return {*functions_, functions_->make_model(c, config_.get())}; }
  FamilyInputs make_inputs(Context& c, const Sequences& s) const {
    return functions_->make_inputs(c, config_.get(), s);
  }
  /// Empty entries of the language model's layers.
  Cache make_cache() const { return functions_->make_cache(config_.get()); }
  /// The language model, to be changed, where it is of Llama's build.
  LlamaConfig* llama() {
    own();
    return functions_->llama(config_.get());
  }

  /// The config, which must be an F: get_if says whether it is.
  template <class F>
  friend const F& get(const Family& f) {
    return *get_if<F>(&f);
  }
  template <class F>
  friend F& get(Family& f) {
    return *get_if<F>(&f);
  }
  /// The config, where it is an F, else nothing.
  template <class F>
  friend const F* get_if(const Family* f) {
    return f->functions_ == &family_functions<F>() ? static_cast<const F*>(f->config_.get()) : nullptr;
  }
  template <class F>
  friend F* get_if(Family* f) {
    if (f->functions_ != &family_functions<F>()) return nullptr;
    f->own();
    return static_cast<F*>(f->config_.get());
  }

 private:
  void own() {
    if (config_ && config_.use_count() > 1) config_ = functions_->copy(config_.get());
  }

  const FamilyFunctions* functions_ = nullptr;
  std::shared_ptr<void> config_;
};

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/nn/impl/family.hpp>
#endif
