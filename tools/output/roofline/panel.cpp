// SPDX-License-Identifier: Apache-2.0
#include "panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "markup.hpp"

namespace vlmest::tool {
namespace {

constexpr double line_height = 13;
constexpr double pi = 3.14159265358979323846;

}  // namespace

double text_width(std::string_view words) {
  // A continuation byte of UTF-8 is no character of its own.
  const auto characters = std::count_if(words.begin(), words.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return 6.2 * static_cast<double>(characters);
}

Panel::Panel(const Box& frame, const LogAxis& x, const LogAxis& y, std::string_view id)
    : frame_(frame), x_(x), y_(y), id_(id) {}

void Panel::text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view words) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor,
                      css_class, escaped(words));
}

void Panel::axes(std::string_view heading, std::string_view x_title, std::string_view y_title) {
  const auto [left, top, right, bottom] = frame_;
  out_ += fmt::format(
      "<clipPath id=\"{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/></clipPath>\n", id_,
      left, top, right - left, bottom - top);
  std::array<std::string, 2> grids;  // minor, major
  for (const Tick& t : ticks(x_)) {
    const double at = x_(t.value);
    grids[t.major] += fmt::format("M{:.1f} {:.1f}V{:.1f}", at, top, bottom);
    if (t.major) text(at, bottom + 16, "middle", "tick", si(t.value));
  }
  for (const Tick& t : ticks(y_)) {
    const double at = y_(t.value);
    grids[t.major] += fmt::format("M{:.1f} {:.1f}H{:.1f}", left, at, right);
    if (t.major) text(left - 7, at + 4, "end", "tick", si(t.value));
  }
  out_ += fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"grid major\" d=\"{}\"/>\n", grids[0], grids[1]);
  out_ += fmt::format("<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", left,
                      top, right - left, bottom - top);
  text(left, top - 10, "start", "heading", heading);
  text((left + right) / 2, bottom + 36, "middle", "axis", x_title);
  const double middle = (top + bottom) / 2, at = left - 52;
  out_ += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"axis\">{}</text>\n", at,
      middle, escaped(y_title));
}

void Panel::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  const double left = x_(x1), from = y_(y1), right = x_(x2), to = y_(y2);
  out_ += fmt::format(
      "<line class=\"{}\" clip-path=\"url(#{})\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
      css_class, id_, left, from, right, to);
  const int steps = 1 + static_cast<int>(std::hypot(right - left, to - from) / 4);
  for (int i = 0; i <= steps; ++i) {
    const double t = static_cast<double>(i) / steps, x = left + t * (right - left), y = from + t * (to - from);
    lines_.push_back({x - 1, y - 1, x + 1, y + 1});
  }
}

void Panel::label_slope(double x, double y, std::string_view text, bool above, const std::vector<Marker>& markers) {
  const double angle = std::atan2(y_.decade(), x_.decade()), width = text_width(text);
  const double away = above ? -6 : 6 + line_height * 0.7;
  struct Spot {
    double x = 0, y = 0;
    std::size_t crowd = 0;
  };
  Spot best;
  bool found = false;
  // The middle of the text, from the foot of the line upwards.
  for (int step = 0; step < 40; ++step) {
    const double px = frame_.left + 10 + (frame_.right - frame_.left) * step / 40;
    const double value = x_.low * std::pow(10.0, (px - x_.begin) / x_.decade());
    const double py = y_(y * value / x);
    const double half_x = width / 2 * std::cos(angle), half_y = width / 2 * std::fabs(std::sin(angle));
    const Box box{px - half_x - 8, py - half_y - 8, px + half_x + 8, py + half_y + 8};
    if (!box.within(frame_)) continue;
    const auto crowd = static_cast<std::size_t>(std::count_if(markers.begin(), markers.end(), [&](const Marker& m) {
      // The distance to the line, and whether the marker stands beside the text.
      const double along = (m.x - px) * std::cos(angle) + (m.y - py) * std::sin(angle);
      const double across = -(m.x - px) * std::sin(angle) + (m.y - py) * std::cos(angle) - away;
      return std::fabs(along) < width / 2 + m.radius && std::fabs(across) < line_height / 2 + m.radius;
    }));
    if (!found || crowd < best.crowd) best = {px, py, crowd};
    found = true;
  }
  if (!found) return;
  out_ += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate({:.2f})\" y=\"{:.1f}\" text-anchor=\"middle\" "
      "class=\"ceiling\">{}</text>\n",
      best.x, best.y, angle * 180 / pi, away, escaped(text));
  // Upright boxes along the text.
  const double step = line_height;
  for (double t = -width / 2; t <= width / 2; t += step) {
    const double cx = best.x + t * std::cos(angle) - away * std::sin(angle);
    const double cy = best.y + t * std::sin(angle) + away * std::cos(angle);
    taken_.push_back({cx - step / 2, cy - step / 2, cx + step / 2, cy + step / 2});
  }
}

