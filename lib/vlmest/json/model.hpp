// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/block.hpp>
#include <vlmest/json/hf/read.hpp>
#include <vlmest/json/image_processor.hpp>
#include <vlmest/json/kv_layout.hpp>
#include <vlmest/json/parse.hpp>

namespace vlmest::json {

/// A model out of a document: a description ("model" holds the assembly in config.json's keys, beside "name", "source"
/// and "expect", and what a config.json cannot say: "image", "blocks" and "kv"), or a config.json as it is. Keys of a
/// description: docs/reference/description.md. Throws Error for a key that a description does not have.
inline Vlm read_model(const nlohmann::json& document, const std::string& where) {
  const Reader r(document, where);
  if (!r.has("model")) return hf::read(document, where);
  only_keys(r, {"$schema", "name", "source", "expect", "model", "image", "blocks", "kv"});
  const Reader model = r.object("model");
  Vlm vlm = hf::read(model.value(), model.path());
  vlm.name = r.string("name", "");
  read_image(r, vlm);
  read_blocks(r, vlm);
  read_kv(r, vlm);
  return vlm;
}

inline Vlm parse_model(std::string_view text, const std::string& where) {
  return read_model(parse(text, where), where);
}

}  // namespace vlmest::json
