// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// How a model's forward calls what turns pixels into features, and the line of Python that wraps what it calls, so
/// that the tower runs over a few images at a time and the caller gets what it reads (transformers 5.17, the models'
/// get_image_features). nn/family/vision_chunks.hpp estimates these lines. A call that one family alone has stands in
/// that family's folder.
namespace vlmest {

struct FeatureCall {
  /// The line for `rows` rows at a time in a model of that model_type; none where a model takes no images, or where a
  /// part of them would give other features.
  std::string (*line)(const std::string& type, std::int64_t rows) = nullptr;
  bool tiles = false;  ///< rows are tiles, not images
};

namespace feature_calls {

/// "pixel_values.split(4)" and the like.
inline std::string split(const std::string& tensor, std::int64_t n) {
  return tensor + ".split(" + std::to_string(n) + ")";
}
/// A method of `of` becomes a function of `arguments` that calls it, as f, and gives `result`.
inline std::string wrapped(const std::string& of, const std::string& arguments, const std::string& result) {
  return of + " = lambda " + arguments + ", f=" + of + ", **k: " + result;
}
inline std::string image_features(const std::string& arguments, const std::string& pooled) {
  return "from transformers.modeling_outputs import BaseModelOutputWithPooling; " +
         wrapped("model.model.get_image_features", arguments,
                 "BaseModelOutputWithPooling(pooler_output=" + pooled + ")");
}

inline std::string tensor_line(const std::string&, std::int64_t n) {
  return image_features("pixel_values",
                        "torch.cat([f(pixel_values=p, **k).pooler_output for p in " + split("pixel_values", n) + "])");
}
inline std::string list_line(const std::string&, std::int64_t n) {
  return image_features("pixel_values",
                        "[y for p in " + split("pixel_values", n) + " for y in f(pixel_values=p, **k).pooler_output]");
}
inline std::string sizes_line(const std::string&, std::int64_t n) {
  return image_features("pixel_values, image_sizes",
                        "[y for p, s in zip(" + split("pixel_values", n) + ", " + split("image_sizes", n) +
                            ") for y in f(pixel_values=p, image_sizes=s, **k).pooler_output]");
}
/// Pairs of pixels and grids; each chunk's patches are counted from its grid.
inline std::string packed_pairs(std::int64_t n) {
  return "for p, g in zip(pixel_values.split([int(g.prod(-1).sum()) for g in " + split("grid", n) + "]), " +
         split("grid", n) + ")";
}
inline std::string packed_line(const std::string&, std::int64_t n) {
  return image_features("pixel_values, grid", "[y " + packed_pairs(n) + " for y in f(p, g, **k).pooler_output]");
}

/// A language model alone.
inline constexpr FeatureCall no_images{};
/// The caller takes pooler_output as one tensor; pixels have a row for each image: modeling_vipllava.py,
/// modeling_gemma3.py, modeling_paligemma.py.
inline constexpr FeatureCall tensor{tensor_line};
/// The same with a row for each tile: modeling_internvl.py, modeling_aya_vision.py, modeling_cohere2_vision.py.
inline constexpr FeatureCall tile_tensor{tensor_line, true};
/// The caller joins pooler_output, a list with an entry for each image: modeling_llava.py.
inline constexpr FeatureCall images{list_line};
/// The same with image_sizes: modeling_llava.py over Pixtral, modeling_mistral3.py, modeling_llava_next.py,
/// modeling_llava_onevision.py.
inline constexpr FeatureCall sized_images{sizes_line};
/// Patches of all images in rows and their grid, by position; a list for each image: modeling_qwen2_vl.py,
/// modeling_qwen2_5_vl.py, modeling_glm4v.py.
inline constexpr FeatureCall packed{packed_line};

}  // namespace feature_calls
}  // namespace vlmest
