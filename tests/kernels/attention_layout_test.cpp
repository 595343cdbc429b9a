// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>
#include <kernels/attention/decode_splits.hpp>
#include <kernels/attention/flash.hpp>
#include <kernels/attention/flash_mma.hpp>
#include <kernels/attention/flash_shape.hpp>
#include <kernels/attention/swizzle.hpp>

/// The arithmetic of the attention kernels, on the host.
namespace vlmest::kernels::attention {
namespace {

/// Shared memory in 16-bit elements, filled as the copy engine fills it: element (row, column) of a tile holds
/// row * Columns + column.
template <class TileShape, int Rows, int Columns>
std::vector<int> copied(std::uint32_t start) {
  std::vector<int> memory((start + TileShape::bytes) / 2, -1);
  const auto put = [&](std::uint32_t byte, int row, int column) {
    EXPECT_EQ(memory.at(byte / 2), -1);
    memory.at(byte / 2) = row * Columns + column;
  };
  for (int row = 0; row < Rows; ++row)
    for (int column = 0; column < Columns; ++column) {
      const std::uint32_t block = static_cast<std::uint32_t>(column / 64 * TileShape::block_bytes);
      if (column < 64 * TileShape::blocks)
        put(start + block + swizzled_128(static_cast<std::uint32_t>(row * 128 + column % 64 * 2)), row, column);
      else
        put(start + TileShape::tail_offset + swizzled_32(static_cast<std::uint32_t>(row * 32 + column % 64 * 2)), row,
            column);
    }
  return memory;
}

/// Where the matrix units find an element of an operand, by the PTX ISA's canonical layouts.
struct Operand {
  std::uint32_t start, leading, stride;
  std::uint64_t swizzle;

  explicit Operand(std::uint64_t d)
      : start(static_cast<std::uint32_t>(d & 0x3fff) << 4),
        leading(static_cast<std::uint32_t>(d >> 16 & 0x3fff) << 4),
        stride(static_cast<std::uint32_t>(d >> 32 & 0x3fff) << 4),
        swizzle(d >> 62) {}

  /// Element `inner` of a row: eight rows are a group, and a row goes on in the next block behind its 128 or 32 bytes.
  std::uint32_t at(int row, int inner) const {
    const int width = swizzle == swizzle_128 ? 64 : 16;
    const std::uint32_t plain =
        start + static_cast<std::uint32_t>(row / 8) * stride + static_cast<std::uint32_t>(row % 8 * width * 2) +
        static_cast<std::uint32_t>(inner / width) * leading + static_cast<std::uint32_t>(inner % width * 2);
    return (swizzle == swizzle_128 ? swizzled_128(plain) : swizzled_32(plain)) / 2;
  }
};

template <int Rows, int Columns>
void expect_tile_is_read_right() {
  using TileShape = Tile<Rows, Columns>;
  constexpr std::uint32_t start = 3 * 1024;
  const auto memory = copied<TileShape, Rows, Columns>(start);
  // Columns as the reduced dimension: q by 64 rows of a warpgroup, k by all its rows.
  for (int first_row = 0; first_row < Rows; first_row += 32)
    for (int step = 0; step < Columns / 16; ++step) {
      const Operand operand(TileShape::along_columns(start, first_row, step));
      for (int row = 0; row < Rows - first_row; ++row)
        for (int k = 0; k < 16; ++k)
          ASSERT_EQ(memory.at(operand.at(row, k)), (first_row + row) * Columns + 16 * step + k)
              << Rows << " x " << Columns << " row " << first_row + row << " step " << step << " k " << k;
    }
  // Rows as the reduced dimension: v.
  for (int step = 0; step < Rows / 16; ++step) {
    for (int block = 0; block < TileShape::blocks; ++block) {
      const Operand operand(TileShape::along_rows(start, block, step));
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < 64 * (TileShape::blocks - block); ++column)
          ASSERT_EQ(memory.at(operand.at(k, column)), (16 * step + k) * Columns + 64 * block + column)
              << Rows << " x " << Columns << " step " << step << " k " << k << " column " << column;
    }
    if constexpr (TileShape::tail) {
      const Operand operand(TileShape::tail_along_rows(start, step));
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < 16; ++column)
          ASSERT_EQ(memory.at(operand.at(k, column)), (16 * step + k) * Columns + 64 * TileShape::blocks + column);
    }
  }
}

