// SPDX-License-Identifier: Apache-2.0
// The chart's scales, numbers and escaping.
#include "output/roofline/log_axis.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "output/roofline/markup.hpp"

namespace vlmest::tool::log_axis_test {
namespace {

TEST(LogAxis, MapsDecadesEvenly) {
  const LogAxis x{0.1, 1000, 50, 450};
  EXPECT_DOUBLE_EQ(x(0.1), 50);
  EXPECT_DOUBLE_EQ(x(1), 150);
  EXPECT_DOUBLE_EQ(x(1000), 450);
  EXPECT_DOUBLE_EQ(x(std::sqrt(10.0)), 200);
  EXPECT_DOUBLE_EQ(x.decade(), 100);
  const LogAxis up{1, 100, 300, 100};
  EXPECT_DOUBLE_EQ(up(10), 200);
  EXPECT_DOUBLE_EQ(up.decade(), -100);
}

TEST(LogAxis, TicksAreAllMultiplesOfPowersOfTen) {
  const auto t = ticks({0.1, 100, 0, 1});
  ASSERT_EQ(t.size(), 28u);
  EXPECT_DOUBLE_EQ(t.front().value, 0.1);
  EXPECT_DOUBLE_EQ(t.back().value, 100);
  int major = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    EXPECT_TRUE(i == 0 || t[i].value > t[i - 1].value);
    major += t[i].major;
  }
  EXPECT_EQ(major, 4);
  std::vector<double> short_axis;
  for (const Tick& s : ticks({3, 70, 0, 1}))
    if (s.major) short_axis.push_back(s.value);
  EXPECT_EQ(short_axis, (std::vector<double>{5, 10, 20, 50}));
}

TEST(LogRange, HoldsItsValuesWithRoom) {
  LogRange r;
  EXPECT_TRUE(r.empty());
  for (const double v : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) r.add(v);
  EXPECT_TRUE(r.empty());
  r.add(5e3);
  r.add(20);
  const LogAxis a = r.axis(0, 100, 2);
  EXPECT_DOUBLE_EQ(a.low, 10);
  EXPECT_DOUBLE_EQ(a.high, 1e4);
  LogRange one;
  one.add(7);
  const LogAxis b = one.axis(0, 100, 2);
  EXPECT_NEAR(b.high / b.low, 100, 1e-9);
  EXPECT_NEAR(b(7), 50, 1e-9);
}

TEST(Si, ThreeDigitsAndAPrefix) {
  EXPECT_EQ(si(0.05), "0.05");
  EXPECT_EQ(si(1000), "1 k");
  EXPECT_EQ(si(999.7), "1 k");
  EXPECT_EQ(si(989.4e12, "FLOP/s"), "989 TFLOP/s");
  EXPECT_EQ(si(12, "B"), "12 B");
  EXPECT_EQ(si(2.5e9), "2.5 G");
}

TEST(Markup, EscapesWhatAMarkupLanguageReads) {
  EXPECT_EQ(escaped("<a b=\"c\" d='e'>&amp;"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
  EXPECT_EQ(escaped("größe 图像 \xF0\x9F\x96\xBC\n\t"), "größe 图像 \xF0\x9F\x96\xBC\n\t");
  const std::string lost = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string("\0\x1B\x7F", 3)), lost + lost + lost);
  EXPECT_EQ(escaped("\xC3"), lost);                                   // cut off
  EXPECT_EQ(escaped("\xC0\xBC"), lost + lost);                        // an overlong <
  EXPECT_EQ(escaped("\xED\xA0\x80"), lost + lost + lost);             // a surrogate
  EXPECT_EQ(escaped("\xEF\xBF\xBF"), lost + lost + lost);             // U+FFFF
  EXPECT_EQ(escaped("\xF5\x80\x80\x80"), lost + lost + lost + lost);  // beyond U+10FFFF
}

}  // namespace
}  // namespace vlmest::tool::log_axis_test
