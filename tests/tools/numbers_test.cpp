// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "units.hpp"

namespace vlmest::tool::numbers_test {
namespace {

TEST(Numbers, AreDecimal) {
  EXPECT_EQ(whole_number("0"), 0);
  EXPECT_EQ(whole_number("010"), 10);
  EXPECT_EQ(whole_number("-3"), -3);
  EXPECT_EQ(whole_number("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", "-", "+5", " 5", "5 ", "1_000", "1,000", "1e3", "0x10", "1.0", "nan", "inf", "--1",
                           "9223372036854775808", "99999999999999999999", "\xd9\xa3"})
    EXPECT_FALSE(whole_number(text)) << text;
  EXPECT_EQ(decimal_number("0.5"), 0.5);
  EXPECT_EQ(decimal_number("08"), 8);
  EXPECT_EQ(decimal_number("-0"), 0);
  EXPECT_EQ(decimal_number("-1.25"), -1.25);
  for (const char* text :
       {"", ".", ".5", "5.", "+5", " 5", "1e3", "1e400", "0x1p3", "nan", "inf", "-inf", "1.2.3", "1,5"})
    EXPECT_FALSE(decimal_number(text)) << text;
  EXPECT_FALSE(decimal_number(std::string(400, '9')));
}

TEST(Numbers, OfMemoryHaveAUnit) {
  const auto size = [](const char* text) { return parse_size(text, "--size").value(); };
  EXPECT_EQ(size("24GiB"), std::int64_t{24} << 30);
  EXPECT_EQ(size("24 GiB"), std::int64_t{24} << 30);
  EXPECT_EQ(size("24gib"), std::int64_t{24} << 30);
  EXPECT_EQ(size("24GB"), 24'000'000'000);
  EXPECT_EQ(size("1.5TB"), 1'500'000'000'000);
  EXPECT_EQ(size("512B"), 512);
  EXPECT_EQ(size("0MiB"), 0);
  for (const char* text : {"", "GiB", "24GiBs", "-1GiB", "1e3GiB", "1e400 GiB", "nanGiB", "infGiB", "0x10GiB", "+5GiB",
                           " 5GiB", "1_000MiB", "9999999TiB", "0.1B", "24PiB", "lots"})
    EXPECT_THROW(size(text), Error) << text;
  for (const char* text : {"24", "24G", "24g", "24 G"}) try {
      size(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.where, "--size");
      EXPECT_EQ(e.what_happened, "'" + std::string(text) + "' has no unit");
      EXPECT_EQ(e.hint, "write 24GiB (powers of 1024) or 24GB (powers of 1000)");
    }
}

TEST(Units, ThreeDigitsWhicheverWayTheyRound) {
  EXPECT_EQ(tool::show(Seconds{0.9994}), "999 ms");
  EXPECT_EQ(tool::show(Seconds{0.9996}), "1.00 s");
  EXPECT_EQ(tool::show(Seconds{999.6e-6}), "1.00 ms");
  EXPECT_EQ(tool::show(Seconds{99.96e-3}), "100 ms");
  EXPECT_EQ(tool::show(Seconds{9.996e-3}), "10.0 ms");
  EXPECT_EQ(tool::show(Bytes(std::int64_t{1} << 30)), "1.00 GiB");
}

}  // namespace
}  // namespace vlmest::tool::numbers_test
