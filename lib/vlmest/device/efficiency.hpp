// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/device/correction.hpp>
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
  Correction<3> correction{};  ///< over m (with the batch), n and k
};

/// 16-bit products by the bytes at whose multiples all rows begin. The copy engine of the tensor cores' kernels needs
/// 16; below, older kernels run, which load 4 bytes at once or 2 (cuBLAS documentation, "Tensor Core Usage"), and for
/// one or two rows some that compute dot products.
struct AlignedMatmulEfficiency {
  MatmulEfficiency bytes16{};
  MatmulEfficiency bytes4{.rate = 0.27, .bandwidth = 1, .start{3.6e-6}, .load{5.5e-9}, .epilogue{1e-10}};
  MatmulEfficiency bytes2{.rate = 0.128, .bandwidth = 0.2, .start{4.2e-6}, .load{8.6e-9}, .epilogue{5e-11}};
  MatmulEfficiency few_rows{.rate = 0.15, .bandwidth = 0.6, .start{2.4e-6}, .load{4e-9}};
};

/// How fused attention of 16-bit types runs: the parameters of attention_time().
struct AttentionEfficiency {
  Seconds start{4.5e-6};  ///< a kernel that does nothing else
  /// Of 128 queries and 128 keys, for heads padded to 64, 128 and 256: the products and the softmax.
  Seconds step64{1.04e-6}, step128{1.6e-6}, step256{4e-6};
  Seconds mask{1.1e-6};      ///< more for an explicit mask
  Seconds mask_odd{3.4e-6};  ///< more for one whose rows begin at odd elements, which are read one by one
  Seconds block{1.5e-6};     ///< of 128 queries: reading them, the final scaling, writing the result
  Seconds combine{1.0e-6};   ///< of a second kernel, where keys were split among blocks
  double longest = 0.9;      ///< how much of the longest block of a causal mask is left when the others are done
  double bandwidth = 0.85;   ///< of DRAM's
  double overlap = 4;        ///< as MatmulEfficiency::overlap
  double backward = 2.9;     ///< the loops of the backward against those of the forward
};

/// How a kernel that moves bytes runs: the parameters of memory_time().
struct MemoryEfficiency {
  Seconds start{0.9e-6};   ///< a kernel that does nothing else
  double bandwidth = 0.9;  ///< of DRAM's
  double cached = 1.4;  ///< times that, where everything fits half of the L2 cache: what an op reads was just written
  Seconds element{0};   ///< for each element of the larger side, all multiprocessors together: offsets, conversions
};

/// The ways of Access, and how fast each runs.
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
  MemoryEfficiency softmax{{2.5e-6}, 0.75, 1.4, {4.2e-12}};  ///< rows too long for a warp's registers
  Seconds dependent{0.22e-6};                                ///< one load whose address waits for the one before
};

/// How fast a device runs real kernels; measured where the device's file says so, else as on an H200.
struct Efficiency {
  AlignedMatmulEfficiency half;  ///< bf16 and fp16
  MatmulEfficiency tf32{.rate = 0.8};
  MatmulEfficiency fp8{.rate = 0.75};                       ///< and int8
  MatmulEfficiency fp32{.rate = 0.72};                      ///< outside the tensor cores
  MatmulEfficiency grouped{.rate = 0.6, .bandwidth = 0.6};  ///< 16-bit products of groups of rows
  MatmulEfficiency convolution{.rate = 0.33};               ///< 16-bit convolutions of the kernels that compute in fp32
  MatmulEfficiency converted_convolution{.rate = 0.14};     ///< those of the kernels that convert their operands first
  AttentionEfficiency attention;
  MemoryEfficiencies memory;
};

}  // namespace vlmest
