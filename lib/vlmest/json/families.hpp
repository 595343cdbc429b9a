// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <vlmest/json/family_row.hpp>

namespace vlmest::json {

/// The families of the library (family/registry.hpp). What reads models takes other rows too.
FamilyRows families();

/// Every model_type of the rows.
inline std::vector<std::string_view> known_types(FamilyRows rows) {
  std::vector<std::string_view> r;
  for (const FamilyRow& row : rows)
    for (const ModelType& t : row.types) r.push_back(t.type);
  return r;
}

/// A model_type of the rows, or nothing.
inline const ModelType* find_type(FamilyRows rows, std::string_view type) {
  for (const FamilyRow& row : rows)
    for (const ModelType& t : row.types)
      if (t.type == type) return &t;
  return nullptr;
}

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/families.hpp>
#endif
