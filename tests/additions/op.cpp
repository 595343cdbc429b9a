// SPDX-License-Identifier: Apache-2.0
// What an op is good for once its file and its words are there (op.cmake).
#include <algorithm>

#include <vlmest/analysis/impl/faster_shape.hpp>
#include <vlmest/analysis/impl/op_time.hpp>
#include <vlmest/graph/eager.hpp>
#include <vlmest/json/op.hpp>
#include <vlmest/report/impl/measured_op.hpp>
#include <vlmest/report/impl/roofline_points.hpp>
#include <vlmest/report/impl/run_time.hpp>

using namespace vlmest;

constexpr Toy toy{.elements = 1024};
// Sums over a graph ask for its cost.
static_assert(cost(Op(toy)).read == Bytes(2048) && cost(Op(toy)).written == Bytes(2048));

// A function of eager torch records it.
Value doubled(Value x) {
  Builder& b = x.builder();
  const Toy op{.elements = numel(x.shape()).value(), .dtype = x.dtype()};
  const TensorId r = b.result(op.dtype, x.shape(), "doubled");
  return eager::emit1(b, "doubled", op, r, {}, x);
}

// It takes time and DRAM traffic, and has a place in the report.
Seconds time_of(const Device& d) { return op_time(Op(toy), d).time + op_time(Op(Matmul{}), d).time; }
DramTraffic traffic_of(const Device& d) { return dram_traffic(Op(toy), d); }

// `vlmest op` reads it.
static_assert(std::ranges::any_of(json::single_op::known, [](const auto& e) { return e.name == "toy"; }));
