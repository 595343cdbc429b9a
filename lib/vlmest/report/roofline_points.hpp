// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vlmest/analysis/work.hpp>
#include <vlmest/graph/stretches.hpp>

namespace vlmest {

/// Equal executions of an op by modules of one path, as one point of a roofline.
struct RooflinePoint {
  std::string scope;  ///< module path; a number that differs among the executions is '*'
  std::string name;   ///< the ATen op's name
  std::string shape;  ///< sizes of a product or a kernel, else the shape of the first result
  Op op;
  DType dtype = DType::bf16;   ///< of the first result
  DType engine_dtype = dtype;  ///< the arithmetic's
  Engine engine = Engine::idle;
  std::int64_t count = 0;
  Flops performed{};  ///< FLOPs that take time: the visible half of a causal attention, and what no counter counts
  Work each;          ///< of one execution

  Bytes moved() const { return each.read + each.written; }
  Seconds time() const { return each.time * static_cast<double>(count); }
  double intensity() const { return vlmest::intensity(performed, moved()); }
  /// Achieved; zero where an execution takes no time.
  FlopRate flop_rate() const { return {per_second(static_cast<double>(performed.value()))}; }
  Bandwidth bandwidth() const { return {per_second(static_cast<double>(moved().value()))}; }
  /// The time on the pure roofline as a part of the expected one: 1 on the roof, above it where a cache helps.
  double of_roofline() const { return each.time.value > 0 ? each.roofline.value / each.time.value : 0; }

 private:
  double per_second(double n) const { return each.time.value > 0 ? n / each.time.value : 0; }
};

struct RooflinePoints {
  std::vector<RooflinePoint> points;  ///< by time, the longest first
  std::int64_t idle = 0;              ///< executions that launch nothing: views, waits of the host
  Work total;                         ///< of all points
};

namespace roofline_points {

/// What an op works on, in words.
std::string shape(const Graph& g, const Node& n);

inline DType dtype(const Graph& g, const Node& n, const Cost& c) {
  const auto tensors = n.outputs > 0 ? g.outputs(n) : g.inputs(n);
  return tensors.empty() ? c.dtype : g.tensor(tensors.front()).dtype;
}

/// The numbers along a module's path, and the path without them.
struct ModulePath {
  std::string names;
  std::vector<std::int32_t> numbers;
};

ModulePath module_path(const Graph& g, ScopeId s);

/// The path with its numbers in place; one that differs among the executions is a '*'.
std::string pattern(const ModulePath& m, const std::vector<bool>& differs);

}  // namespace roofline_points

/// The ops of these stretches of a graph, equal ones together. The counts and `idle` add up to the executions, and the
/// points' times to the time of the stretches.
RooflinePoints place_on_roofline(const Graph& g, std::span<const Repeated> stretches, const Device& device);

/// Whether a measured op is what this point's executions run: the same sizes and types. A bias does not count. Ops of
/// memory have no sizes, so theirs are the bytes; which op it is, their names tell.
bool same_op(const Op& a, const Op& b);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/roofline_points.hpp>
#endif
