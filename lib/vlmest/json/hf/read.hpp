// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vlmest/json/families.hpp>
#include <vlmest/json/hf/quantization.hpp>
#include <vlmest/json/hf/text_class.hpp>
#include <vlmest/json/hf/unread_keys.hpp>
#include <vlmest/json/hf/unread_types.hpp>
#include <vlmest/json/known_keys.hpp>

namespace vlmest::json::hf {

/// The reader of `type`'s own keys. Throws Error for a model_type that none reads, naming the nearest and what is
/// missing (unread_types.hpp), or the known ones.
inline Vlm read_own(const Reader& r, std::string_view type, FamilyRows rows) {
  if (const ModelType* t = find_type(rows, type)) return (*t->read)(r);
  for (const FamilyRow& row : rows)
    for (const ModelType& whole : row.types)
      if (!type.empty() && whole.text_part == type)
        r.fail("model_type", "transformers has no class that runs '" + std::string(type) + "' alone",
               "give the config of the whole model, " + std::string(whole.type) + ", with plan.images=0");
  for (const FamilyRow& row : rows)
    for (const ModelType& whole : row.types)
      if (!type.empty() && whole.own_code == type)
        r.fail("model_type", "'" + std::string(type) + "' runs by code of the checkpoint's own, which is not modelled",
               "give the config of transformers' class, " + std::string(whole.type));
  if (const UnreadType* t = find_unread(type))
    r.fail("model_type", "'" + std::string(type) + "' is not modelled; missing: " + std::string(t->missing),
           "nearest: " + std::string(t->nearest) +
               "; other models can be written in the description format (docs/reference)");
  const std::string known = known_words(type, known_types(rows));
  if (type.empty()) r.fail("model_type", "missing", "a config.json names one: " + known);
  r.fail("model_type", "unknown type '" + std::string(type) + "'",
         known + "; other models can be written in the description format (docs/reference)");
}

/// Where a composite's config has its language model's.
inline constexpr std::array language_parts{"text_config", "llm_config", "language_config"};

/// The longest sequence that the language model was made for. Its config stands under one of these names, or is the
/// whole file; of a composite, the inner one counts.
inline std::optional<std::int64_t> read_positions(const Reader& r) {
  constexpr const char* key = "max_position_embeddings";
  for (const char* part : language_parts)
    if (r.has(part))
      if (const Reader text = r.object(part); text.has(key)) return text.integer(key, 0, 1, std::int64_t{1} << 32);
  return r.has(key) ? std::optional(r.integer(key, 0, 1, std::int64_t{1} << 32)) : std::nullopt;
}

/// The object that holds the language model's: the whole, or of omni models the one of the part that understands.
inline Reader with_language(const Reader& r) { return r.given("thinker_config") ? r.object("thinker_config") : r; }

/// A model out of a parsed config.json, with the types that its weights have and are stored in.
inline Vlm read(const nlohmann::json& document, const std::string& path, FamilyRows rows = families()) {
  AskedKeys asked;
  const Reader r(document, path, asked);
  Vlm vlm = read_own(r, r.string("model_type", ""), rows);
  const Reader own = with_language(r);
  for (const char* part : language_parts)
    if (r.given(part)) r.without_effect({"hidden_size", "vocab_size"});  // what files repeat of it
  const std::string type = r.string("model_type", "");
  vlm.text = read_text_class(own, type);
  if (const ModelType* row = find_type(rows, type)) vlm.text.remote_code = row->remote_code;
  vlm.positions = read_positions(own);
  vlm.dtype = read_dtype(r);
  vlm.quantization = read_quantization(r);
  vlm.unread_keys = unread_keys(document, asked, path);
  return vlm;
}

}  // namespace vlmest::json::hf
