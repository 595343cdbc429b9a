// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "describe.hpp"
#include "markup.hpp"
#include "panel.hpp"
#include "places.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

constexpr std::string_view chart_style =
#include <embedded/chart.css.inc>
    ;

constexpr double width = 1120, left = 84, right = width - 150;
constexpr double largest_radius = 30, smallest_radius = 3.5;
constexpr double least_labelled = 0.004;  ///< share of the time
constexpr std::size_t most_labels = 16;
constexpr double headroom = 2;  ///< a factor above the roof, for labels

double radius(double share) { return std::max(smallest_radius, largest_radius * std::sqrt(share)); }

/// "gate_proj, up_proj", "mlp mul and 3 more"
std::string label(const RooflineView& view, const Place& place) {
  std::vector<std::string> names;
  for (const std::size_t i : place.points)
    if (const auto n = short_name(view.points.points[i]); std::find(names.begin(), names.end(), n) == names.end())
      names.push_back(n);
  constexpr std::size_t longest = 34;
  std::string r = names.front();
  std::size_t told = 1;
  for (; told < names.size() && r.size() + names[told].size() < longest; ++told) r += ", " + names[told];
  return told < names.size() ? r + fmt::format(" and {} more", names.size() - told) : r;
}

/// A group that a pointer and a keyboard reach, with all its text as its title.
std::string group(std::string_view css_class, const std::vector<std::size_t>& points, const std::string& title,
                  const std::string& drawing) {
  std::string ids;
  for (const std::size_t i : points) ids += (ids.empty() ? "" : " ") + std::to_string(i);
  return fmt::format("<g class=\"{}\" tabindex=\"0\" role=\"img\" data-points=\"{}\"><title>{}</title>{}</g>\n",
                     css_class, ids, escaped(title), drawing);
}

std::string marker(const RooflineView& view, const Place& place) {
  constexpr std::size_t most = 6;
  std::string title;
  for (std::size_t k = 0; k < std::min(place.points.size(), most); ++k)
    title += (k ? "\n\n" : "") + describe(view, view.points.points[place.points[k]]);
  if (place.points.size() > most) title += fmt::format("\n\nand {} more here", place.points.size() - most);
  const Bound b = bound(view.points.points[place.points.front()].each);
  return group(
      fmt::format("point {}", name(b)), place.points, title,
      fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", place.x, place.y, radius(place.share)));
}

/// A diamond, and a line to the point that was predicted.
std::string measured_marker(const RooflineView& view, const MeasuredPlace& m) {
  std::string title = describe(view, *m.measured);
  if (m.points.size() > 1) title += fmt::format("\nthe op of {} points", m.points.size());
  return group("measured", m.points, title,
               fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
                           "<path d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5z\"/>",
                           m.predicted_x, m.predicted_y, m.x, m.y, m.x, m.y - 5));
}

/// "4.8 TB/s DRAM", "4.3 TB/s measured".
template <class Rate>
std::string words(const Ceiling<Rate>& c, const std::vector<Ceiling<Rate>>& all, std::string_view unit) {
  const bool has_other =
      std::any_of(all.begin(), all.end(), [&](const auto& o) { return o.name == c.name && o.measured != c.measured; });
  const std::string rate = si(c.rate.value, unit);
  return c.measured ? rate + (has_other ? "" : " " + c.name + ",") + " measured" : rate + " " + c.name;
}

/// For the levels of a panel, by rising rate. The axis says the unit.
template <class Rate>
std::vector<std::pair<double, std::string>> levels(const std::vector<Ceiling<Rate>>& all) {
  std::vector<std::pair<double, std::string>> r;
  for (const auto& c : all) r.emplace_back(c.rate.value, words(c, all, ""));
  std::sort(r.begin(), r.end());
  return r;
}

std::string_view css_class(bool measured) { return measured ? "roof measured-roof" : "roof"; }

/// Slopes of the bandwidths up to the highest peak, and the peaks from the first slope on.
void flop_ceilings(const RooflineView& view, Panel& panel, const std::vector<Marker>& markers) {
  const RooflineCeilings& c = view.ceilings;
  const double low = panel.x().low, high = panel.x().high;
  for (const auto& b : c.bandwidth) {
    FlopRate top = c.compute.front().rate;
    for (const auto& peak : c.compute)
      if (peak.measured && b.measured) top = peak.rate;
    const double end = ridge(b.rate, top);
    panel.line(low, b.rate.value * low, end, top.value, css_class(b.measured));
    panel.label_slope(end, top.value, words(b, c.bandwidth, "B/s"), !b.measured, markers);
  }
  for (const auto& peak : c.compute)
    panel.line(ridge(c.dram(), peak.rate), peak.rate.value, high, peak.rate.value, css_class(peak.measured));
  panel.label_levels(levels(c.compute));
  for (const auto& peak : c.compute) {
    if (peak.measured) continue;
    const double at = ridge(c.dram(), peak.rate);
    panel.line(at, peak.rate.value, at, panel.y().low, "ridge");
    panel.label_foot(at, fmt::format("ridge {}", si(at, "FLOP/B")));
  }
}

/// Levels of the bandwidths, and the slope of kernels that take no longer than the floor.
void byte_ceilings(const RooflineView& view, Panel& panel, const std::vector<Marker>& markers) {
  const double low = panel.x().low, high = panel.x().high, floor = view.ceilings.kernel_floor.value;
  const Bandwidth dram = view.ceilings.dram();
  for (const auto& b : view.ceilings.bandwidth)
    panel.line(floor > 0 ? dram.value * floor : low, b.rate.value, high, b.rate.value, css_class(b.measured));
  panel.label_levels(levels(view.ceilings.bandwidth));
  if (floor <= 0) return;
  panel.line(low, low / floor, dram.value * floor, dram.value, css_class(false));
  panel.label_slope(dram.value * floor, dram.value, "the shortest kernel, " + show(view.ceilings.kernel_floor), true,
                    markers);
}

