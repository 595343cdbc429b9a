// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <fmt/core.h>

#include "log_axis.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

/// The last name of a module path: "mlp" of "layers.*.mlp", "layers" of "layers.*".
std::string last_name(std::string_view scope) {
  while (!scope.empty()) {
    const auto dot = scope.rfind('.');
    const auto name = scope.substr(dot == std::string_view::npos ? 0 : dot + 1);
    const bool number = name == "*" || name.find_first_not_of("0123456789") == std::string_view::npos;
    // An adapter's name, in "lora_A.default", says nothing.
    if (!number && name != "default") return std::string(name);
    scope = scope.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return {};
}

/// "1.07 GFLOP, 25.2 MB, 42.5 FLOP/B"
std::string work_line(Flops performed, Bytes moved, bool counted) {
  const std::string bytes = si(as_double(moved), "B") + (counted ? " counted" : "");
  if (performed == Flops{}) return bytes;
  return fmt::format("{}, {}, {}", si(as_double(performed), "FLOP"), bytes, si(intensity(performed, moved), "FLOP/B"));
}

std::string rate_line(Flops performed, Bytes moved, Seconds time) {
  const std::string bandwidth = si(as_double(moved) / time.value, "B/s");
  return performed == Flops{} ? bandwidth : si(as_double(performed) / time.value, "FLOP/s") + ", " + bandwidth;
}

}  // namespace

std::string short_name(const RooflinePoint& p) {
  const std::string module = last_name(p.scope);
  std::string op = p.name.substr(0, p.name.find('.'));
  if (std::holds_alternative<Attention>(p.op) || std::holds_alternative<AttentionBackward>(p.op)) op = "attention";
  if (std::holds_alternative<Matmul>(p.op)) {
    // What a linear module runs goes without saying.
    for (const char* linear : {"proj", "head", "fc", "linear", "qkv"})
      if (module.find(linear) != std::string::npos) return module;
  }
  return module.empty() ? op : module + " " + op;
}

std::string describe(const RooflineView& view, const RooflinePoint& p) {
  return fmt::format("{} {}\n{}, {}\n{} x {} = {}, {:.3g} % of the time\n{}\n{}\n{:.0f} % of the roofline, bound by {}",
                     p.scope.empty() ? "(model)" : p.scope, p.name, p.shape, name(p.dtype), grouped(p.count),
                     show(p.each.time), show(p.time()), 100 * view.share(p), work_line(p.performed, p.moved(), false),
                     rate_line(p.performed, p.moved(), p.each.time), 100 * p.of_roofline(), name(bound(p.each)));
}

std::string describe(const RooflineView& view, const MeasuredPoint& m) {
  const RooflinePoint& p = view.points.points[m.point];
  return fmt::format("measured: {}\n{} {}\n{}, predicted {} ({:+.1f} %)\n{}\n{}", m.name, p.scope, p.name, show(m.time),
                     show(p.each.time), 100 * (p.each.time.value / m.time.value - 1),
                     work_line(p.performed, m.moved, m.counted), rate_line(p.performed, m.moved, m.time));
}

}  // namespace vlmest::tool
