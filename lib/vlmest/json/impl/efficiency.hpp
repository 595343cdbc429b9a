// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/efficiency.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::efficiency_json {

VLMEST_INLINE void read(Correction<3>& c, const json& j, const Place& at) {
  device_json::expect_keys(j, at, {"m", "n", "k", "percent"});
  const auto numbers = [&](const char* key) {
    const json& list = j.at(key);
    if (!list.is_array()) fail(at / key, "is no list", "give a list of numbers");
    std::vector<double> r;
    for (const json& v : list) {
      if (!v.is_number() || !std::isfinite(v.get<double>())) fail(at / key, "holds what is no number", "give numbers");
      r.push_back(v.get<double>());
    }
    return r;
  };
  for (std::size_t a = 0; a < axes.size(); ++a) {
    c.knots[a].clear();
    for (const double size : numbers(axes[a])) {
      if (!(size > 0) || size > 1e15 || (!c.knots[a].empty() && std::log2(size) <= c.knots[a].back()))
        fail(at / axes[a], "is not ascending from above zero", "give sizes from the smallest to the largest");
      c.knots[a].push_back(std::log2(size));
    }
    if (c.knots[a].size() < 2) fail(at / axes[a], "has fewer than two sizes", "leave the correction out, or give more");
  }
  c.log_factor.clear();
  for (const double p : numbers("percent")) {
    if (p < -95 || p > 1000) fail(at / "percent", "holds " + std::to_string(p), "give -95 to 1000");
    c.log_factor.push_back(std::log1p(p / 100));
  }
  if (c.log_factor.size() != c.size())
    fail(at / "percent", "has " + std::to_string(c.log_factor.size()) + " values, not one for each m, n and k",
         "give " + std::to_string(c.size()));
}

}  // namespace vlmest::efficiency_json