/// Draws the ops that these coordinates show into the height from `top` on; empty where there are none.
std::string panel_of(const RooflineView& view, const Coordinates& c, double top, double height) {
  LogRange xs, ys;
  for (const RooflinePoint& p : view.points.points)
    if (c.shows(p)) {
      xs.add(c.x(p, p.moved()));
      ys.add(c.y(p, p.moved(), p.each.time));
    }
  if (xs.empty()) return {};
  for (const MeasuredPoint& m : view.measured)
    if (const RooflinePoint& p = view.points.points[m.point]; c.shows(p)) {
      xs.add(c.x(p, m.moved));
      ys.add(c.y(p, m.moved, m.time));
    }
  if (c.flops) {
    for (const auto& peak : view.ceilings.compute) {
      xs.add(ridge(view.ceilings.dram(), peak.rate));
      ys.add(peak.rate.value * headroom);
    }
  } else {
    xs.add(view.ceilings.dram().value * view.ceilings.kernel_floor.value);
    for (const auto& b : view.ceilings.bandwidth) ys.add(b.rate.value * headroom);
  }
  const Box frame{left, top, right, top + height};
  Panel panel(frame, xs.axis(frame.left, frame.right, 2.5), ys.axis(frame.bottom, frame.top, 2.2),
              c.flops ? "flops-frame" : "bytes-frame");
  if (c.flops)
    panel.axes("Ops that count FLOPs", "FLOPs per byte of DRAM traffic", "FLOP/s");
  else
    panel.axes("Ops that count none", "bytes read and written by a kernel", "bytes/s");

  const std::vector<Place> all = places(view, c, panel);
  std::vector<Marker> markers;
  std::size_t labels = 0;
  for (const Place& p : all) {
    const bool labelled = p.share >= least_labelled && ++labels <= most_labels;
    markers.push_back({p.x, p.y, radius(p.share), labelled ? label(view, p) : std::string()});
  }
  const std::vector<MeasuredPlace> measured = measured_places(view, c, panel);
  for (const MeasuredPlace& m : measured) markers.push_back({m.x, m.y, 6, {}});
  c.flops ? flop_ceilings(view, panel, markers) : byte_ceilings(view, panel, markers);
  std::string out = panel.take();
  for (const Place& p : all) out += marker(view, p);
  for (const MeasuredPlace& m : measured) out += measured_marker(view, m);
  panel.label_markers(markers);
  return out + panel.take();
}

std::string legend(const RooflineView& view, double y) {
  const Work& total = view.points.total;
  const std::array<std::pair<Bound, Seconds>, 3> bounds{{{Bound::compute, total.compute_bound},
                                                         {Bound::memory, total.memory_bound},
                                                         {Bound::launch, total.launch_bound}}};
  std::string out;
  double x = left;
  const auto entry = [&](std::string_view css_class, const std::string& drawing, const std::string& words) {
    out += fmt::format("<g class=\"{}\">{}</g><text x=\"{:.1f}\" y=\"{:.1f}\" class=\"legend\">{}</text>\n", css_class,
                       drawing, x + 18, y + 4, escaped(words));
    x += 18 + 6.6 * static_cast<double>(words.size()) + 22;
  };
  for (const auto& [b, time] : bounds)
    entry(fmt::format("point {}", name(b)), fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\"/>", x + 8, y),
          fmt::format("{}-bound, {:.1f} % of the time", name(b),
                      total.time.value > 0 ? 100 * time.value / total.time.value : 0));
  if (!view.measured.empty())
    entry("measured", fmt::format("<path d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5z\"/>", x + 8, y - 5), "measured");
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"legend quiet\">area: share of the time</text>\n", x,
                           y + 4);
}

}  // namespace

std::string roofline_svg(const RooflineView& view, bool standalone) {
  double y = standalone ? 30 : 0;
  std::string body;
  if (standalone) {
    body += fmt::format("<text x=\"{}\" y=\"{}\" class=\"caption\">{}</text>\n", left, y, escaped(view.title()));
    body +=
        fmt::format("<text x=\"{}\" y=\"{}\" class=\"legend quiet\">{}</text>\n", left, y + 20, escaped(view.inputs));
    y += 30;
  }
  body += legend(view, y + 16);
  y += 62;
  for (const auto& [flops, height] : {std::pair{true, 500.0}, std::pair{false, 360.0}})
    if (const std::string panel = panel_of(view, {flops}, y, height); !panel.empty()) {
      body += panel;
      y += height + 84;
    }
  y -= 34;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roofline\" viewBox=\"0 0 {0} {1}\"{2} role=\"group\" "
      "aria-labelledby=\"roofline-title roofline-desc\">\n"
      "<title id=\"roofline-title\">{3}</title>\n"
      "<desc id=\"roofline-desc\">Roofline: {4} ops that take {5} together, by what limits them. {6}.</desc>\n"
      "<style>{7}</style>\n{8}{9}</svg>\n",
      width, y, standalone ? fmt::format(" width=\"{}\" height=\"{}\"", width, y) : std::string(),
      escaped(view.title()), view.points.points.size(), show(view.points.total.time), escaped(view.inputs), chart_style,
      standalone ? "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" : "", body);
}

}  // namespace vlmest::tool
