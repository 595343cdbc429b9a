// SPDX-License-Identifier: Apache-2.0
// Against bytes that an H200 counted.
#include <gtest/gtest.h>

#include <vlmest/analysis/dram_traffic.hpp>

namespace vlmest::dram_traffic_test {
namespace {

Device device() {
  Device d;
  d.sm = 90;
  d.multiprocessors = 132;
  d.l2 = Bytes(60 << 20);
  return d;
}

double megabytes(Bytes b) { return static_cast<double>(b.value()) * 1e-6; }
double read(const Op& op) { return megabytes(dram_traffic(op, device()).read); }
double written(const Op& op) { return megabytes(dram_traffic(op, device()).written); }
double compulsory(const Op& op) { return megabytes(cost(op).read); }

TEST(DramTraffic, AProductThatIsOneWaveReadsItsOperandsOnce) {
  const Op vector = Matmul{.m = 1, .n = 18944, .k = 18944};
  EXPECT_EQ(read(vector), compulsory(vector));
  const Op deep = Matmul{.m = 2048, .n = 2048, .k = 65536};
  EXPECT_EQ(read(deep), compulsory(deep));
}

TEST(DramTraffic, LargeProductsReadTheirOperandsAgainInEveryWave) {
  struct Row {
    std::int64_t m, n, k;
    double read, tolerance;
  };
  for (const Row& r : {Row{8192, 8192, 8192, 1250.0, 0.1}, Row{16384, 16384, 16384, 15047.0, 0.35},
                       Row{4096, 18944, 3584, 577.8, 0.15}, Row{16384, 4096, 4096, 595.6, 0.15},
                       Row{32768, 11008, 4096, 2801.5, 0.25}, Row{576, 35232, 3776, 287.6, 0.1}})
    EXPECT_NEAR(read(Matmul{.m = r.m, .n = r.n, .k = r.k}) / r.read, 1, r.tolerance) << r.m << " " << r.n << " " << r.k;
}

TEST(DramTraffic, ALargerCacheKeepsMoreAndNoneKeepsLessThanAll) {
  const Op product = Matmul{.m = 8192, .n = 8192, .k = 8192};
  Device large = device();
  large.l2 = large.l2 * 100;
  EXPECT_EQ(dram_traffic(product, large).read, cost(product).read);
  large.l2 = device().l2 * 2;
  EXPECT_LT(dram_traffic(product, large).read, dram_traffic(product, device()).read);
  EXPECT_EQ(dram_traffic(product, device()).written, cost(product).written);
}

TEST(DramTraffic, WhatAKernelReadsAgainFollowsFromTheOrderOfItsTiles) {
  struct Row {
    std::int64_t m, n, k;
    TileWalk walk;
    double read;
  };
  const TileWalk rows{.tile_m = 192, .tile_n = 192, .cluster_m = 1, .cluster_n = 2, .column_bands = false};
  const TileWalk columns{.tile_m = 208, .tile_n = 192, .cluster_m = 2, .cluster_n = 1};
  const TileWalk wide{.tile_m = 128, .tile_n = 320, .cluster_m = 2, .cluster_n = 1};
  const TileWalk cutlass{.tile_m = 256, .tile_n = 128, .turns = false};
  for (const Row& r : {Row{32768, 16832, 1472, rows, 1025.6}, Row{24797, 17024, 1472, columns, 843.6},
                       Row{5638, 16128, 7360, columns, 1450.0}, Row{16384, 4096, 4096, wide, 595.6},
                       Row{33000, 3420, 1280, cutlass, 356.9}}) {
    const Matmul o{.m = r.m, .n = r.n, .k = r.k};
    EXPECT_NEAR(megabytes(dram_traffic(o, r.walk, device()).read) / r.read, 1, 0.03) << r.m << " " << r.n << " " << r.k;
  }
}

TEST(DramTraffic, PartialSumsAreWrittenAndRead) {
  const Matmul o{.m = 143, .n = 5352, .k = 36408};
  const TileWalk split{.tile_m = 144, .tile_n = 128, .cluster_n = 2, .split = 3, .column_bands = false};
  EXPECT_NEAR(megabytes(dram_traffic(o, split, device()).written), 11.2, 0.5);
  EXPECT_NEAR(megabytes(dram_traffic(o, split, device()).read), 410.9, 4);
}

TEST(DramTraffic, BandsOfAWalk) {
  const auto across = [](TileWalk w) { return traffic::tiles_across(w, 100, device()); };
  EXPECT_EQ(across({.tile_m = 160, .tile_n = 256, .cluster_m = 2}), 10);
  EXPECT_EQ(across({.tile_m = 256, .tile_n = 160, .cluster_m = 2}), 6);
  EXPECT_EQ(across({.tile_m = 256, .tile_n = 160, .cluster_n = 2, .column_bands = false}), 10);
  EXPECT_EQ(across({.tile_m = 256, .tile_n = 128, .turns = false}), 8);
  EXPECT_EQ(traffic::clusters_at_once({.cluster_m = 4}, device()), 30);
}

TEST(DramTraffic, NoKernelReadsLessThanItsOperandsOrTakesLongOverVastProducts) {
  Device none = device();
  none.l2 = Bytes(0);
  const TileWalk walk{.cluster_m = 2};
  for (const Matmul& o : {Matmul{.m = 1, .n = 1, .k = 1}, Matmul{.m = 1 << 24, .n = 1 << 24, .k = 64},
                          Matmul{.m = 1, .n = 1 << 30, .k = 8}, Matmul{.m = 4096, .n = 8, .k = 1 << 24}})
    for (const Device& d : {device(), none}) EXPECT_GE(dram_traffic(o, walk, d).read, cost(Op(o)).read);
  Device large = device();
  large.l2 = large.l2 * 1000;
  const Matmul o{.m = 16384, .n = 16384, .k = 16384};
  EXPECT_EQ(dram_traffic(o, walk, large).read, cost(Op(o)).read);
}

TEST(DramTraffic, EveryItemOfABatchIsAProduct) {
  const Matmul one{.m = 8192, .n = 8192, .k = 8192};
  Matmul three = one;
  three.batch = 3;
  EXPECT_NEAR(read(three), 3 * read(one), 1e-3);
}

TEST(DramTraffic, EveryKernelOfATransformMovesTheData) {
  const auto grid = [](Fft::Kind kind, std::int64_t batch, std::int64_t n) {
    return Fft{.kind = kind, .batch = batch, .n = {n, n, 1}};
  };
  // Rows, then columns.
  EXPECT_NEAR(read(grid(Fft::Kind::r2c, 131072, 24)), 629.1, 1);
  EXPECT_NEAR(written(grid(Fft::Kind::r2c, 131072, 24)), 654.3, 1);
  // The same after the copy that keeps the input.
  EXPECT_NEAR(read(grid(Fft::Kind::c2r, 16384, 48)), 471.9, 1);
  // Both axes in one kernel.
  EXPECT_NEAR(read(grid(Fft::Kind::c2c, 4096, 128)), 536.9, 1);
  EXPECT_NEAR(read(grid(Fft::Kind::c2c, 4096, 112)), 2 * compulsory(grid(Fft::Kind::c2c, 4096, 112)), 1);
  const auto row = [](Fft::Kind kind, std::int64_t batch, std::int64_t n) {
    return Fft{.kind = kind, .batch = batch, .n = {n, 1, 1}, .rank = 1};
  };
  EXPECT_NEAR(read(row(Fft::Kind::c2c, 16384, 4096)), 536.9, 1);
  EXPECT_NEAR(read(row(Fft::Kind::r2c, 65536, 1000)), 262.1, 1);
  EXPECT_NEAR(read(row(Fft::Kind::c2c, 64, 1048576)), 1073.7, 1);
  // A long prime goes through buffers of more than twice its length.
  EXPECT_GT(read(row(Fft::Kind::c2c, 12791, 10007)), 8 * compulsory(row(Fft::Kind::c2c, 12791, 10007)));
  // What fits the cache stays there.
  EXPECT_EQ(read(row(Fft::Kind::c2c, 1, 524288)), compulsory(row(Fft::Kind::c2c, 1, 524288)));
}

TEST(DramTraffic, OthersMoveTheirOperandsOnce) {
  for (const Op& op : {Op(MemoryOp{.read = Bytes(1 << 30), .written = Bytes(1 << 29)}),
                       Op(Attention{.batch = 16, .heads = 32, .kv_heads = 32, .q_len = 4096, .kv_len = 4096}),
                       Op(Softmax{.rows = 65536, .width = 4096})}) {
    EXPECT_EQ(dram_traffic(op, device()).read, cost(op).read);
    EXPECT_EQ(dram_traffic(op, device()).written, cost(op).written);
  }
}

}  // namespace
}  // namespace vlmest::dram_traffic_test
