// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "chart.hpp"
#include "log_axis.hpp"
#include "markup.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

constexpr std::string_view page_template =
#include <embedded/page.html.inc>
    ;
constexpr std::string_view page_style =
#include <embedded/page.css.inc>
    ;
constexpr std::string_view script =
#include <embedded/page.js.inc>
    ;

/// The template with each {{name}} replaced; what is put in is not read again.
std::string filled(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string r;
  for (std::size_t at = 0; at < text.size();) {
    const auto open = text.find("{{", at);
    r += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const auto close = text.find("}}", open);
    const auto name = text.substr(open + 2, close - open - 2);
    for (const auto& [known, value] : values)
      if (known == name) r += value;
    at = close + 2;
  }
  return r;
}

std::string facts(const RooflineView& view) {
  const Work& total = view.points.total;
  std::string r;
  const auto fact = [&](std::string_view what, const std::string& value) {
    r += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", what, escaped(value));
  };
  fact("GPU time", show(total.time));
  fact("kernels", grouped(total.kernels));
  fact("FLOPs", si(static_cast<double>(total.flops.value()), "FLOP"));
  fact("DRAM traffic", si(static_cast<double>((total.read + total.written).value()), "B"));
  if (total.time.value > 0)
    fact("of the roofline", fmt::format("{:.0f} %", 100 * total.roofline.value / total.time.value));
  fact("bound by", std::string(name(bound(total))));
  return r;
}

std::string note(const RooflineView& view) {
  std::int64_t executions = 0;
  for (const RooflinePoint& p : view.points.points) executions += p.count;
  std::string r = fmt::format(
      "Executions that launch kernels: {}; that launch none (views, waits of the host): {}. Solid lines are the "
      "datasheet of the {}, dashed ones were measured.",
      grouped(executions), grouped(view.points.idle), view.product);
  if (!view.measured.empty() || view.measured_elsewhere > 0)
    r += fmt::format(" Measurements drawn: {}; of ops that this phase does not run: {}.", view.measured.size(),
                     view.measured_elsewhere);
  return escaped(r);
}

struct Column {
  const char* title;
  bool words;
};
constexpr std::array columns{Column{"op", true},      Column{"shape", true},    Column{"count", false},
                             Column{"each", false},   Column{"time", false},    Column{"share", false},
                             Column{"FLOP", false},   Column{"bytes", false},   Column{"FLOP/B", false},
                             Column{"FLOP/s", false}, Column{"bytes/s", false}, Column{"of roof", false},
                             Column{"bound", true}};

std::string headings() {
  std::string r;
  for (const Column& c : columns)
    r +=
        fmt::format("<th scope=\"col\"{}{}><button type=\"button\">{}</button></th>", c.words ? " class=\"words\"" : "",
                    std::string_view(c.title) == "time" ? " aria-sort=\"descending\"" : "", c.title);
  return r;
}

std::string number_cell(double value, const std::string& shown) {
  return fmt::format("<td data-v=\"{}\">{}</td>", significant(value), value > 0 ? escaped(shown) : "");
}

std::string row(const RooflineView& view, std::size_t id) {
  const RooflinePoint& p = view.points.points[id];
  const auto flops = static_cast<double>(p.performed.value()), bytes = static_cast<double>(p.moved().value());
  const double share = view.share(p);
  std::string r = fmt::format("<tr id=\"op-{}\" data-share=\"{}\">", id, significant(share));
  r += fmt::format("<td class=\"words op\">{} <b>{}</b></td>", escaped(p.scope), escaped(p.name));
  r += fmt::format("<td class=\"words shape\">{} {}</td>", escaped(p.shape), name(p.dtype));
  r += number_cell(static_cast<double>(p.count), grouped(p.count));
  r += number_cell(p.each.time.us(), show(p.each.time));
  r += number_cell(p.time().us(), show(p.time()));
  r += number_cell(share, fmt::format("{:.2f} %", 100 * share));
  r += number_cell(flops, si(flops));
  r += number_cell(bytes, si(bytes, "B"));
  r += number_cell(p.intensity(), si(p.intensity()));
  r += number_cell(p.flop_rate().value, si(p.flop_rate().value));
  r += number_cell(p.bandwidth().value, si(p.bandwidth().value));
  r += number_cell(p.of_roofline(), fmt::format("{:.0f} %", 100 * p.of_roofline()));
  const auto b = name(bound(p.each));
  return r + fmt::format("<td class=\"words bound {0}\">{0}</td></tr>\n", b);
}

}  // namespace

std::string roofline_page(const RooflineView& view) {
  std::string rows;
  for (std::size_t i = 0; i < view.points.points.size(); ++i) rows += row(view, i);
  return filled(page_template, {{"title", escaped(view.title())},
                                {"inputs", escaped(view.inputs)},
                                {"style", std::string(page_style)},
                                {"facts", facts(view)},
                                {"chart", roofline_svg(view, false)},
                                {"note", note(view)},
                                {"headings", headings()},
                                {"rows", rows},
                                {"script", std::string(script)}});
}

}  // namespace vlmest::tool
