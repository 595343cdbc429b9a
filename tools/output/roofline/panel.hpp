// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log_axis.hpp"

namespace vlmest::tool {

/// A rectangle in pixels.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool overlaps(const Box& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
  bool within(const Box& o) const { return left >= o.left && right <= o.right && top >= o.top && bottom <= o.bottom; }
};

/// Something drawn at a place, with a label that is drawn where there is room.
struct Marker {
  double x = 0, y = 0, radius = 0;
  std::string label;  ///< empty: none
};

/// One pair of axes; knows what has been drawn, so that labels find free places.
class Panel {
 public:
  Panel(const Box& frame, const LogAxis& x, const LogAxis& y, std::string_view id);

  const Box& frame() const { return frame_; }
  const LogAxis& x() const { return x_; }
  const LogAxis& y() const { return y_; }

  void axes(std::string_view heading, std::string_view x_title, std::string_view y_title);
  /// A line between two places in values, cut off at the frame.
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  /// Text along a line that rises by one decade a decade through (x, y), where fewest markers are.
  void label_slope(double x, double y, std::string_view text, bool above, const std::vector<Marker>& markers);
  /// Texts right of the frame, beside horizontal lines; those of near lines move apart. Called once, by rising y.
  void label_levels(const std::vector<std::pair<double, std::string>>& levels);
  /// Text at the foot of a vertical line.
  void label_foot(double x, std::string_view text);
  /// Markers' labels in their order: beside the marker, or a little way off with a line to it. One that finds no place
  /// is left out.
  void label_markers(const std::vector<Marker>& markers);

  /// Everything drawn so far, and from now on behind what is appended by the caller.
  std::string take();

 private:
  bool is_free(const Box& box) const;
  bool label_beside(const Marker& marker);
  bool label_with_leader(const Marker& marker, const Box& own);
  void text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view words);

  Box frame_;
  LogAxis x_, y_;
  std::string id_;
  std::string out_;
  std::vector<Box> taken_;  ///< by texts and markers
  std::vector<Box> lines_;  ///< along the lines, which a text does not cover but a leader may cross
};

/// About how wide a text of the labels' size is.
double text_width(std::string_view words);

}  // namespace vlmest::tool
