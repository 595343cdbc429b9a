// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/json/families.hpp>
#include <vlmest/nn/vlm.hpp>

/// The files beside a checkpoint's config.json that set its processor. What `from_pretrained` makes of them decides:
/// keys that a file leaves out are the defaults of the class, not those of the released checkpoints.
namespace vlmest::json {

/// Which of the files: preprocessor_config.json holds the image processor's keys; processor_config.json the processor's
/// own, and since transformers 5 the image processor's below "image_processor" and the video processor's below
/// "video_processor"; video_preprocessor_config.json holds the latter by itself.
enum class ProcessorFile { preprocessor, processor, video };

/// Whether a processor_config.json holds the video processor too: then no other file is read for it. Without one, and
/// without a video_preprocessor_config.json, the image processor's file sets it (transformers 5.17
/// video_processing_utils.py, get_video_processor_dict).
inline bool holds_video_processor(const nlohmann::json& document) {
  return document.is_object() && document.contains("video_processor") && document["video_processor"].is_object();
}

/// Whether a processor_config.json holds the image processor too: then a preprocessor_config.json beside it is not read
/// (transformers 5.17 image_processing_base.py, get_image_processor_dict).
inline bool holds_image_processor(const nlohmann::json& document) {
  return document.is_object() && document.contains("image_processor") && document["image_processor"].is_object();
}

/// Sets the model's rule for images as the file does, and returns what has to be said about it, a line each. Throws
/// Error naming the key where the file contradicts config.json, or asks for what no rule here does.
std::vector<std::string> read_processor(const nlohmann::json& document, const std::string& where, ProcessorFile file,
                                        Vlm& vlm, FamilyRows rows = families());

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/processor.hpp>
#endif
