// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <vlmest/device/correction.hpp>
#include <vlmest/op/delta_rule.hpp>
#include <vlmest/op/memory.hpp>
#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest {

/// How tiled products of one kind of kernel run: the parameters of matmul_time(). Rates are fractions of the device's
/// peaks, so that what is measured on one device is a first guess for others.
struct MatmulEfficiency {
  double rate = 0.84;          ///< of the peak, in the main loop of a large tile
  double bandwidth = 0.87;     ///< of DRAM's
  Seconds start{2.45e-6};      ///< a kernel that does nothing else
  Seconds fill{0};             ///< until the first operands have come through an empty pipeline
  Seconds step{0.12e-6};       ///< of the main loop, at least, however small the tile
  Seconds load{1.0e-9};        ///< of a step, at least, for each row of its operands: 128 bytes from the L2 cache
  Seconds epilogue{4.2e-11};   ///< of a tile, for each element of it
  Seconds split{1.7e-6};       ///< the second pass, where the inner dimension is split
  Seconds reduction{1.5e-12};  ///< of that pass, for each partial result that it reads and each result that it writes
  Seconds bias{0.6e-6};        ///< more for a bias, which is read when a tile is done: a latency of DRAM
  double tail = 0.7;           ///< how much of a multiprocessor without a tile in the last wave is lost
  double overlap = 2.9;  ///< p of the norm that joins arithmetic and memory: 1 one after the other, large: the larger
  /// Times `load` where rows of operands begin at multiples of 32 bytes, a sector of the cache, but not of 128, a line;
  /// and where they begin at multiples of 16 bytes alone. The same of `epilogue` and rows of the result.
  double sectors = 1.3, half_sectors = 1.7, sectors_written = 1.5, half_sectors_written = 1.9;
  double half_sectors_rewritten = 0.6;  ///< more DRAM traffic of such rows of the result, in parts of its bytes
  double shared_load = 0.46;            ///< the part of `load` that comes from multiprocessors sharing the L2 cache
  Correction<3> correction{};           ///< over m (with the batch), n and k
};

/// How products of few rows run that begin at no multiple of 16 bytes: the parameters of few_rows::time(). An element
/// is one of the inner dimension.
struct FewRowsEfficiency {
  Seconds start{1.93e-6};    ///< a kernel that does nothing else
  Seconds chain{1.0e-9};     ///< one row, a warp for each result: of an element
  Seconds dot{0.081e-6};     ///< of a result, one after the other on a multiprocessor
  Seconds element{0.30e-9};  ///< and for each of its elements
  Seconds blocks{4.3e-6};    ///< one row, blocks that share a result: a kernel that does nothing else
  Seconds split{1.3e-6};     ///< and a second one that adds
  /// Several rows: of an element, by the number of rows; from five on for each of them. The kernel of three is one for
  /// four that looks at each row.
  Seconds two{4.1e-9}, three{10.7e-9}, four{4.8e-9}, row{1.28e-9};
  Seconds column{0.038e-9}, cell{0.048e-9};  ///< of an element of a column, and for each row of it
  Seconds bias{0.6e-6};                      ///< as MatmulEfficiency::bias
  double bandwidth = 0.56;                   ///< of DRAM's
  Correction<3> correction{};                ///< over m, n and k
};

/// 16-bit products by the bytes at whose multiples all rows begin. The copy engine of the tensor cores' kernels needs
/// 16; below, older kernels run, which load 4 bytes at once or 2 (cuBLAS documentation, "Tensor Core Usage"), and for
/// few rows some that compute dot products.
struct AlignedMatmulEfficiency {
  MatmulEfficiency bytes16{};
  MatmulEfficiency bytes4{.rate = 0.27, .bandwidth = 1, .start{3.6e-6}, .load{5.5e-9}, .epilogue{1e-10}};
  MatmulEfficiency bytes2{.rate = 0.128, .bandwidth = 0.2, .start{4.2e-6}, .load{8.6e-9}, .epilogue{5e-11}};
  FewRowsEfficiency few_rows{};
};

