// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/op/fft_footprint.hpp>

namespace fft_test {
namespace {

using vlmest::Bytes;
using vlmest::DType;
using vlmest::Fft;
using vlmest::FftLayout;
using vlmest::Flops;
using vlmest::Shape;
using Kind = vlmest::Fft::Kind;

constexpr Fft fft(Kind kind, std::int64_t batch, std::int64_t n, DType dtype = DType::fp32) {
  return {kind, batch, {n, 1, 1}, 1, false, dtype};
}
constexpr Fft fft2(Kind kind, std::int64_t batch, std::int64_t h, std::int64_t w, DType dtype = DType::fp32) {
  return {kind, batch, {h, w, 1}, 2, false, dtype};
}

using Row = std::vector<std::string>;

std::vector<Row> rows(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/fft/" + name);
  if (!in) throw std::runtime_error("cannot read " + name);
  std::vector<Row> r;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Row row;
    for (std::string f; std::getline(fields, f, '\t');) row.push_back(f);
    r.push_back(row);
  }
  return r;
}

std::vector<std::int64_t> sizes(const std::string& text) {
  std::vector<std::int64_t> r;
  std::istringstream in(text);
  for (std::string f; std::getline(in, f, 'x');) r.push_back(std::stoll(f));
  return r;
}

// Sizes that can be worked out on paper.

static_assert(vlmest::half_spectrum(24) == 13 && vlmest::half_spectrum(27) == 14 && vlmest::half_spectrum(1) == 1);
static_assert(input_bytes(fft2(Kind::r2c, 1024, 24, 24)) == Bytes(4 * 1024 * 24 * 24));
static_assert(output_bytes(fft2(Kind::r2c, 1024, 24, 24)) == Bytes(8 * 1024 * 24 * 13));
static_assert(output_bytes(fft2(Kind::c2r, 1024, 24, 24)) == Bytes(4 * 1024 * 24 * 24));
static_assert(output_bytes(fft2(Kind::c2c, 3, 5, 7, DType::fp64)) == Bytes(16 * 3 * 5 * 7));
static_assert(output_bytes(fft2(Kind::r2c, 3, 4, 8, DType::fp16)) == Bytes(4 * 3 * 4 * 5));

// Powers of two have whole logarithms: 5 * 16 * 4, half of it for a real transform, and logarithms add over axes.
static_assert(flops(fft(Kind::c2c, 1, 16)) == Flops(320));
static_assert(flops(fft(Kind::r2c, 1, 16)) == Flops(160));
static_assert(flops(fft2(Kind::c2c, 3, 8, 32)) == Flops(5 * 3 * 256 * 8));
static_assert(flops(fft(Kind::c2c, 7, 1)) == Flops(0));

TEST(Fft, FlopsOfOtherSizesAreTheRoundedFormula) {
  for (const std::int64_t n : {3, 24, 27, 37, 576, 577, 1155, 4097})
    EXPECT_EQ(flops(fft(Kind::c2c, 1000, n)).value(),
              std::llround(5.0 * 1000.0 * static_cast<double>(n) * std::log2(static_cast<double>(n))));
  EXPECT_THROW(flops(fft(Kind::c2c, std::int64_t{1} << 58, 1024)), vlmest::Overflow);
}

TEST(Fft, RefusesWhatTorchRefuses) {
  EXPECT_THROW(check(fft2(Kind::r2c, 1, 16, 16, DType::bf16)), vlmest::Error);
  EXPECT_NO_THROW(check(fft2(Kind::r2c, 1, 16, 16, DType::fp16)));
  EXPECT_THROW(check(fft2(Kind::r2c, 1, 24, 16, DType::fp16)), vlmest::Error);
  EXPECT_THROW(check(fft2(Kind::r2c, 1, 16, 24, DType::fp16)), vlmest::Error);
  EXPECT_THROW(check(fft2(Kind::r2c, 1, 16, 16, DType::int32)), vlmest::Error);
  EXPECT_THROW(check(fft(Kind::c2c, 0, 16)), vlmest::Error);
  EXPECT_THROW(check(fft(Kind::c2c, 1, 0)), vlmest::Error);
  EXPECT_THROW(check(Fft{Kind::c2c, 1, {2, 2, 2}, 4}), vlmest::Error);
}

TEST(FftWorkspace, EveryMeasuredLength) {
  const auto data = rows("work_1d.tsv");
  ASSERT_EQ(data.size(), 1168U);
  for (const Row& r : data) {
    ASSERT_EQ(r.size(), 7U);
    const std::int64_t n = std::stoll(r[0]);
    std::size_t column = 1;
    for (const Kind kind : {Kind::c2c, Kind::r2c, Kind::c2r})
      for (const std::int64_t batch : {1, 16}) {
        const auto w = workspace(fft(kind, batch, n));
        EXPECT_LE(w.bytes, workspace_limit(fft(kind, batch, n)));
        EXPECT_EQ(w.bytes.value(), std::stoll(r[column++]))
            << n << " kind " << static_cast<int>(kind) << " batch " << batch;
      }
  }
}

TEST(FftWorkspace, EveryMeasuredGrid) {
  const auto data = rows("work_2d.tsv");
  ASSERT_EQ(data.size(), 4096U);
  for (const Row& r : data) {
    ASSERT_EQ(r.size(), 5U);
    const std::int64_t h = std::stoll(r[0]);
    const std::int64_t w = std::stoll(r[1]);
    std::size_t column = 2;
    for (const Kind kind : {Kind::c2c, Kind::r2c, Kind::c2r}) {
      const auto ws = workspace(fft2(kind, 3, h, w));
      EXPECT_TRUE(ws.measured) << h << 'x' << w;
      EXPECT_EQ(ws.bytes.value(), std::stoll(r[column++])) << h << 'x' << w << " kind " << static_cast<int>(kind);
    }
  }
}

static_assert(workspace(fft(Kind::r2c, 16, 39)).bytes == Bytes(8 * 39 * 8 + 3 * 1024));  // eight pairs, 2496 B aligned

// The tables are not a promise about what was not measured.
TEST(FftWorkspace, SaysWhatWasNotMeasured) {
  EXPECT_FALSE(workspace(fft(Kind::c2c, 1, 2 * 3 * 5 * 7 * 11)).measured);
  EXPECT_FALSE(workspace(fft(Kind::c2c, 1, 24, DType::fp64)).measured);
  EXPECT_FALSE(workspace(fft2(Kind::r2c, 1, 2 * 379, 24)).measured);
  EXPECT_TRUE(workspace(fft2(Kind::r2c, 1, 24, 2 * 379)).measured);
  EXPECT_TRUE(workspace(Fft{Kind::c2c, 1, {8, 8, 8}, 3}).measured);
}

// Batches between and beyond the measured 1 and 16: 3, 6, 7, 64 and 1024 through torch.
TEST(FftFootprint, EveryContiguousCallOfTorch) {
  const auto data = rows("torch.tsv");
  ASSERT_EQ(data.size(), 2294U);
  int calls = 0;
  for (const Row& r : data) {
    ASSERT_EQ(r.size(), 10U);
    const auto n = sizes(r[0]);
    const std::int64_t batch = std::stoll(r[1]);
    std::size_t column = 2;
    for (const Kind kind : {Kind::r2c, Kind::c2r, Kind::c2c, Kind::c2c}) {
      const std::string output = r[column++];
      const std::string extra = r[column++];
      if (output == "-") continue;
      ++calls;
      Fft f = n.size() == 1 ? fft(kind, batch, n[0]) : fft2(kind, batch, n[0], n[1]);
      f.inverse = column == 10;
      const auto p = footprint(f);
      EXPECT_EQ(p.output.value(), std::stoll(output)) << r[0] << " batch " << batch << " column " << column;
      EXPECT_EQ(p.peak_extra.value(), std::stoll(extra)) << r[0] << " batch " << batch << " column " << column;
      EXPECT_EQ(p.clone, kind == Kind::c2r ? input_bytes(f) : Bytes{});
    }
  }
  EXPECT_EQ(calls, 7436);
}

// Channels-last grids, results of other transforms and cropped spectra.
TEST(FftFootprint, EveryOtherLayoutOfTorch) {
  const auto data = rows("torch_layout.tsv");
  ASSERT_EQ(data.size(), 64U);
  for (const Row& r : data) {
    ASSERT_EQ(r.size(), 8U);
    Shape shape;
    for (const auto d : sizes(r[1])) shape.push_back(d);
    Fft f;
    f.kind = r[0][0] == 'i' ? Kind::c2r : Kind::r2c;
    f.dtype = r[2] == "float16" ? DType::fp16 : DType::fp32;
    std::array<int, 3> axes{1, 2, 0};
    f.rank = 2;
    if (r[3] == "-2,-1") axes = {shape.rank() - 2, shape.rank() - 1, 0};
    if (r[3] == "1") f.rank = 1;
    f.batch = 1;
    for (int i = 0; i < shape.rank(); ++i)
      if (i != axes[0] && (f.rank == 1 || i != axes[1])) f.batch *= shape[i];
    for (std::size_t k = 0; k < static_cast<std::size_t>(f.rank); ++k) f.n[k] = shape[axes[k]];
    if (r[4] != "-") f.n[static_cast<std::size_t>(f.rank - 1)] = std::stoll(r[4]);
    const auto p = footprint(f, layout_of(f, shape, contiguous_strides(shape), axes));
    EXPECT_EQ(p.output.value(), std::stoll(r[5])) << r[0] << ' ' << r[1];
    EXPECT_EQ((p.output + p.peak_extra).value(), std::stoll(r[6])) << r[0] << ' ' << r[1] << ' ' << r[7];
  }
}

// torch.fft.rfft2 of [B, 24, 24, 1024] over axes 1 and 2: a view for one image, a copy for more.
TEST(FftLayout, ChannelsLastCollapsesOnlyForOneImage) {
  const Fft f = fft2(Kind::r2c, 1024, 24, 24);
  const Shape one{1, 24, 24, 1024};
  const Shape two{2, 24, 24, 1024};
  EXPECT_TRUE(layout_of(f, one, contiguous_strides(one), {1, 2, 0}).collapses);
  EXPECT_FALSE(layout_of(f, one, contiguous_strides(one), {1, 2, 0}).contiguous);
  EXPECT_FALSE(layout_of(f, two, contiguous_strides(two), {1, 2, 0}).collapses);
  const Shape first{2, 1024, 24, 24};
  const FftLayout l = layout_of(f, first, contiguous_strides(first), {2, 3, 0});
  EXPECT_TRUE(l.collapses && l.embeds && l.contiguous);
  // A half-precision plan wants unit stride, so even one image is copied.
  const Shape small{1, 16, 16, 64};
  const Fft half = fft2(Kind::r2c, 64, 16, 16, DType::fp16);
  EXPECT_FALSE(layout_of(half, small, contiguous_strides(small), {1, 2, 0}).embeds);
  // A broadcast batch has stride 0, which no plan takes.
  EXPECT_FALSE(layout_of(fft(Kind::r2c, 5, 16), Shape{5, 16}, Shape{0, 1}, {1, 0, 0}).embeds);
}

}  // namespace
}  // namespace fft_test
