// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vlmest/json/reader.hpp>
#include <vlmest/report/comparison.hpp>
#include <vlmest/unit/error.hpp>

/// What a file of measured rows says was fitted to them.
namespace vlmest::json {

/// Of some quantities of a file, "*" for those that no other mark names.
struct FittedMark {
  std::vector<std::string> quantities;
  Fitted fitted = Fitted::unknown;
  std::string reason;
};

inline Fitted read_fitted(const nlohmann::json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>() ? Fitted::yes : Fitted::no;
  if (value == "partly") return Fitted::partly;
  throw Error(where, "is neither true nor false nor \"partly\"", "whether anything was fitted to these rows");
}

/// "fitted": [{"quantities": ["linear_time"], "fitted": true, "reason": "…"}, …] of a document; none where it has none.
std::vector<FittedMark> read_fitted_marks(const nlohmann::json& document, const std::string& where);

/// The mark of a quantity; nullptr where the file does not say.
const FittedMark* mark_of(const std::vector<FittedMark>& marks, std::string_view quantity);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/fitted_marks.hpp>
#endif