/// How attention of a single query runs: the parameters of decode_time().
struct DecodeEfficiency {
  Seconds start{2.9e-6};                                       ///< a kernel that does nothing else
  Seconds step64{0.65e-6}, step128{1.15e-6}, step256{3.9e-6};  ///< of 128 keys, for heads padded to 64, 128 and 256
  Seconds block{1.1e-6};                                       ///< besides its steps
  double shared = 1.4;     ///< a block that shares its multiprocessor with another, against one alone
  Seconds combine{1e-6};   ///< a second kernel, where keys are split among blocks
  Seconds partial{5e-12};  ///< for each element of the blocks' results that it joins
  double bandwidth = 1;    ///< of DRAM's
  double overlap = 2.4;    ///< as MatmulEfficiency::overlap
};

/// How fused attention of 16-bit types runs: the parameters of attention_time().
struct AttentionEfficiency {
  Seconds start{3.6e-6};  ///< a kernel that does nothing else, and what it needs cleared before
  /// Of 128 queries and 128 keys, for heads padded to 64, 128 and 256: the products and the softmax.
  Seconds step64{1.08e-6}, step128{1.54e-6}, step256{2.8e-6};
  Seconds ragged{0.17e-6};  ///< more where the last keys do not fill a step: each step looks for the end
  Seconds mask64{1e-6}, mask128{1.4e-6}, mask256{6e-6};  ///< more for an explicit mask
  Seconds mask_odd{2.3e-6};  ///< and for one whose rows begin at odd elements, which are read one by one
  Seconds block{1.1e-6};  ///< of 128 queries, for each 128 columns: reading them, the final scaling, writing the result
  Seconds diagonal{0.5e-6};  ///< more for a block of a causal mask
  double longest = 0.8;      ///< how much of the longest block of a causal mask is left when the others are done
  double bandwidth = 1;      ///< of DRAM's
  double overlap = 1.7;      ///< as MatmulEfficiency::overlap
  double sustained = 0.2;    ///< how much longer the loops of long kernels take, when power has brought the clock down
  Seconds boost{20e-3};      ///< of loops that take half of that
  double backward = 2.9;     ///< the products of the backward against those of the forward
  double fp32_64 = 0.45, fp32_128 = 0.7;  ///< of the fp32 peak, where nothing runs on tensor cores, by head size
  /// The memory-efficient kernel of 16-bit heads of more than 128 columns: a column of a step of 32 queries and 128
  /// keys, what a step waits for where no other block hides it, and more for an explicit mask.
  Seconds wide_column{14.2e-9}, wide_wait{3.7e-6}, wide_mask{0.53e-6};
  DecodeEfficiency decode;
};

/// How a kernel that moves bytes runs: the parameters of memory_time().
struct MemoryEfficiency {
  Seconds start{0.9e-6};   ///< a kernel that does nothing else
  double bandwidth = 0.9;  ///< of DRAM's
  double cached = 1.4;  ///< times that, where everything fits half of the L2 cache: what an op reads was just written
  Seconds element{0};   ///< for each element of the larger side, all multiprocessors together: offsets, conversions
  Seconds latency{0};   ///< of DRAM, which a kernel waits for that does not find its operands in the cache
  double mixed = 0;     ///< how much longer DRAM takes where as much is written as read, and its bus turns around
};

/// How a kernel that keeps rows on the chip runs: the parameters of row_time(); `element` is of each pass.
struct RowEfficiency : MemoryEfficiency {
  Seconds vector{0.2e-6};  ///< that a thread holds, in each pass over the row
};

