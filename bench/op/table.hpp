// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <bench/harness/point.hpp>

#include <vlmest/json/op.hpp>
#include <vlmest/unit/nearest.hpp>

namespace vlmest::bench {

/// What can be measured of an op: the keys that name a point, in their order, and the implementations; the first is the
/// one that torch runs, or our own where nothing else is there.
struct OpEntry {
  std::string_view name;
  std::array<std::string_view, 10> keys;
  std::array<std::string_view, 5> variants;
};

/// Every op of the benchmarks. bench/op/prepare.cpp says how each is called.
inline constexpr std::array op_table{
    OpEntry{"linear", {"batch", "m", "n", "k", "dtype", "bias"}, {"cublaslt", "cublaslt_best"}},
    OpEntry{"sdpa",
            {"batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "v_dim", "causal", "dtype"},
            {"cudnn", "flash", "flash_mma", "split_kv", "naive"}},
    OpEntry{"fft", {"batch", "channels", "width", "dtype"}, {"cufft"}},
    OpEntry{"ifft", {"batch", "channels", "width", "dtype"}, {"cufft"}},
    OpEntry{"rfft", {"batch", "channels", "width", "dtype"}, {"cufft"}},
    OpEntry{"irfft", {"batch", "channels", "width", "dtype"}, {"cufft"}},
    OpEntry{"fft2", {"batch", "channels", "height", "width", "dtype"}, {"cufft"}},
    OpEntry{"ifft2", {"batch", "channels", "height", "width", "dtype"}, {"cufft"}},
    OpEntry{"rfft2", {"batch", "channels", "height", "width", "dtype"}, {"cufft"}},
    OpEntry{"irfft2", {"batch", "channels", "height", "width", "dtype"}, {"cufft"}},
    OpEntry{"copy", {"elements", "dtype"}, {"own", "memcpy"}},
    OpEntry{"read", {"elements", "dtype"}, {"own"}},
    OpEntry{"write", {"elements", "dtype"}, {"own", "memset"}},
    OpEntry{"add", {"elements", "dtype"}, {"own"}},
    OpEntry{"silu_mul", {"elements", "dtype"}, {"own"}},
    OpEntry{"softmax", {"rows", "width", "elements", "dtype", "out"}, {"own"}},
    OpEntry{"layernorm", {"rows", "width", "elements", "dtype"}, {"own"}},
    OpEntry{"rmsnorm", {"rows", "width", "elements", "dtype"}, {"own"}},
    OpEntry{"rope", {"batch", "rows", "heads", "kv_heads", "head_dim", "rotary_dim", "dtype", "angles"}, {"own"}},
    OpEntry{"embedding", {"rows", "width", "vocab", "dtype"}, {"own"}},
    OpEntry{"cross_entropy", {"rows", "vocab", "dtype"}, {"own"}},
    /// Not an op: what a launch costs, by a kernel that does nothing. In a graph, one after the other in a stream, and
    /// the host's side of it.
    OpEntry{"launch", {}, {"graph", "stream", "host"}},
};

/// "a, b, c" without the empty ends of a table's row.
template <class Range>
std::string listed(const Range& names) {
  std::string r;
  for (const std::string_view n : names)
    if (!n.empty()) r += (r.empty() ? "" : ", ") + std::string(n);
  return r;
}

/// The entry called `name`, or nullptr.
constexpr const OpEntry* find_entry(std::string_view name) {
  for (const OpEntry& e : op_table)
    if (e.name == name) return &e;
  return nullptr;
}

inline std::vector<std::string> op_names() {
  std::vector<std::string> r;
  for (const OpEntry& e : op_table) r.emplace_back(e.name);
  return r;
}

inline bool has_variant(const OpEntry& e, std::string_view variant) {
  return !variant.empty() && std::find(e.variants.begin(), e.variants.end(), variant) != e.variants.end();
}

/// A word of the command line: OP (its first variant) or OP/VARIANT.
struct Choice {
  std::string op;
  std::string variant;  ///< empty: the first
};

/// Throws Error for an op or a variant that the table lacks.
inline Choice read_choice(const std::string& word) {
  const std::size_t slash = word.find('/');
  const std::string op = word.substr(0, slash);
  const OpEntry* entry = find_entry(op);
  if (!entry) throw Error("bench", "no benchmark of '" + op + "'", "known: " + listed(op_names()));
  if (slash == std::string::npos) return {op, {}};
  const std::string variant = word.substr(slash + 1);
  if (!has_variant(*entry, variant))
    throw Error("bench", op + " has no variant '" + variant + "'", "known: " + listed(entry->variants));
  return {op, variant};
}

/// A point of an op's JSON object: the keys of the table alone and in its order, so that the same op always has the
/// same name. An empty variant is the op's first. Throws Error for an op without a benchmark.
inline Point make_point(const OpJson& op, const std::string& where, std::string variant, Cache cache) {
  if (!op.is_object() || !op.contains("op") || !op["op"].is_string())
    throw Error(where, "no op", "each entry is an object with a key \"op\", as for 'vlmest op'");
  const OpEntry* entry = find_entry(op["op"].get<std::string>());
  if (!entry)
    throw Error(where + ".op", "no benchmark of '" + op["op"].get<std::string>() + "'", "known: " + listed(op_names()));
  Point p{.op = OpJson{{"op", entry->name}}, .variant = std::move(variant), .cache = cache};
  for (const std::string_view key : entry->keys)
    if (!key.empty() && op.contains(std::string(key))) p.op[std::string(key)] = op[std::string(key)];
  if (p.variant.empty()) p.variant = entry->variants.front();
  return p;
}

/// The op of a point as the library reads it; nothing for what is none.
inline json::SingleOp read_op(const Point& p, int compute_capability) {
  return json::read_op(nlohmann::json(p.op), name(p), compute_capability);
}
inline bool is_launch(const Point& p) { return op_name(p) == "launch"; }

}  // namespace vlmest::bench
