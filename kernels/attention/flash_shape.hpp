// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/swizzle.hpp>

namespace vlmest::kernels::attention {

/// Sizes of one instantiation. The consumers' registers hold, per thread, keys / 2 scores, columns / 2 outputs and
/// keys / 4 rounded probabilities.
template <int Columns, int Keys, int Consumers>
struct FlashShape {
  static constexpr int columns = Columns;
  static constexpr int keys = Keys;
  static constexpr int consumers = Consumers;  ///< warpgroups
  static constexpr int stages = 2;
  static constexpr int query_rows = 64 * Consumers;
  static constexpr int threads = 128 * (Consumers + 1);
  /// What setmaxnreg gives each thread: together no more than the block starts with, 168 x 3 or 128 x 4 warpgroups.
  static constexpr int producer_registers = Consumers == 2 ? 24 : 32;
  static constexpr int consumer_registers = Consumers == 2 ? 240 : 160;

  using QueryTile = Tile<query_rows, Columns>;
  using KeyTile = Tile<Keys, Columns>;
  static constexpr int barriers = 1 + 4 * stages;
  /// Tiles, room to align them to 1024 bytes, barriers.
  static constexpr int shared_bytes = 1024 + QueryTile::bytes + 2 * stages * KeyTile::bytes + 8 * barriers;

  // A warpgroup skips tiles behind its own last visible key without freeing them. The copying thread waits only for
  // stages that are used again, so this must not be more tiles than stages.
  static_assert((Consumers - 1) * 64 <= stages * Keys);
};

template <int Columns>
struct FlashShapeOf;
template <>
struct FlashShapeOf<64> {
  using type = FlashShape<64, 128, 3>;
};
template <>
struct FlashShapeOf<80> {
  using type = FlashShape<80, 96, 3>;
};
template <>
struct FlashShapeOf<128> {
  using type = FlashShape<128, 128, 2>;
};
template <>
struct FlashShapeOf<256> {
  using type = FlashShape<256, 64, 2>;
};

/// f(the shape for a head size); 0 where there is none.
template <class F>
constexpr int with_flash_shape(std::int64_t head_dim, F&& f) {
  switch (padded_columns(head_dim)) {
    case 64: return f(FlashShapeOf<64>::type{});
    case 80: return f(FlashShapeOf<80>::type{});
    case 128: return f(FlashShapeOf<128>::type{});
    case 256: return f(FlashShapeOf<256>::type{});
    default: return 0;
  }
}

}  // namespace vlmest::kernels::attention