/// The ways of Access, and how fast each runs: the kernels of the framework inside a model, and those written for one
/// op.
struct MemoryEfficiencies {
  MemoryEfficiency contiguous{};
  MemoryEfficiency functions{{0.9e-6}, 0.9, 1.4, {1.3e-12}};
  MemoryEfficiency cast{{1.1e-6}, 0.8, 1.4, {2.2e-12}};
  MemoryEfficiency strided{{1.3e-6}, 0.75, 1.4, {1.8e-12}};
  MemoryEfficiency transposed{{1.3e-6}, 0.75, 1.4, {6.6e-12}};
  MemoryEfficiency concatenation{{1.7e-6}, 0.7, 1.4, {2e-12}};
  MemoryEfficiency gather{{1.8e-6}, 0.8, 1.4, {0.8e-12}};
  MemoryEfficiency reduction{{3.3e-6}, 0.64, 1.4, {0.5e-12}};
  MemoryEfficiency rows{{2.5e-6}, 0.75, 1.4, {1.8e-12}};
  MemoryEfficiency softmax{{2.5e-6}, 0.75, 1.4, {4.2e-12}};    ///< rows too long for a warp's registers
  MemoryEfficiency warp_softmax{{1.4e-6}, 0.8, 1, {1.2e-12}};  ///< the others, each padded to a power of two
  MemoryEfficiency fused{{0.91e-6}, 0.99, 1.67, {0.27e-12}, {0.36e-6}, 0.13};
  MemoryEfficiency rotation{{1.85e-6}, 0.94, 1.98, {0}, {0.46e-6}, 0.13};
  /// fla 0.5.2 and causal-conv1d 1.6.1 on an H100; to half of the sizes measured.
  MemoryEfficiency packaged{{1.9e-6}, 0.891, 1.04};
  RowEfficiency fused_norm{{{0.79e-6}, 1, 1.5, {0.2e-12}, {0.72e-6}, 0.13}, {0.18e-6}};
  RowEfficiency fused_softmax{{{0.98e-6}, 1, 1.36, {0.16e-12}, {0.35e-6}, 0.13}, {0.09e-6}};
  Seconds dependent{0.22e-6};  ///< one load whose address waits for the one before
};

/// Where the parameters of each Access are, in its order.
inline constexpr std::array<MemoryEfficiency MemoryEfficiencies::*, words_of<Access>.size()> of_access{
    &MemoryEfficiencies::contiguous, &MemoryEfficiencies::functions,  &MemoryEfficiencies::cast,
    &MemoryEfficiencies::strided,    &MemoryEfficiencies::transposed, &MemoryEfficiencies::concatenation,
    &MemoryEfficiencies::gather,     &MemoryEfficiencies::reduction,  &MemoryEfficiencies::rows,
    &MemoryEfficiencies::fused,      &MemoryEfficiencies::rotation,   &MemoryEfficiencies::packaged};
constexpr const MemoryEfficiency& efficiency(const MemoryEfficiencies& e, Access a) {
  return e.*of_access[static_cast<std::size_t>(a)];
}

/// How one kind of cuFFT's kernels runs: its bytes move as those of other kernels do. `element` is of a point
/// where the length is a power of two.
struct FftKernel : MemoryEfficiency {
  Seconds mixed_radix{0};  ///< the same of other lengths, for each bit of the length
  Seconds misaligned{0};   ///< for each bit of the length, more for columns whose points lie an odd number apart
  Seconds butterfly{0};    ///< of a point, for each row of the butterfly of a prime factor from 11 to 31
  Seconds matrix{0};       ///< and for each row of the matrix of a longer one
  Seconds chirp{0};        ///< of a point of a convolution inside the kernel, for each bit of its length
};

/// The parameters of transform_time().
struct FftEfficiency {
  /// Complex.
  FftKernel rows{{{2.04e-6}, 0.951, 2, {0}, {0.36e-6}, 0.13}, {0.197e-12}, {0}, {0.0894e-12}, {0.243e-12}, {0.735e-12}};
  /// Not neighbours.
  FftKernel columns{
      {{3.43e-6}, 0.872, 2, {0}, {0.36e-6}, 0.13}, {0.346e-12}, {0.357e-12}, {0.191e-12}, {0.141e-12}, {1.11e-12}};
  /// A factor of the length in each of several kernels.
  FftKernel row_parts{{{2.75e-6}, 0.828, 1.43, {0}, {0.36e-6}, 0.13}, {0}, {0}, {0.279e-12}, {0.206e-12}};
  /// The same of columns.
  FftKernel column_parts{{{2.51e-6}, 0.496, 1.44, {0}, {0.36e-6}, 0.13}, {0}, {0}, {0.201e-12}, {0.204e-12}};
  FftKernel real{{{1.84e-6}, 0.919, 1, {1.41e-12}, {0.36e-6}, 0.13}, {0.226e-12}, {0}, {0.175e-12}, {0.228e-12}};
  /// Both axes of a small square.
  MemoryEfficiency grid{{1.82e-6}, 0.458, 1.1, {0}, {0.36e-6}, 0.13};
  /// A factor of a padded length (Bluestein), in memory.
  MemoryEfficiency convolution{{2.29e-6}, 1, 1.02, {4.2e-12}, {0.36e-6}, 0.13};
  /// Between real rows and complex ones.
  MemoryEfficiency repack{{1.12e-6}, 0.841, 1.07, {0}, {0.36e-6}, 0.13};
  /// cudaMemcpyAsync of a half spectrum, which cuFFT overwrites.
  MemoryEfficiency copy{{2.76e-6}, 0.961, 1.1, {0}, {0.36e-6}, 0.13};
  Seconds block{0.66e-9};  ///< of a point, while one block transforms it in shared memory
};

