// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/unit/required.hpp>

/// What a family says to be read from files, and to be known to everything that lists families: its row of
/// family/registry.hpp. The row is a struct at the end of family/<folder>/read.hpp; what it leaves out does not
/// compile.
namespace vlmest::json {

/// How the recorder makes the inputs of a model_type (bench/recorder): the function of bench/recorder/inputs that lays
/// pictures out, as "file.function", and the size of a picture where none is given.
struct RecorderInputs {
  std::string_view layout;
  std::int64_t native = 0;  ///< 0: the tower's; -1: the largest square of image_grid_pinpoints
};
/// Of language models alone, and of models that transformers does not run by itself.
inline constexpr RecorderInputs not_recorded{};

/// One model_type of config.json.
struct ModelType {
  std::string_view type;
  Required<Vlm (*)(const Reader&)> read;
  Required<RecorderInputs> recorder;
  bool remote_code = false;  ///< runs by code that its checkpoint brings, not by a class of transformers
  /// The model_type of its text part, where transformers has no class that runs that alone (models/auto/
  /// modeling_auto.py, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES).
  std::string_view text_part = {};
  /// The model_type of the same checkpoint's file for code of its own, which is not modelled.
  std::string_view own_code = {};
  /// Why a processor's file has no effect, where the checkpoint's own code reads none.
  std::string_view no_processor_file = {};
};

/// What JSON says to a rule for images, as functions beside its struct; each names every key that it knows:
///   - read_image(DescriptionImage&, rule): "image" of a description;
///   - read_image_keys(ProcessorKeys&, rule), or with the family's traits as a third argument: the image processor's
///     keys in a checkpoint's files;
///   - read_outer_keys(ProcessorKeys&, rule): the processor's own;
///   - read_video_keys(ProcessorKeys&, rule), of a rule that takes videos: the video processor's.
template <class R>
concept ReadableRule = ImageRule<R> && std::default_initializable<R> &&
    requires(R& r, DescriptionImage& image, ProcessorKeys& k, const FamilyTraits& t) {
  read_image(image, r);
  read_outer_keys(k, r);
  requires requires { read_image_keys(k, r); } || requires {
    read_image_keys(k, r, t);
  };
};

/// Those functions, found by the rule's type.
struct RuleReader {
  bool (*reads)(const ImageProcessor&);
  void (*image)(DescriptionImage&, ImageProcessor&);
  void (*image_keys)(ProcessorKeys&, ImageProcessor&, const FamilyTraits&);
  void (*outer_keys)(ProcessorKeys&, ImageProcessor&);
  void (*video_keys)(ProcessorKeys&, ImageProcessor&);  ///< nothing is read where the rule takes no videos
  ImageProcessor (*defaults)();
};
template <ReadableRule R>
inline constexpr RuleReader rule_reader{
    .reads = [](const ImageProcessor& r) -> bool { return get_if<R>(&r) != nullptr; },
    .image = [](DescriptionImage& image, ImageProcessor& r) -> void { read_image(image, get<R>(r)); },
    .image_keys = [](ProcessorKeys& k, ImageProcessor& r, const FamilyTraits& t) -> void {
      R& rule = get<R>(r);
      if constexpr (requires { read_image_keys(k, rule, t); })
        read_image_keys(k, rule, t);
      else
        read_image_keys(k, rule);
    },
    .outer_keys = [](ProcessorKeys& k, ImageProcessor& r) -> void { read_outer_keys(k, get<R>(r)); },
    .video_keys = [](ProcessorKeys& k, ImageProcessor& r) -> void {
      if constexpr (VideoRule<R>) read_video_keys(k, get<R>(r));
    },
    .defaults = []() -> ImageProcessor { return R{}; },
};

/// The rules that a family's models have; none for language models alone.
template <ReadableRule... R>
struct Rules {
  static constexpr std::array<RuleReader, sizeof...(R)> readers{rule_reader<R>...};
};

/// A row: a struct with the name of its folder, its model types and its rules.
template <class F>
concept RowOfFamily = requires {
  { F::folder } -> std::convertible_to<std::string_view>;
  std::span<const ModelType>(F::types);
  requires !F::types.empty();
  std::span<const RuleReader>(F::Rules::readers);
};

/// The same as a value.
struct FamilyRow {
  std::string_view folder;
  std::span<const ModelType> types;
  std::span<const RuleReader> rules;
};
using FamilyRows = std::span<const FamilyRow>;

template <RowOfFamily... F>
inline constexpr std::array<FamilyRow, sizeof...(F)> family_rows{FamilyRow{F::folder, F::types, F::Rules::readers}...};

/// The reader of a rule; throws Error for a rule that no row has.
inline const RuleReader& reader_of(FamilyRows rows, const ImageProcessor& rule) {
  for (const FamilyRow& row : rows)
    for (const RuleReader& r : row.rules)
      if (r.reads(rule)) return r;
  throw Error("image processor", "its rule stands in no row of a family", "name it in the row's Rules");
}

}  // namespace vlmest::json
