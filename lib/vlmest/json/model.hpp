// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/families.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json {

/// "id" is the model's on Hugging Face, where it has one: ORGANISATION/NAME. Throws Error for anything else.
inline void expect_hub_id(const Reader& r) {
  if (!r.has("id")) return;
  const std::string id = r.string("id", "");
  const auto slash = id.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == id.size() || slash != id.rfind('/'))
    r.fail("id", "'" + id + "' is not ORGANISATION/NAME", "give the model's id on Hugging Face, or leave it out");
}

/// A model out of a document: a description ("model" holds the assembly in config.json's keys, beside "name", "id",
/// "source" and "expect", and what a config.json cannot say: "image", "blocks" and "kv"), or a config.json as it is.
/// Keys of a description: docs/reference/description.md. Throws Error for a key that a description does not have.
Vlm read_model(const nlohmann::json& document, const std::string& where, FamilyRows rows = families());

Vlm parse_model(std::string_view text, const std::string& where);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/model.hpp>
#endif
