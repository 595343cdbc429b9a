// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/op/fft_footprint.hpp>

namespace fft_workspace_test {
namespace {

using vlmest::Bytes;
using vlmest::DType;
using vlmest::Fft;
using Kind = vlmest::Fft::Kind;

/// One recorded plan: what was asked for and the work area that cuFFT wanted.
struct Plan {
  Fft fft;
  bool strided = false;
  Bytes work{};
  std::string text;
};

std::vector<Plan> plans(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/fft/" + name);
  if (!in) throw std::runtime_error("cannot read " + name);
  std::vector<Plan> r;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string bits, layout, sizes, work;
    std::int64_t batch = 0;
    fields >> bits >> layout >> sizes >> batch;
    Plan p;
    p.text = line;
    p.fft.batch = batch;
    p.fft.dtype = bits == "64" ? DType::fp64 : bits == "16" ? DType::fp16 : DType::fp32;
    p.strided = layout == "s" && batch > 1;
    p.fft.rank = 0;
    std::istringstream axes(sizes);
    for (std::string n; std::getline(axes, n, 'x');) p.fft.n[static_cast<std::size_t>(p.fft.rank++)] = std::stoll(n);
    for (const Kind kind : {Kind::c2c, Kind::r2c, Kind::c2r}) {
      fields >> work;
      p.fft.kind = kind;
      if (work == "-") continue;
      p.work = Bytes(std::stoll(work));
      r.push_back(p);
    }
  }
  return r;
}

struct Share {
  int measured = 0, exact = 0, others = 0, exact_others = 0;
};

Share compare(const std::vector<Plan>& list) {
  Share s;
  for (const Plan& p : list) {
    const auto w = workspace(p.fft, p.strided);
    EXPECT_LE(w.bytes, workspace_limit(p.fft)) << p.text;
    (w.measured ? s.measured : s.others) += 1;
    if (w.bytes == p.work) (w.measured ? s.exact : s.exact_others) += 1;
    if (w.measured) {
      EXPECT_EQ(w.bytes, p.work) << p.text << " kind " << static_cast<int>(p.fft.kind);
    }
  }
  return s;
}

// Lengths up to 2^21, batches up to 65,537, three types, contiguous and strided.
TEST(FftWorkspace, EveryRecordedLength) {
  const Share s = compare(plans("work_more_1d.tsv"));
  EXPECT_EQ(s.measured, 9090);
  EXPECT_EQ(s.exact, s.measured);
  EXPECT_EQ(s.others, 3374);
  EXPECT_EQ(s.exact_others, 3374);
}

// Grids of two and three axes, most of them with random sides: the rules were fitted to single axes.
TEST(FftWorkspace, GridsFollowFromTheirAxes) {
  const Share s = compare(plans("work_more_grids.tsv"));
  EXPECT_EQ(s.measured, 8566);
  EXPECT_EQ(s.exact, s.measured);
  EXPECT_EQ(s.others, 2375);
  EXPECT_EQ(s.exact_others, 2183);  // long sides with factors above 7, and double precision
}

constexpr Fft fft2(Kind kind, std::int64_t batch, std::int64_t h, std::int64_t w) {
  return {kind, batch, {h, w, 1}, 2};
}

// Sizes worked out by hand.
static_assert(workspace(fft2(Kind::r2c, 4, 24, 26)).bytes == Bytes(0));  // one kernel for rows and columns
static_assert(workspace(fft2(Kind::r2c, 4, 24, 26), true).bytes == Bytes(8 * 24 * 13 * 4));  // not from strided points
static_assert(workspace(fft2(Kind::r2c, 4, 34, 8)).bytes == Bytes(8 * 34 * 5 * 4));  // columns of 34 go through a copy
static_assert(workspace(Fft{Kind::r2c, 65537, {34, 1, 1}, 1}).bytes ==               // a batch with a long prime
              Bytes(8 * 17 * 65537) + Bytes((8 * 17 * 65537 + 1023) / 1024 * 1024));
// Measured with the times of transforms: 4 * 27 * 23 * 37 and 11 * 359 items take one copy, 27 * 167 two.
static_assert(workspace(Fft{Kind::c2r, 91908, {236, 1, 1}, 1}).bytes == Bytes(8 * 119 * 91908));
static_assert(workspace(Fft{Kind::r2c, 3949, {854, 1, 1}, 1}).bytes == Bytes(8 * 428 * 3949));
static_assert(workspace(Fft{Kind::c2r, 4509, {2498, 1, 1}, 1}).bytes ==
              Bytes(8 * 1249 * 4509) + Bytes((8 * 1249 * 4509 + 1023) / 1024 * 1024));

}  // namespace
}  // namespace fft_workspace_test
