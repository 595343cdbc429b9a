// SPDX-License-Identifier: Apache-2.0
// Which of the committed rows the fit took part in. The operations of the calibration sweep and of held-out suites are
// made by code, so that they are known as long as it makes the same ones: their digests are kept here. Not known are
// the 9,496 further products of the fit of 2026-11-22 and the seed of the second held-out suite that took part in it.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <bench/harness/suite.hpp>
#include <gtest/gtest.h>

#include <vlmest/json/measured_file.hpp>

namespace vlmest::bench::fitted_test {
namespace {

using Names = std::set<std::string>;

Names names(const std::vector<Point>& points) {
  Names r;
  for (const Point& p : points) r.insert(name(p));
  return r;
}
Names of_op(const Names& all, std::string_view word) {
  Names r;
  for (const std::string& n : all)
    if (n.substr(0, n.find('/')).find(word) != std::string::npos) r.insert(n);
  return r;
}
/// Sorted names, one on each line (FNV-1a, 64 bits).
std::uint64_t digest(const Names& all) {
  std::uint64_t h = 14695981039346656037U;
  for (const std::string& n : all)
    for (const char c : n + "\n") h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return h;
}

json::MeasuredFile rows(const char* file) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR "/tests/validation/rows/") + file);
  return json::read_measured(std::string(std::istreambuf_iterator<char>(in), {}), file);
}
Names names(const json::MeasuredFile& f) {
  Names r;
  for (const auto& [where, op, own] : f.ops) r.insert(op.name);
  return r;
}
Names both(const Names& a, const Names& b) {
  Names r;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(r, r.end()));
  return r;
}

// A change of these lists would let rows of the fit pass for others.
TEST(FittedOperations, AreStillWhatTheCodeMakes) {
  const Names sweep = names(suites::calibrate()), seed_2 = of_op(names(suites::heldout(2)), "fft");
  EXPECT_EQ(sweep.size(), 13456u);
  EXPECT_EQ(digest(sweep), 4550958691589546988U);
  EXPECT_EQ(seed_2.size(), 200u);
  EXPECT_EQ(digest(seed_2), 6249973223585195167U);
}

constexpr const char* held_out_files[] = {"h200-ops.json", "h200-products.json", "h200-transforms.json"};

// Nor of the held-out suites that the fit took part of, seed 2 and perhaps seed 71.
TEST(FittedOperations, NoHeldOutRowIsOfTheFit) {
  Names fitted = names(suites::calibrate());
  for (const std::uint64_t seed : {2, 71})
    for (const char* word : {"linear", "fft"}) fitted.merge(of_op(names(suites::heldout(seed)), word));
  for (const char* file : held_out_files) {
    const Names all = names(rows(file));
    EXPECT_GE(all.size(), 400u);
    EXPECT_TRUE(both(all, fitted).empty()) << file;
  }
}

// The rows are those of their seeds, whole; one product of seed 101 could not be measured.
TEST(FittedOperations, RowsAreThoseOfTheirSeeds) {
  const Names ops = names(rows("h200-ops.json"));
  EXPECT_EQ(ops.size(), 1599u);
  EXPECT_EQ(both(ops, names(suites::heldout(101))), ops);
  const Names second = names(suites::heldout(102));
  EXPECT_EQ(names(rows("h200-products.json")), of_op(second, "linear"));
  Names transforms = of_op(second, "fft");
  transforms.merge(of_op(names(suites::heldout(103)), "fft"));
  EXPECT_EQ(names(rows("h200-transforms.json")), transforms);
}

// What the sweep shares with the large operations is marked.
TEST(FittedOperations, TrafficSaysWhatItSharesWithTheSweep) {
  const json::MeasuredFile f = rows("h200-traffic.json");
  const Names shared = both(names(f), names(suites::calibrate()));
  EXPECT_EQ(of_op(shared, "linear").size(), 4u);
  EXPECT_EQ(shared.size(), 10u);
  EXPECT_EQ(f.fitted_to("linear_time", Fitted::unknown), Fitted::partly);
  EXPECT_EQ(f.fitted_to("memory_time", Fitted::unknown), Fitted::partly);
  EXPECT_EQ(f.fitted_to("sdpa_time", Fitted::unknown), Fitted::no);
}

TEST(FittedOperations, HeldOutRowsSayThatNothingWasFittedToThem) {
  for (const char* file : held_out_files)
    for (const char* quantity : {"linear_time", "fft_time", "sdpa_time", "decode_time", "memory_time"}) {
      const Fitted f = rows(file).fitted_to(quantity, Fitted::unknown);
      EXPECT_TRUE(f == Fitted::no || (f == Fitted::unknown && std::string_view(file) != "h200-ops.json")) << file;
    }
}

}  // namespace
}  // namespace vlmest::bench::fitted_test