void Panel::label_levels(const std::vector<std::pair<double, std::string>>& levels) {
  std::vector<double> at;
  for (const auto& [y, words] : levels) at.push_back(y_(y));
  // Pixels grow downwards: each stands a line above the one before, and half of what is missing moves that one down.
  for (int round = 0; round < 20; ++round)
    for (std::size_t i = 1; i < at.size(); ++i)
      if (const double missing = at[i] + line_height - at[i - 1]; missing > 0) {
        at[i] -= missing / 2;
        at[i - 1] += missing / 2;
      }
  for (std::size_t i = 0; i < at.size(); ++i) text(frame_.right + 7, at[i] + 4, "start", "ceiling", levels[i].second);
}

void Panel::label_foot(double x, std::string_view words) {
  const double width = text_width(words);
  const bool room = x_(x) + 5 + width < frame_.right;
  double at = frame_.bottom - 7;
  const auto box = [&] {
    const double left = room ? x_(x) + 5 : x_(x) - 5 - width;
    return Box{left, at - line_height, left + width, at + 3};
  };
  while (!is_free(box()) && at > frame_.top + 2 * line_height) at -= line_height;
  text(x_(x) + (room ? 5 : -5), at, room ? "start" : "end", "ceiling", words);
  taken_.push_back(box());
}

bool Panel::is_free(const Box& box) const {
  const auto overlaps = [&](const Box& o) { return box.overlaps(o); };
  return box.within(frame_) && std::none_of(taken_.begin(), taken_.end(), overlaps) &&
         std::none_of(lines_.begin(), lines_.end(), overlaps);
}

bool Panel::label_beside(const Marker& m) {
  const double width = text_width(m.label), r = m.radius, d = r * 0.75;
  // Above and below, the middle may move to stay inside.
  const double middle =
      std::clamp(m.x, frame_.left + width / 2 + 1, std::max(frame_.right - width / 2 - 1, frame_.left + width / 2 + 1));
  struct Candidate {
    double x, y;  ///< of the text's base line
    const char* anchor;
  };
  const std::array<Candidate, 8> candidates{{{m.x + r + 4, m.y + 4, "start"},
                                             {m.x - r - 4, m.y + 4, "end"},
                                             {middle, m.y - r - 5, "middle"},
                                             {middle, m.y + r + 13, "middle"},
                                             {m.x + d + 4, m.y + d + 10, "start"},
                                             {m.x - d - 4, m.y - d - 4, "end"},
                                             {m.x + d + 4, m.y - d - 4, "start"},
                                             {m.x - d - 4, m.y + d + 10, "end"}}};
  for (const auto& c : candidates) {
    const std::string_view anchor = c.anchor;
    const double left = anchor == "start" ? c.x : anchor == "end" ? c.x - width : c.x - width / 2;
    const Box box{left, c.y - 10, left + width, c.y + 3};
    if (!is_free(box)) continue;
    text(c.x, c.y, anchor, "label", m.label);
    taken_.push_back(box);
    return true;
  }
  return false;
}

bool Panel::label_with_leader(const Marker& m, const Box& own) {
  const double width = text_width(m.label);
  const auto crosses = [&](double x1, double y1, double x2, double y2) {
    for (int i = 0; i <= 20; ++i) {
      const double x = x1 + (x2 - x1) * i / 20, y = y1 + (y2 - y1) * i / 20;
      const Box here{x - 1, y - 1, x + 1, y + 1};
      for (const Box& o : taken_)
        if (here.overlaps(o) && !o.within(own)) return true;
    }
    return false;
  };
  for (double away = 24; away < 260; away += line_height)
    for (const double down : {1.0, -1.0})
      for (const double aside : {0.0, -0.5, 0.5, -1.0, 1.0}) {
        const double x = m.x + aside * width / 2, edge = m.y + down * (m.radius + away);
        const Box box{x - width / 2 - 2, std::min(edge, edge + down * line_height), x + width / 2 + 2,
                      std::max(edge, edge + down * line_height)};
        const double foot = std::clamp(m.x, box.left + 4, box.right - 4);
        if (!is_free(box) || crosses(m.x, m.y + down * m.radius, foot, edge)) continue;
        out_ += fmt::format("<line class=\"leader\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", m.x,
                            m.y + down * m.radius, foot, edge);
        text(x, box.bottom - 3, "middle", "label", m.label);
        taken_.push_back(box);
        taken_.push_back({std::min(m.x, foot) - 2, std::min(m.y + down * m.radius, edge), std::max(m.x, foot) + 2,
                          std::max(m.y + down * m.radius, edge)});
        return true;
      }
  return false;
}

void Panel::label_markers(const std::vector<Marker>& markers) {
  const auto box = [](const Marker& m) { return Box{m.x - m.radius, m.y - m.radius, m.x + m.radius, m.y + m.radius}; };
  for (const Marker& m : markers) taken_.push_back(box(m));
  for (const Marker& m : markers)
    if (!m.label.empty() && !label_beside(m)) label_with_leader(m, box(m));
}

std::string Panel::take() { return std::exchange(out_, {}); }

}  // namespace vlmest::tool
