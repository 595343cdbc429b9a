// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/block.hpp>
#include <vlmest/json/hf/read.hpp>
#include <vlmest/json/image_processor.hpp>
#include <vlmest/json/kv_layout.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE Vlm read_model(const nlohmann::json& document, const std::string& where, FamilyRows rows) {
  const Reader r(document, where);
  if (!r.has("model")) return hf::read(document, where, rows);
  only_keys(r, {"$schema", "name", "id", "source", "expect", "model", "image", "blocks", "kv"});
  const Reader model = r.object("model");
  Vlm vlm = hf::read(model.value(), model.path(), rows);
  vlm.name = r.string("name", "");
  expect_hub_id(r);
  read_image(r, vlm, rows);
  read_blocks(r, vlm, rows);
  read_kv(r, vlm);
  return vlm;
}

VLMEST_INLINE Vlm parse_model(std::string_view text, const std::string& where) {
  return read_model(parse(text, where), where);
}

}  // namespace vlmest::json