/// torch's kernels of depthwise convolutions. Every thread finds the place of its result by divisions, which take
/// longer than the bytes; all multiprocessors together.
struct DepthwiseEfficiency {
  Seconds result{8.44e-12}, tap{0.524e-12};              ///< of a result, and for each of its taps
  Seconds input_result{7.37e-12}, input_tap{0.467e-12};  ///< the same of the input's gradient
  Seconds weight_tap{1.65e-12};                          ///< of a tap at one position: the weight's gradient
};

/// cuBLAS's batched triangular solves. The rows of a system wait for each other, its columns do not.
struct SolveEfficiency {
  Seconds row{0.3e-6};      ///< of a system, however many there are
  Seconds element{10e-12};  ///< of the right-hand sides, all multiprocessors together
  Seconds term{0.24e-12};   ///< for each of the rows that each of these elements may depend on
};

/// A kernel of the gated delta rule (op/delta_rule.hpp), of heads of 128 channels; products of other widths take as
/// much longer as they are. Blocks share the multiprocessors, one for each chunk of each head, unless its chunks wait
/// for each other.
struct DeltaRuleKernel {
  Seconds start{0};
  Seconds wait{0};       ///< of one block, or of one chunk of those that wait
  Seconds block{0};      ///< of a block's share of its multiprocessor
  double bandwidth = 1;  ///< share of the memory's that it reaches
};

/// The parameters of the kernels of flash-linear-attention 0.5.2 with Triton 3.6, measured on an H100: fitted to one in
/// two of the sizes, of 32 heads.
struct DeltaRuleEfficiency {
  /// In the order of DeltaRule::Kind.
  std::array<DeltaRuleKernel, words_of<DeltaRule::Kind>.size()> kernels{{{{4.85e-6}, {12.6e-6}, {3.1e-6}, 1},
                                                                         {{0.66e-6}, {3.41e-6}, {1.97e-6}, 0.94},
                                                                         {{1.81e-6}, {1.26e-6}, {0}, 0.835},
                                                                         {{1.13e-6}, {2.56e-6}, {4.2e-6}, 1},
                                                                         {{2.25e-6}, {1.13e-6}, {2.21e-6}, 1},
                                                                         {{2.52e-6}, {0.56e-6}, {7.87e-6}, 0.995},
                                                                         {{0.79e-6}, {13.4e-6}, {16.3e-6}, 0.848},
                                                                         {{7.24e-6}, {4.99e-6}, {8.11e-6}, 1},
                                                                         {{0.13e-6}, {2.68e-6}, {0}, 0.71}}};
};
constexpr const DeltaRuleKernel& efficiency(const DeltaRuleEfficiency& e, DeltaRule::Kind kind) {
  return e.kernels[static_cast<std::size_t>(kind)];
}

/// How fast a device runs real kernels; measured where the device's file says so, else as on an H200.
struct Efficiency {
  AlignedMatmulEfficiency half;  ///< bf16 and fp16
  MatmulEfficiency tf32{.rate = 0.8};
  MatmulEfficiency fp8{.rate = 0.75};                       ///< and int8
  MatmulEfficiency fp32{.rate = 0.72};                      ///< outside the tensor cores
  MatmulEfficiency grouped{.rate = 0.6, .bandwidth = 0.6};  ///< 16-bit products of groups of rows
  MatmulEfficiency convolution{.rate = 0.33};               ///< 16-bit convolutions of the kernels that compute in fp32
  MatmulEfficiency converted_convolution{.rate = 0.14};     ///< those of the kernels that convert their operands first
  DepthwiseEfficiency depthwise;
  SolveEfficiency solve;
  DeltaRuleEfficiency delta_rule;
  AttentionEfficiency attention;
  MemoryEfficiencies memory;
  FftEfficiency fft;
};

}  // namespace vlmest
