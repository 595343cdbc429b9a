// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/attention/fragment.cuh>

/// Tiles of rows in shared memory for mma.sync, and the two products of attention by one warp on 16 rows of queries.
namespace vlmest::kernels::attention {

/// A tile [rows, Columns] of 16-bit elements whose rows are 16 bytes longer than their columns: the odd multiple of 16
/// bytes puts the eight rows that ldmatrix reads together into different banks.
template <int Columns>
struct PaddedRows {
  static constexpr int row_bytes = 2 * (Columns + 8);
  static constexpr int pieces = Columns / 8;  ///< of 16 bytes
  static_assert(row_bytes / 16 % 2 == 1);

  /// Copies `Rows` rows of `columns` elements (the rest of Columns is set to zero) by `Threads` threads, of which this
  /// is number `thread`. Rows from valid_rows on are set to zero. Ends in no commit.
  template <int Rows, int Threads, class T>
  __device__ static inline void copy(std::uint32_t shared, const T* global, int valid_rows, int columns, int thread) {
    static_assert(Rows * pieces % Threads == 0);
#pragma unroll 4
    for (int i = 0; i < Rows * pieces / Threads; ++i) {
      const int piece = thread + i * Threads;
      const int row = piece / pieces;
      const int column = piece % pieces * 8;
      const bool valid = row < valid_rows && column < columns;
      const T* const from = global + static_cast<std::int64_t>(row) * columns + column;
      copy_16(shared + row * row_bytes + 2 * column, valid ? from : global, valid);
    }
  }
};

/// s[16, Keys] = q[16, Columns] k[Keys, Columns]^T; `q` and `k` are the addresses of their first rows.
template <int Columns, class T, int N>
__device__ inline void warp_scores(float (&s)[N], std::uint32_t q, std::uint32_t k) {
  constexpr int row_bytes = PaddedRows<Columns>::row_bytes;
  const int lane = threadIdx.x % 32;
  // Matrices of a: rows 0-7 and 8-15 of the lower eight columns, then of the upper ones. Matrices of b, whose columns
  // are k's rows: lower and upper columns of rows 0-7, then of rows 8-15.
  q += (lane % 16) * row_bytes + lane / 16 * 16;
  k += (lane % 8 + lane / 16 * 8) * row_bytes + lane / 8 % 2 * 16;
#pragma unroll
  for (int i = 0; i < N; ++i) s[i] = 0;
#pragma unroll
  for (int step = 0; step < Columns / 16; ++step) {
    std::uint32_t a[4];
    ldmatrix(a, q + step * 32);
#pragma unroll
    for (int pair = 0; pair < N / 8; ++pair) {
      std::uint32_t b[4];
      ldmatrix(b, k + pair * 16 * row_bytes + step * 32);
      mma(s + 8 * pair, a, b[0], b[1], T{});
      mma(s + 8 * pair + 4, a, b[2], b[3], T{});
    }
  }
}

/// out[16, Columns] += p[16, Keys] v[Keys, Columns], p rounded to the operand layout (round_to_operand).
template <int Columns, class T, int M, int N>
__device__ inline void warp_outputs(float (&out)[M], const std::uint32_t (&p)[N], std::uint32_t v) {
  constexpr int row_bytes = PaddedRows<Columns>::row_bytes;
  static_assert(M == Columns / 2);
  const int lane = threadIdx.x % 32;
  // Matrices of b, transposed while they are read: rows 0-7 and 8-15 of the lower eight columns, then of the upper
  // ones.
  v += (lane % 16) * row_bytes + lane / 16 * 16;
#pragma unroll
  for (int step = 0; step < N / 4; ++step)
#pragma unroll
    for (int pair = 0; pair < Columns / 16; ++pair) {
      std::uint32_t b[4];
      ldmatrix_transposed(b, v + step * 16 * row_bytes + pair * 32);
      mma(out + 8 * pair, p + 4 * step, b[0], b[1], T{});
      mma(out + 8 * pair + 4, p + 4 * step, b[2], b[3], T{});
    }
}

}  // namespace vlmest::kernels::attention
