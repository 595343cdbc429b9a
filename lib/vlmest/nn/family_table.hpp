// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <vlmest/nn/cache_layer.hpp>
#include <vlmest/nn/family_functions.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/plan/kernel_packages.hpp>
#include <vlmest/unit/owned.hpp>

/// A family's functions, found by the type of its config, in the table that a Family holds.
namespace vlmest {

/// The decoder of Llama's build in a language model's config, or nothing.
template <class Language>
LlamaConfig* llama_of(Language& language) {
  if constexpr (requires { get_if<LlamaConfig>(&language); })
    return get_if<LlamaConfig>(&language);
  else
    return nullptr;
}

template <class F>
concept HasVision = requires(const F& f) {
  f.vision;
};

/// The table of a config.
template <class F>
inline constexpr FamilyFunctions family_table{
    .takes_images = HasVision<F>,
    .copy = [](const void* f) -> std::shared_ptr<void> { return owned(new F(*static_cast<const F*>(f))); },
    .traits = [](const void* f) -> FamilyTraits {
      FamilyTraits t = traits(*static_cast<const F*>(f));
      t.packages = packages_of(static_cast<const F*>(f)->language);
      return t;
    },
    .make_model = [](Context& c, const void* f) -> std::shared_ptr<void> {
      return owned(new auto(make_model(c, *static_cast<const F*>(f))));
    },
    .make_inputs = [](Context& c, const void* f, const Sequences& s) -> FamilyInputs {
      auto* const made = new auto(make_inputs(c, *static_cast<const F*>(f), s));
      const Value* labels = &made->text.ids;
      if constexpr (requires { made->labels; }) labels = &made->labels;
      return {owned(made), &made->text, labels};
    },
    .make_cache = [](const void* f) -> Cache { return make_cache(static_cast<const F*>(f)->language); },
    .prefill = [](Context& c, const void* m, void* in, const Sequences& s, Cache& cache) -> Value {
      const F* f = nullptr;
      using Model = decltype(make_model(c, *f));
      using Inputs = decltype(make_inputs(c, *f, s));
      return prefill(c, *static_cast<const Model*>(m), *static_cast<Inputs*>(in), s, cache);
    },
    .decode = [](Context& c, const void* m, const TextInputs& in, Cache& cache) -> Value {
      const F* f = nullptr;
      using Model = decltype(make_model(c, *f));
      return decode(c, *static_cast<const Model*>(m), in, cache);
    },
    .llama = [](void* f) -> LlamaConfig* { return llama_of(static_cast<F*>(f)->language); },
};

}  // namespace vlmest
