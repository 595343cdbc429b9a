// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor.hpp>
#include <vlmest/json/processor/audio.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
/// Throws Error for settings that the encoder refuses, or that leave nothing of half a minute.
inline void check_feature_extractor(const ProcessorKeys& k, const AudioProcessor& audio) {
  try {
    audio_layout(audio, {30.0});
  } catch (const Error& e) {
    throw Error(k.where(), "a clip of 30 seconds cannot be processed: " + e.what_happened, e.hint);
  }
}

/// The feature extractor of a model that takes sound: the file's own keys, or those of the part that holds it.
inline std::vector<std::string> read_feature_extractor(const nlohmann::json& document, const std::string& where,
                                                       ProcessorFile file, Vlm& vlm, bool says_more) {
  std::vector<std::string> notes;
  audio::MelSettings* const mel = vlm.audio.mel();
  if (mel == nullptr || file == ProcessorFile::video) return notes;
  const bool nested = file == ProcessorFile::processor;
  if (nested && !ProcessorKeys(document, where).given("feature_extractor")) return notes;
  ProcessorKeys k(nested ? document["feature_extractor"] : document, nested ? where + ".feature_extractor" : where);
  read_audio_keys(k, *mel);
  check_feature_extractor(k, vlm.audio);
  if (nested || says_more)
    for (auto& line : k.notes()) notes.push_back(k.where() + ": " + line);
  return notes;
}

VLMEST_INLINE std::vector<std::string> read_processor(const nlohmann::json& document, const std::string& where,
                                                      ProcessorFile file, Vlm& vlm, FamilyRows rows) {
  if (!takes_images(vlm) && !takes_audio(vlm)) return {where + " has no effect: " + vlm.type + " takes no images"};
  if (const ModelType* t = find_type(rows, vlm.type); t && !t->no_processor_file.empty())
    return {where + " " + std::string(t->no_processor_file)};
  std::vector<std::string> notes = read_feature_extractor(document, where, file, vlm, !takes_images(vlm));
  if (!takes_images(vlm)) return notes;
  const RuleReader& reader = reader_of(rows, vlm.image_processor);
  const auto finish = [&](ProcessorKeys& k) {
    for (auto& line : k.notes()) notes.push_back(k.where() + ": " + line);
  };
  const auto read_image_part = [&](const nlohmann::json& part, const std::string& path) {
    ProcessorKeys k(part, path);
    ignore_pixel_keys(k);
    if (takes_audio(vlm)) k.ignore(audio_keys);
    reader.image_keys(k, vlm.image_processor, vlm.family.traits());
    finish(k);
  };
  const bool videos = vlm.family.traits().videos != VideoPixels::refused;
  const auto read_video_part = [&](const nlohmann::json& part, const std::string& path, bool says_more) {
    if (!videos) return;
    ProcessorKeys k(part, path);
    ignore_video_keys(k);
    reader.video_keys(k, vlm.image_processor);
    if (says_more) finish(k);
  };
  if (file == ProcessorFile::video) {
    if (!videos) return {where + " has no effect: " + vlm.type + " takes no videos"};
    read_video_part(document, where, true);
  } else if (file == ProcessorFile::preprocessor) {
    read_image_part(document, where);
    read_video_part(document, where, false);  // unless another file sets it
  } else {
    ProcessorKeys outer(document, where);
    outer.ignore({"image_processor", "video_processor", "feature_extractor", "audio_processor", "auto_map", "tokenizer",
                  "_processor_class"});
    reader.outer_keys(outer, vlm.image_processor);
    finish(outer);
    if (document.contains("image_processor") && !document["image_processor"].is_null())
      read_image_part(document["image_processor"], where + ".image_processor");
  }
  layout(vlm.image_processor, vlm.native);  // throws for parameters that the processor refuses
  return notes;
}

}  // namespace vlmest::json
