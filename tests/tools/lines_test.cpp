// SPDX-License-Identifier: Apache-2.0
// Lines of a report: where they are broken, what is cut off, and roundings that add up.
#include "output/lines.hpp"

#include <gtest/gtest.h>

namespace vlmest::lines_test {
namespace {

using tool::Table;
using Lines = std::vector<std::string>;

TEST(Lines, BreakAtBlanks) {
  EXPECT_EQ(tool::wrapped("short"), "short");
  EXPECT_EQ(tool::wrapped("one two three", 2, 8), "one two\n  three");
  EXPECT_EQ(tool::wrapped("one two", 2, 7), "one two");
  EXPECT_EQ(tool::wrapped("a-word-that-is-longer two", 2, 8), "a-word-that-is-longer\n  two");
  EXPECT_EQ(tool::command_lines("vlmest plan", 2), Lines{"  vlmest plan"});
  const Lines long_one = tool::command_lines("vlmest " + std::string(60, 'a') + " " + std::string(60, 'b'), 0);
  ASSERT_EQ(long_one.size(), 2u);
  EXPECT_TRUE(long_one[0].ends_with("a \\"));
  EXPECT_EQ(long_one[1], "    " + std::string(60, 'b'));
}

TEST(Lines, OfCodeBreakInsideOfBracketsAlone) {
  EXPECT_EQ(tool::code_lines("a = 1; b = 2  # why", 2), (Lines{"  a = 1", "  b = 2", "  # why"}));
  EXPECT_EQ(tool::code_lines("a = 1; b = 2  # why", 2, false), (Lines{"  a = 1", "  b = 2"}));
  EXPECT_EQ(tool::code_lines("f(\"x; y  # z\")", 0), Lines{"f(\"x; y  # z\")"});
  const std::string text(70, 't');
  const Lines call = tool::code_lines("call(first=\"" + text + "\", second=\"with a blank\", third=3)", 0);
  EXPECT_EQ(call, (Lines{"call(first=\"" + text + "\",", "    second=\"with a blank\", third=3)"}));
}

TEST(Lines, PathsLoseTheirFront) {
  const std::string path = "model.language_model.layers.0-27.mlp weight";
  EXPECT_EQ(tool::shortened(path, path.size()), path);
  for (std::size_t width = 12; width < path.size(); ++width) {
    const std::string cut = tool::shortened(path, width);
    EXPECT_LE(cut.size(), width);
    EXPECT_TRUE(cut.starts_with("...") && path.ends_with(cut.substr(3))) << cut;
  }
  EXPECT_EQ(tool::shortened(path, 30), "...layers.0-27.mlp weight");
}

TEST(Lines, ColumnsThatSayNothingGo) {
  const Table t = tool::without_empty_columns(
      {.head = {"a", "b", "c", "d"}, .rows = {{"-", "-", "1", ""}, {"-", "", "-", "-"}}, .left = 2});
  EXPECT_EQ(t.head, (Lines{"a", "c"}));
  EXPECT_EQ(t.rows, (std::vector<Lines>{{"-", "1"}, {"-", "-"}}));
  EXPECT_EQ(t.left, 1u);
}

TEST(Lines, PartsAddUpAsPrinted) {
  const std::int64_t mib = std::int64_t{1} << 20;
  const auto in_mib = tool::scale_of(Bytes(500 * mib)), in_gib = tool::scale_of(Bytes(5000 * mib));
  EXPECT_STREQ(in_mib.unit, "MiB");
  EXPECT_STREQ(in_gib.unit, "GiB");
  EXPECT_EQ(tool::show(Bytes(5120 * mib), in_gib), "5.00");
  EXPECT_EQ(tool::show(Bytes(1500 * mib), in_mib), "1,500");
  // Three thirds of 100 MiB and a byte: each rounds down alone.
  const Bytes third(100 * mib / 3), rest(100 * mib - 2 * (100 * mib / 3));
  EXPECT_EQ(tool::show_parts({third, third, rest, Bytes{}}, Bytes(100 * mib), in_mib), (Lines{"33", "33", "34", "-"}));
  for (std::int64_t n = 1; n < 2000; n += 37) {
    const std::vector<Bytes> parts{Bytes(n * mib), Bytes(n * n * 1000), Bytes(12345 * n), Bytes(1)};
    Bytes whole{};
    for (const Bytes b : parts) whole += b;
    double sum = 0;
    for (const auto& cell : tool::show_parts(parts, whole, in_gib)) sum += std::stod(cell);
    EXPECT_NEAR(sum, std::stod(tool::show(whole, in_gib)), 1e-6) << n;
  }
}

}  // namespace
}  // namespace vlmest::lines_test
