// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/family_functions.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/unit/owned.hpp>

/// What the rest of the library knows of a model family: one value, whatever its config is. Only the folders of
/// family/ know the configs themselves.
namespace vlmest {

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
        config_(owned(new std::remove_cvref_t<F>(std::forward<F>(config)))) {}

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
