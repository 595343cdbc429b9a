// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/unit/error.hpp>

namespace vlmest::bench {

/// An op as `vlmest op` reads it; its keys keep their order.
using OpJson = nlohmann::ordered_json;

/// What a call finds in the L2 cache: nothing of its operands, or all that fits.
enum class Cache { cold, hot };

constexpr std::string_view name(Cache c) { return c == Cache::cold ? "cold" : "hot"; }

/// One thing to measure: an op as `vlmest op` reads it, the implementation that runs it, and the state of the cache.
struct Point {
  OpJson op;
  std::string variant;
  Cache cache = Cache::cold;

  bool operator==(const Point&) const = default;
};

inline std::string op_name(const Point& p) { return p.op.value("op", std::string()); }

/// "linear/cublaslt/m:4096/n:11008/k:4096/dtype:bf16/cold"
inline std::string name(const Point& p) {
  std::string r = op_name(p) + "/" + p.variant;
  for (const auto& [key, value] : p.op.items())
    if (key != "op") r += "/" + key + ":" + (value.is_string() ? value.get<std::string>() : value.dump());
  return r + "/" + std::string(name(p.cache));
}

/// The op as compact JSON, an entry of the list that `vlmest op` reads.
inline std::string label(const Point& p) { return p.op.dump(); }

}  // namespace vlmest::bench
