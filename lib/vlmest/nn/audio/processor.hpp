// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/unit/owned.hpp>

/// What the rest of the library knows of how a model's processor turns sound into tokens: one value, whatever its
/// settings are.
namespace vlmest {

/// What a rule for audio has beside its struct:
///   - audio_layout(rule, AudioSource): one clip. Throws Error for what the processor refuses;
///   - a member `mel`: the feature extractor's settings, which a checkpoint's files may change.
template <class R>
concept AudioRule = std::copyable<R> && requires(R& m, const R& r, const AudioSource& a) {
  { audio_layout(r, a) } -> std::same_as<AudioLayout>;
  { m.mel } -> std::same_as<audio::MelSettings&>;
};

/// The settings of one rule with its functions, or nothing: the model takes no audio. Copies share the settings until
/// one of them is changed.
class AudioProcessor {
 public:
  AudioProcessor() = default;
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, AudioProcessor> && AudioRule<std::remove_cvref_t<R>>)
      AudioProcessor(R&& rule)  // NOLINT(google-explicit-constructor): settings are a rule
      : functions_(&table<std::remove_cvref_t<R>>), rule_(owned(new std::remove_cvref_t<R>(std::forward<R>(rule)))) {}

  explicit operator bool() const { return functions_ != nullptr; }
  /// Of a model that takes audio.
  friend AudioLayout audio_layout(const AudioProcessor& p, const AudioSource& a) {
    return p.functions_->layout(p.rule_.get(), a);
  }
  /// The feature extractor's settings, to be changed; nothing where the model takes no audio.
  audio::MelSettings* mel() {
    if (functions_ == nullptr) return nullptr;
    if (rule_.use_count() > 1) rule_ = functions_->copy(rule_.get());
    return functions_->mel(rule_.get());
  }

 private:
  struct Functions {
    std::shared_ptr<void> (*copy)(const void*);
    AudioLayout (*layout)(const void*, const AudioSource&);
    audio::MelSettings* (*mel)(void*);
  };
  template <class R>
  static constexpr Functions table{
      .copy = [](const void* r) -> std::shared_ptr<void> { return owned(new R(*static_cast<const R*>(r))); },
      .layout = [](const void* r, const AudioSource& a) -> AudioLayout {
        return audio_layout(*static_cast<const R*>(r), a);
      },
      .mel = [](void* r) -> audio::MelSettings* { return &static_cast<R*>(r)->mel; },
  };

  const Functions* functions_ = nullptr;
  std::shared_ptr<void> rule_;
};

}  // namespace vlmest
