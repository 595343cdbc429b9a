// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>
#include <cmath>

#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::tool {
bool Coordinates::shows(const RooflinePoint& p) const {
  return p.each.time.value > 0 && p.moved() > Bytes{} && (p.performed > Flops{}) == flops;
}

double Coordinates::x(const RooflinePoint& p, Bytes moved) const {
  return flops ? intensity(p.performed, moved) : as_double(moved) / static_cast<double>(p.each.kernels);
}

double Coordinates::y(const RooflinePoint& p, Bytes moved, Seconds time) const {
  return (flops ? as_double(p.performed) : as_double(moved)) / time.value;
}

std::vector<Place> places(const RooflineView& view, const Coordinates& c, const Panel& panel) {
  std::vector<Place> r;
  for (std::size_t i = 0; i < view.points.points.size(); ++i) {
    const RooflinePoint& p = view.points.points[i];
    if (!c.shows(p)) continue;
    const double x = panel.x()(c.x(p, p.moved())), y = panel.y()(c.y(p, p.moved(), p.each.time));
    auto at = std::find_if(r.begin(), r.end(), [&](const Place& o) {
      return std::fabs(o.x - x) < 1 && std::fabs(o.y - y) < 1 &&
             bound(view.points.points[o.points.front()].each) == bound(p.each);
    });
    if (at == r.end()) at = r.insert(at, {x, y, {}, 0});
    at->points.push_back(i);
    at->share += view.share(p);
  }
  sort_stably(r, [](const Place& a, const Place& b) { return a.share > b.share; });
  return r;
}

std::vector<MeasuredPlace> measured_places(const RooflineView& view, const Coordinates& c, const Panel& panel) {
  std::vector<MeasuredPlace> r;
  for (const MeasuredPoint& m : view.measured) {
    const RooflinePoint& p = view.points.points[m.point];
    if (!c.shows(p)) continue;
    const double x = panel.x()(c.x(p, m.moved)), y = panel.y()(c.y(p, m.moved, m.time));
    if (!r.empty() && r.back().measured->name == m.name && r.back().x == x && r.back().y == y)
      r.back().points.push_back(m.point);
    else
      r.push_back({x, y, panel.x()(c.x(p, p.moved())), panel.y()(c.y(p, p.moved(), p.each.time)), {m.point}, &m});
  }
  return r;
}

}  // namespace vlmest::tool