template <int Columns>
void expect_shape_fits() {
  using Shape = typename FlashShapeOf<Columns>::type;
  expect_tile_is_read_right<Shape::query_rows, Columns>();
  expect_tile_is_read_right<Shape::keys, Columns>();
  EXPECT_LE(Shape::shared_bytes, 227 * 1024) << "a block of Hopper";
  // setmaxnreg moves registers within what the block was started with: 64 Ki over its threads, in steps of 8.
  const int started = 65536 / Shape::threads / 8 * 8;
  EXPECT_LE(Shape::producer_registers + Shape::consumers * Shape::consumer_registers, started * (1 + Shape::consumers));
  EXPECT_LE(Shape::query_rows, 256) << "rows of a box";
}

TEST(FlashLayout, MatrixUnitsReadWhatTheCopyEngineWrites) {
  expect_shape_fits<64>();
  expect_shape_fits<80>();
  expect_shape_fits<128>();
  expect_shape_fits<256>();
}

TEST(FlashLayout, DescriptorsHaveTheirFieldsInPlace) {
  const std::uint64_t d = descriptor(0x12340, 0x4000, 1024, swizzle_128);
  EXPECT_EQ(d & 0x3fff, 0x1234u);
  EXPECT_EQ(d >> 16 & 0x3fff, 0x400u);
  EXPECT_EQ(d >> 32 & 0x3fff, 64u);
  EXPECT_EQ(d >> 49 & 7, 0u) << "the base offset: tiles start at the swizzle's period";
  EXPECT_EQ(d >> 62, 1u);
  EXPECT_EQ(advanced(d, 64) - d, 4u);
}

TEST(FlashPadding, IsReported) {
  EXPECT_EQ(FlashAttention::padded_head_dim(72), 80);
  EXPECT_EQ(FlashAttention::padded_head_dim(80), 80);
  EXPECT_EQ(FlashAttention::padded_head_dim(128), 128);
  EXPECT_EQ(FlashAttention::padded_head_dim(96), 0);
  EXPECT_EQ(FlashMmaAttention::padded_head_dim(72), 80);
  EXPECT_EQ(FlashAttention::query_rows(128), 128);
  EXPECT_EQ(FlashAttention::key_rows(256), 64);
  EXPECT_EQ(FlashAttention::key_rows(96), 0);
}

TEST(DecodeSplits, CoverAllKeysAndLeaveNoneEmpty) {
  for (const std::int64_t units : {1, 7, 8, 64, 100, 264, 300, 4096})
    for (const std::int64_t kv_len : {1, 63, 64, 65, 1000, 4097, 131072, 1'000'000}) {
      const DecodeSplits plan = choose_decode_splits(units, kv_len, 264);
      EXPECT_GE(plan.splits, 1);
      EXPECT_LE(plan.splits, most_decode_splits);
      EXPECT_EQ(plan.keys % decode_keys_per_turn, 0);
      EXPECT_GE(plan.splits * plan.keys, kv_len);
      EXPECT_LT((plan.splits - 1) * plan.keys, kv_len);
    }
}

TEST(DecodeSplits, FillTheDevice) {
  // One long sequence of 8 key heads: all 264 slots work at once, and in one wave.
  const DecodeSplits one = choose_decode_splits(8, 131072, 264);
  EXPECT_EQ(one.splits, 33);
  // Short ones are not worth a second kernel.
  EXPECT_EQ(choose_decode_splits(8, 128, 264).splits, 1);
  // A little more than one wave: split, so that the second wave is not nearly empty.
  const DecodeSplits odd = choose_decode_splits(270, 32768, 264);
  EXPECT_GT(odd.splits, 3);
  const std::int64_t waves = (270 * odd.splits + 263) / 264;
  EXPECT_LT(waves * odd.keys, 32768 * 110 / 100);
  // Whole waves already: left alone.
  EXPECT_EQ(choose_decode_splits(264, 8192, 264).splits, 1);
}

}  // namespace
}  // namespace vlmest::kernels::attention
