// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/known_keys.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE std::pair<std::int64_t, std::int64_t> pair_required(const Reader& r, const char* key, std::int64_t high) {
  const bool list = r.given(key) && r.value()[key].is_array() && r.value()[key].size() == 2;
  if (!list)
    r.fail(key, r.given(key) ? "expected two integers" : "missing", "give two positive integers, like [24, 24]");
  const auto l = r.integers(key, {});
  for (const auto n : l)
    if (n < 1 || n > high)
      r.fail(key, "must lie between 1 and " + std::to_string(high), "give two positive integers, like [24, 24]");
  return {l[0], l[1]};
}

}  // namespace vlmest::json
