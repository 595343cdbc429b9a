// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include <vlmest/diagnose/watch/prometheus.hpp>

namespace vlmest::prometheus_test {
namespace {
using namespace diagnose;

/// The value of a label whose value is `s`, as it is written.
std::string written(const std::string& s) {
  const Metric m{.name = "a", .help = "h", .type = MetricType::gauge, .samples = {{{{"l", s}}, std::int64_t{1}}}};
  const std::string text = prometheus_text(std::vector{m});
  const std::string before = "# HELP a h\n# TYPE a gauge\na{l=\"", after = "\"} 1\n";
  EXPECT_TRUE(text.starts_with(before) && text.ends_with(after)) << text;
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

/// A value, as it is written.
std::string written(double v) {
  const std::string text =
      prometheus_text(std::vector{Metric{.name = "a", .help = "h", .type = MetricType::gauge, .samples = {{{}, v}}}});
  const std::string before = "# HELP a h\n# TYPE a gauge\na ";
  EXPECT_TRUE(text.starts_with(before)) << text;
  return text.substr(before.size());
}

TEST(Prometheus, EachMetricHasHelpAndTypeOnceAndASampleALine) {
  const std::vector<Metric> metrics{
      {.name = "memory_used_bytes",
       .help = "Bytes in use.",
       .type = MetricType::gauge,
       .samples = {{{{"gpu", "0"}, {"source", "nvml"}}, std::int64_t{123456789012345}},
                   {{{"gpu", "1"}, {"source", "nvml"}}, std::int64_t{0}}}},
      {.name = "nothing_bytes", .help = "Left out.", .type = MetricType::gauge, .samples = {}},
      {.name = "readings_total", .help = "Readings.", .type = MetricType::counter, .samples = {{{}, std::int64_t{7}}}}};
  EXPECT_EQ(prometheus_text(metrics),
            "# HELP memory_used_bytes Bytes in use.\n"
            "# TYPE memory_used_bytes gauge\n"
            "memory_used_bytes{gpu=\"0\",source=\"nvml\"} 123456789012345\n"
            "memory_used_bytes{gpu=\"1\",source=\"nvml\"} 0\n"
            "# HELP readings_total Readings.\n"
            "# TYPE readings_total counter\n"
            "readings_total 7\n");
  EXPECT_EQ(prometheus_text({}), "");
}

TEST(Prometheus, LabelsEscapeWhatEndsThem) {
  EXPECT_EQ(written("plain 0"), "plain 0");
  EXPECT_EQ(written("C:\\run \"a\"\nb"), "C:\\\\run \\\"a\\\"\\nb");
}

TEST(Prometheus, HelpKeepsQuotesAndEscapesTheRest) {
  const Metric m{.name = "a", .help = "say \"a\\b\"\n", .type = MetricType::gauge, .samples = {{{}, std::int64_t{1}}}};
  EXPECT_EQ(prometheus_text(std::vector{m}), "# HELP a say \"a\\\\b\"\\n\n# TYPE a gauge\na 1\n");
}

TEST(Prometheus, WhatIsNoUtf8IsReplaced) {
  const std::string lost = "\xEF\xBF\xBD";
  EXPECT_EQ(written("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  EXPECT_EQ(written("a\xFFz"), "a" + lost + "z");
  EXPECT_EQ(written("\xC3"), lost);                                   // cut off
  EXPECT_EQ(written("\xC3\""), lost + "\\\"");                        // the quote is not swallowed
  EXPECT_EQ(written("\xC0\xAF"), lost + lost);                        // a slash in two bytes
  EXPECT_EQ(written("\xED\xA0\x80"), lost + lost + lost);             // half of a surrogate pair
  EXPECT_EQ(written("\xF4\x90\x80\x80"), lost + lost + lost + lost);  // beyond U+10FFFF
}

TEST(Prometheus, NumbersAreTheirShortestDigits) {
  EXPECT_EQ(written(0.93), "0.93\n");
  EXPECT_EQ(written(-1.5e300), "-1.5e+300\n");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "-Inf\n");
}

TEST(Prometheus, NamesThatTheFormatDoesNotAllowAreRefused) {
  const auto with = [](const std::string& metric, const std::string& label) {
    return prometheus_text(
        std::vector{Metric{.name = metric, .help = "", .samples = {{{{label, "v"}}, std::int64_t{1}}}}});
  };
  EXPECT_NO_THROW(with("a:b_9", "_l"));
  for (const char* bad : {"", "9a", "a-b", "a b", "a\n"}) {
    EXPECT_THROW(with(bad, "l"), Error) << bad;
    EXPECT_THROW(with("a", bad), Error) << bad;
  }
  EXPECT_THROW(with("a", "l:m"), Error);
}

}  // namespace
}  // namespace vlmest::prometheus_test
