// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include <cublasLt.h>
#include <kernels/matmul/cublaslt_tiles.hpp>
#include <kernels/matmul/operands.hpp>

#include <vlmest/op/matmul.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest::kernels {

struct CublasLtOptions {
  enum class Choice : std::uint8_t {
    first,  ///< what the heuristic puts first, which is what frameworks run
    best,   ///< the fastest of several that the heuristic offers; until tune() has run, the first
  };
  WeightLayout layout = WeightLayout::linear;
  Choice choice = Choice::first;
  int candidates = 16;  ///< how many are asked for, and timed, with `best`
  /// The most scratch an algorithm may ask for. 32 MiB is what the vendor recommends on Hopper; a framework may grant
  /// less (cublaslt_workspace() and cublas_workspace() of vlmest/library/cublas.hpp).
  Bytes workspace_limit{32 << 20};
  /// Every address will be a multiple of this: a power of two. cudaMalloc gives 256.
  int alignment = 256;
  bool fast_accumulation = false;  ///< fp8: sums stay in the tensor cores' lower precision (torch: use_fast_accum)
};

/// What the library runs, in the op's terms: its own row-major out[m, n] is the library's column-major [n, m].
struct MatmulAlgorithm {
  int id = 0;           ///< the library's own number of the kernel family
  int tile_m = 0;       ///< rows of `out` that one thread block computes; 0: not known
  int tile_n = 0;       ///< columns of `out`
  int stages = 0;       ///< cublasLtMatmulStages_t
  int split_k = 1;      ///< parts that k is cut into; above 1 their sums are added in the workspace or in place
  int reduction = 0;    ///< cublasLtReductionScheme_t: how
  int swizzle = 0;      ///< order in which tiles are visited
  int custom = 0;       ///< an option of the kernel family
  int inner_shape = 0;  ///< cublasLtMatmulInnerShape_t
  int cluster_m = 0;    ///< blocks in a cluster along m; 0: the library decides
  int cluster_n = 0;
  Bytes workspace{};
  double waves = 0;  ///< the library's own count of waves
  Seconds time{};    ///< of one call with warm caches, where tune() measured it
};

/// Throws Error for what cuBLASLt is not asked to do here: other types than bf16, fp16, tf32, fp32, fp8, sizes below 1,
/// fp8 in the mm layout or with n or k no multiple of 16.
void check_cublaslt(const Matmul& op, const CublasLtOptions& options);

/// The vendor's product of matrices as a prepared call. Sums are kept in fp32; tf32 operands are stored as fp32; fp8 is
/// e4m3 with unit scales and gives bf16 (so does its bias). The bias is added by the product's own kernel. The scratch
/// is the caller's. Not safe for calls from several threads at once.
class CublasLtMatmul {
 public:
  /// Asks the heuristic; throws Error where the library has no kernel.
  explicit CublasLtMatmul(const Matmul& op, const CublasLtOptions& options = {});

  /// Times the candidates of Choice::best on random operands of its own, with warm caches, and keeps the fastest; does
  /// nothing otherwise. Allocates operands and scratch while it runs, and waits for the stream. workspace() may change.
  void tune(cudaStream_t stream);

  /// Scratch that the chosen algorithm needs.
  Bytes workspace() const { return algorithm().workspace; }
  std::string_view name() const { return "cublaslt"; }
  const Matmul& op() const { return op_; }
  const MatmulAlgorithm& algorithm() const { return algorithms_[chosen_]; }
  /// All that the heuristic offered, in its order.
  const std::vector<MatmulAlgorithm>& algorithms() const { return algorithms_; }

  void operator()(const MatmulOperands& operands, cudaStream_t stream) const;

 private:
  template <auto destroy>
  struct Destroy {
    template <class T>
    void operator()(T* p) const {
      static_cast<void>(destroy(p));
    }
  };
  template <class Handle, auto destroy>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;
  using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  cublasStatus_t run(const MatmulOperands& operands, std::size_t algorithm, cudaStream_t stream) const;

  Matmul op_;
  CublasLtOptions options_;
  Owned<cublasLtHandle_t, cublasLtDestroy> handle_;
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description_;
  Layout first_, second_, result_;  ///< in the library's order: b, a, out
  std::vector<cublasLtMatmulAlgo_t> handles_;
  std::vector<MatmulAlgorithm> algorithms_;
  std::size_t chosen_ = 0;
};

/// The type that `out` and `bias` have for operands of type `t`.
constexpr DType result_type(DType t) { return t == DType::fp8 ? DType::bf16 : t; }

}  // namespace vlmest::kernels
