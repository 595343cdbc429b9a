// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/core.h>

#include "log_axis.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;

Json point(const RooflineView& view, const RooflinePoint& p) {
  return {{"scope", p.scope},
          {"op", p.name},
          {"shape", p.shape},
          {"dtype", std::string(name(p.dtype))},
          {"count", p.count},
          {"kernels", p.each.kernels},
          {"flops", p.each.flops.value()},
          {"flops_performed", p.performed.value()},
          {"bytes_read", p.each.read.value()},
          {"bytes_written", p.each.written.value()},
          {"time_us", significant(p.each.time.us())},
          {"total_us", significant(p.time().us())},
          {"roofline_us", significant(p.each.roofline.us())},
          {"share", significant(view.share(p))},
          {"intensity", significant(p.intensity())},
          {"flops_per_s", significant(p.flop_rate().value)},
          {"bytes_per_s", significant(p.bandwidth().value)},
          {"bound", std::string(name(bound(p.each)))}};
}

Json measurement(const RooflineView& view, const MeasuredPoint& m) {
  const RooflinePoint& p = view.points.points[m.point];
  return {{"name", m.name},
          {"point", m.point},
          {"time_us", significant(m.time.us())},
          {"bytes", m.moved.value()},
          {"bytes_counted", m.counted},
          {"intensity", significant(intensity(p.performed, m.moved))},
          {"flops_per_s", significant(static_cast<double>(p.performed.value()) / m.time.value)},
          {"bytes_per_s", significant(static_cast<double>(m.moved.value()) / m.time.value)}};
}

template <class Rate>
Json ceilings(const std::vector<Ceiling<Rate>>& list, const char* key) {
  Json r = Json::array();
  for (const auto& c : list) r.push_back({{"name", c.name}, {"measured", c.measured}, {key, c.rate.value}});
  return r;
}

Table table(const RooflineView& view, std::size_t top) {
  Table t{.head = {"op", "shape", "count", "each", "time", "share", "FLOP/B", "FLOP/s", "bytes/s", "of roof", "bound"},
          .rows = {},
          .left = 2};
  Seconds rest{};
  for (std::size_t i = 0; i < view.points.points.size(); ++i) {
    const RooflinePoint& p = view.points.points[i];
    if (i >= top) {
      rest += p.time();
      continue;
    }
    const bool flops = p.performed > Flops{};
    t.rows.push_back({p.scope + (p.scope.empty() ? "" : " ") + p.name, p.shape, grouped(p.count), show(p.each.time),
                      show(p.time()), fmt::format("{:.1f} %", 100 * view.share(p)), flops ? si(p.intensity()) : "-",
                      flops ? si(p.flop_rate().value) : "-", si(p.bandwidth().value),
                      fmt::format("{:.0f} %", 100 * p.of_roofline()), std::string(name(bound(p.each)))});
  }
  if (view.points.points.size() > top) {
    const double share = view.points.total.time.value > 0 ? rest.value / view.points.total.time.value : 0;
    t.rows.push_back({fmt::format("{} others", view.points.points.size() - top), "", "", "", show(rest),
                      fmt::format("{:.1f} %", 100 * share), "", "", "", "", ""});
  }
  return t;
}

Table ceiling_table(const RooflineView& view) {
  Table t{.head = {"ceiling", "rate", "ridge"}, .rows = {}};
  const auto title = [](const auto& c) { return c.name + (c.measured ? ", measured" : ""); };
  for (const auto& c : view.ceilings.bandwidth) t.rows.push_back({title(c), si(c.rate.value, "B/s"), ""});
  for (const auto& c : view.ceilings.compute)
    t.rows.push_back({title(c), si(c.rate.value, "FLOP/s"), si(ridge(view.ceilings.dram(), c.rate), "FLOP/B")});
  t.rows.push_back({"shortest kernel", show(view.ceilings.kernel_floor), ""});
  return t;
}

Table measured_table(const RooflineView& view) {
  Table t{.head = {"measured", "op", "time", "predicted", "error"}, .rows = {}, .left = 2};
  for (const MeasuredPoint& m : view.measured) {
    const RooflinePoint& p = view.points.points[m.point];
    t.rows.push_back({m.name, p.scope + (p.scope.empty() ? "" : " ") + p.name, show(m.time), show(p.each.time),
                      fmt::format("{:+.1f} %", 100 * (p.each.time.value / m.time.value - 1))});
  }
  return t;
}

std::string summary(const RooflineView& view) {
  return fmt::format("{}: {} in {} kernels\n{}\n", view.title(), show(view.points.total.time),
                     grouped(view.points.total.kernels), view.inputs);
}

std::string elsewhere(const RooflineView& view) {
  if (view.measured_elsewhere == 0) return {};
  return fmt::format("\n{} measurements are of ops that this phase does not run\n", view.measured_elsewhere);
}

}  // namespace

nlohmann::ordered_json roofline_json(const RooflineView& view) {
  Json r = {{"schema_version", 1},
            {"model", view.model},
            {"phase", view.phase},
            {"device", view.device},
            {"time_us", significant(view.points.total.time.us())},
            {"kernels", view.points.total.kernels},
            {"executions_without_kernels", view.points.idle},
            {"ceilings",
             {{"bandwidth", ceilings(view.ceilings.bandwidth, "bytes_per_s")},
              {"compute", ceilings(view.ceilings.compute, "flops_per_s")},
              {"kernel_floor_us", view.ceilings.kernel_floor.us()}}},
            {"points", Json::array()},
            {"measured", Json::array()},
            {"measured_elsewhere", view.measured_elsewhere}};
  for (const RooflinePoint& p : view.points.points) r["points"].push_back(point(view, p));
  for (const MeasuredPoint& m : view.measured) r["measured"].push_back(measurement(view, m));
  return r;
}

std::string roofline_text(const RooflineView& view, std::size_t top) {
  std::string out = summary(view) + "\n" + text(ceiling_table(view)) + "\n" + text(table(view, top));
  if (!view.measured.empty()) out += "\n" + text(measured_table(view));
  return out + elsewhere(view);
}

std::string roofline_markdown(const RooflineView& view, std::size_t top) {
  std::string out = "# " + view.title() + "\n\n" + view.inputs + "\n\n" + markdown(ceiling_table(view)) + "\n" +
                    markdown(table(view, top));
  if (!view.measured.empty()) out += "\n" + markdown(measured_table(view));
  return out + elsewhere(view);
}

std::string roofline_csv(const RooflineView& view) {
  Table t{.head = {"scope", "op", "shape", "dtype", "count", "kernels", "flops_performed", "bytes_read",
                   "bytes_written", "time_us", "total_us", "roofline_us", "share", "bound"},
          .rows = {}};
  for (const RooflinePoint& p : view.points.points)
    t.rows.push_back({p.scope, p.name, p.shape, std::string(name(p.dtype)), std::to_string(p.count),
                      std::to_string(p.each.kernels), std::to_string(p.performed.value()),
                      std::to_string(p.each.read.value()), std::to_string(p.each.written.value()),
                      fmt::format("{:.4f}", p.each.time.us()), fmt::format("{:.4f}", p.time().us()),
                      fmt::format("{:.4f}", p.each.roofline.us()), fmt::format("{:.6f}", view.share(p)),
                      std::string(name(bound(p.each)))});
  return csv(t);
}

}  // namespace vlmest::tool
