// SPDX-License-Identifier: Apache-2.0
// A small network of one's own: lifetimes follow the variables, as they do in Python.
#include <cstdio>

#include <vlmest/analysis/peak.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/stack/registry.hpp>

using namespace vlmest;

int main() {
  Builder builder;
  const Plan plan;
  Context c{builder, plan, stack_of(plan)};

  const Linear up = make_linear(c, "up", 1024, 4096, false), down = make_linear(c, "down", 4096, 1024, false);
  Value x = builder.existing("x", Role::input, plan.dtype, {8192, 1024});
  builder.begin_phase(PhaseKind::forward);
  Value hidden = forward(c, up, x);                // 64 MiB, held by the variable
  hidden = activate(c, Activation::relu, hidden);  // both are alive here, then the variable lets the first one go
  Value y = forward(c, down, std::move(hidden));
  builder.end_phase();

  const Graph& g = builder.graph;
  const Peak peak = requested_peak(g, g.phases[0].first, g.phases[0].last);
  std::printf("peak %.0f MiB inside %s\n", peak.bytes.value() / 0x1p20, g.node(peak.node).name);
  for (const TensorId t : live_at(g, peak.node)) {
    const Tensor& tensor = g.tensor(t);
    std::printf("  %-6s %-10s %-10s %4.0f MiB\n", path(g, tensor.scope).c_str(), tensor.name,
                std::string(name(tensor.role)).c_str(), requested_bytes(tensor).value() / 0x1p20);
  }
}
