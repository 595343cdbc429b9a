// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/text_only.hpp>
#include <vlmest/nn/image_processor/video.hpp>
#include <vlmest/unit/count.hpp>
#include <vlmest/unit/owned.hpp>

/// What the rest of the library knows of an image processor: one value, whatever its settings are.
namespace vlmest {

class ImageProcessor;

/// What a rule has to say, as functions beside its struct:
///   - layout(rule, size): one picture alone in its prompt. Throws Error for sizes or parameters that the processor
///     refuses;
///   - lower(rule, layout): itself with lower limits, most tokens first, for a picture that it lays out so. Empty where
///     every picture costs the same;
///   - limit_line(rule): the Python that tells the processor these limits; "" where there are none.
/// A rule may also have layouts(rule, sizes), where a prompt's pictures are not laid out each by itself,
/// otherwise(rule), the setting of the processor that recorded runs without a word about it may have had, and what
/// nn/image_processor/video.hpp asks of a rule that takes videos.
template <class R>
concept ImageRule = std::copyable<R> && requires(const R& r, ImageSize size, const ImageLayout& l) {
  { layout(r, size) } -> std::same_as<ImageLayout>;
  { lower(r, l) } -> std::same_as<std::vector<R>>;
  { limit_line(r) } -> std::same_as<std::string>;
};

/// A rule's functions over its settings, whose type is left out.
struct RuleFunctions {
  std::shared_ptr<void> (*copy)(const void*);
  ImageLayout (*layout)(const void*, ImageSize);
  std::vector<ImageLayout> (*layouts)(const void*, std::span<const ImageSize>);
  std::vector<ImageProcessor> (*lower)(const void*, const ImageLayout&);
  std::string (*limit_line)(const void*);
  std::optional<ImageProcessor> (*otherwise)(const void*);
  ImageLayout (*video)(const void*, const VideoSource&);  ///< none: takes no videos
  OwnSampling (*own_sampling)(const void*);
  image_processor::PixelBudget* (*budget)(void*);
  Grid* (*features)(void*);
};

/// The table of a rule: functions found by its type where a model with that rule is made. Compiled once, those of the
/// registry's families stand beside their readers; a program with a rule of its own includes impl/processor.hpp.
template <ImageRule R>
[[gnu::noinline]] const RuleFunctions& rule_functions();

/// How a model's processor turns pixels into tokens: the settings of one rule, with its functions. Copies share the
/// settings until one of them is changed.
class ImageProcessor {
 public:
  ImageProcessor() : ImageProcessor(image_processor::TextOnly{}) {}
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, ImageProcessor> && ImageRule<std::remove_cvref_t<R>>)
      ImageProcessor(R&& rule)  // NOLINT(google-explicit-constructor): settings are a rule
      : functions_(&rule_functions<std::remove_cvref_t<R>>()),
        rule_(owned(new std::remove_cvref_t<R>(std::forward<R>(rule)))) {}

  friend ImageLayout layout(const ImageProcessor& r, ImageSize size) {
    return r.functions_->layout(r.rule_.get(), size);
  }
  /// The layouts of all pictures of one prompt, in order.
  friend std::vector<ImageLayout> layouts(const ImageProcessor& r, std::span<const ImageSize> sizes) {
    return r.functions_->layouts(r.rule_.get(), sizes);
  }
  friend bool takes_videos(const ImageProcessor& r) { return r.functions_->video != nullptr; }
  /// Of a rule that takes videos.
  friend ImageLayout video_layout(const ImageProcessor& r, const VideoSource& v) {
    return r.functions_->video(r.rule_.get(), v);
  }
  friend OwnSampling own_sampling(const ImageProcessor& r) { return r.functions_->own_sampling(r.rule_.get()); }
  friend std::vector<ImageProcessor> lower(const ImageProcessor& r, const ImageLayout& l) {
    return r.functions_->lower(r.rule_.get(), l);
  }
  friend std::string limit_line(const ImageProcessor& r) { return r.functions_->limit_line(r.rule_.get()); }
  friend std::optional<ImageProcessor> otherwise(const ImageProcessor& r) {
    return r.functions_->otherwise(r.rule_.get());
  }

  /// The limits of a processor that counts pixels, to be changed; else nothing.
  image_processor::PixelBudget* budget() {
    own();
    return functions_->budget(rule_.get());
  }
  /// The features of a tile where blocks resample them, to be changed; nothing where none can.
  Grid* features() {
    own();
    return functions_->features(rule_.get());
  }

  /// The settings, which must be an R: get_if says whether they are.
  template <class R>
  friend const R& get(const ImageProcessor& r) {
    return *get_if<R>(&r);
  }
  template <class R>
  friend R& get(ImageProcessor& r) {
    return *get_if<R>(&r);
  }
  /// The settings, where they are an R, else nothing.
  template <class R>
  friend const R* get_if(const ImageProcessor* r) {
    return r->functions_ == &rule_functions<R>() ? static_cast<const R*>(r->rule_.get()) : nullptr;
  }
  template <class R>
  friend R* get_if(ImageProcessor* r) {
    if (r->functions_ != &rule_functions<R>()) return nullptr;
    r->own();
    return static_cast<R*>(r->rule_.get());
  }

 private:
  void own() {
    if (rule_.use_count() > 1) rule_ = functions_->copy(rule_.get());
  }

  const RuleFunctions* functions_;
  std::shared_ptr<void> rule_;
};

template <class R>
concept VideoRule = ImageRule<R> && requires(const R& r, const VideoSource& v) {
  { video_layout(r, v) } -> std::same_as<ImageLayout>;
  { own_sampling(r) } -> std::same_as<OwnSampling>;
};

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

#ifndef VLMEST_COMPILED
#include <vlmest/nn/image_processor/impl/processor.hpp>
#endif
