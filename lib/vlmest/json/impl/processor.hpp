// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace processor_files {

VLMEST_INLINE void read_image_part(ProcessorKeys& k, Vlm& vlm) {
  ignore_pixel_keys(k);
  const std::int64_t f = vlm.family.traits().frames;
  std::visit(
      [&](auto& rule) {
        if constexpr (requires { read_image_keys(k, rule); })
          read_image_keys(k, rule);
        else if constexpr (requires { rule.budget; })
          read_qwen_keys(k, rule, f);
      },
      vlm.tokens);
}

}  // namespace processor_files

VLMEST_INLINE std::vector<std::string> read_processor(const nlohmann::json& document, const std::string& where,
                                                      ProcessorFile file, Vlm& vlm) {
  std::vector<std::string> notes;
  if (!takes_images(vlm)) return {where + " has no effect: " + vlm.type + " takes no images"};
  if (vlm.type == "internvl_chat")
    return {where + " sets no tiles: the checkpoint's own code cuts pictures as config.json says"};
  const auto finish = [&](ProcessorKeys& k) {
    for (auto& line : k.notes()) notes.push_back(k.where() + ": " + line);
  };
  if (file == ProcessorFile::preprocessor) {
    ProcessorKeys k(document, where);
    processor_files::read_image_part(k, vlm);
    finish(k);
  } else {
    ProcessorKeys outer(document, where);
    outer.ignore({"image_processor", "video_processor", "feature_extractor", "audio_processor", "auto_map", "tokenizer",
                  "_processor_class"});
    std::visit(
        [&](auto& rule) {
          if constexpr (requires { read_outer_keys(outer, rule); }) read_outer_keys(outer, rule);
        },
        vlm.tokens);
    finish(outer);
    if (document.contains("image_processor") && !document["image_processor"].is_null()) {
      ProcessorKeys k(document["image_processor"], where + ".image_processor");
      processor_files::read_image_part(k, vlm);
      finish(k);
    }
  }
  layout(vlm.tokens, vlm.native);  // throws for parameters that the processor refuses
  return notes;
}

}  // namespace vlmest::json
