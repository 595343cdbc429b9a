// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <kernels/cuda/buffer.hpp>
#include <kernels/cuda/check_cublas.hpp>
#include <kernels/cuda/event.hpp>
#include <kernels/cuda/fill.hpp>
#include <kernels/matmul/cublaslt_matmul.hpp>

namespace vlmest::kernels {
namespace {

using cuda::check;

struct Types {
  cudaDataType_t operand;
  cudaDataType_t result;
  cublasComputeType_t compute;
};

Types types_of(DType t) {
  switch (t) {
    case DType::bf16: return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case DType::fp16: return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::tf32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case DType::fp32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::fp8: return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    default: throw Error("matmul", "no product for " + std::string(name(t)), "use bf16, fp16, tf32, fp32 or fp8");
  }
}

/// The library's matrices are column by column: a row-major [rows, columns] is its [columns, rows], and
/// out^T[n, m] = b^T a^T is what it computes.
cublasLtMatrixLayout_t column_major(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows),
                                   columns));
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = checked_mul(rows, columns);
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    check(
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
  return layout;
}

/// What holds for every item of a batch: its first address and the distance to the next.
std::uint32_t alignment_of(std::int64_t item_elements, DType type, std::int64_t batch, int base) {
  const std::int64_t stride = size_of(Elements(item_elements), type).value();
  std::int64_t alignment = base;
  while (batch > 1 && stride % alignment != 0) alignment /= 2;
  return static_cast<std::uint32_t>(alignment);
}

template <class T>
int attribute(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written));
  return static_cast<int>(value);
}

MatmulAlgorithm described(const cublasLtMatmulHeuristicResult_t& offered) {
  const cublasLtMatmulAlgo_t& a = offered.algo;
  const TileSize tile =
      tile_size(static_cast<std::uint32_t>(attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_TILE_ID)));
  const TileSize cluster =
      cluster_size(static_cast<std::uint32_t>(attribute<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)));
  MatmulAlgorithm r;
  r.id = attribute<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_ID);
  r.tile_m = tile.columns;  // the library computes the transpose of `out`
  r.tile_n = tile.rows;
  r.stages = attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  r.split_k = attribute<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  r.reduction = attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  r.swizzle = attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
  r.custom = attribute<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  r.inner_shape = attribute<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
  r.cluster_m = cluster.columns;
  r.cluster_n = cluster.rows;
  r.workspace = Bytes(offered.workspaceSize);
  r.waves = offered.wavesCount;
  return r;
}

}  // namespace

void check_cublaslt(const Matmul& op, const CublasLtOptions& options) {
  static_cast<void>(types_of(op.dtype));
  if (op.batch < 1 || op.m < 1 || op.n < 1 || op.k < 1)
    throw Error("matmul", "a size below 1", "leave out products without elements");
  if (op.batch > INT32_MAX) throw Error("matmul", "a batch of " + std::to_string(op.batch), "give at most 2147483647");
  if (op.dtype == DType::fp8 && options.layout != WeightLayout::linear)
    throw Error("matmul", "fp8 in the mm layout", "fp8 kernels read a weight of [n, k] only");
  if (op.dtype == DType::fp8 && (op.n % 16 != 0 || op.k % 16 != 0))
    throw Error("matmul", "fp8 with n = " + std::to_string(op.n) + " and k = " + std::to_string(op.k),
                "n and k must be multiples of 16");
  if (options.candidates < 1) throw Error("matmul", "fewer than one candidate", "ask for 1 or more");
  if (options.alignment < 1 || options.alignment > 256 || (options.alignment & (options.alignment - 1)) != 0)
    throw Error("matmul", "an alignment of " + std::to_string(options.alignment), "give a power of two up to 256");
}

CublasLtMatmul::CublasLtMatmul(const Matmul& op, const CublasLtOptions& options) : op_(op), options_(options) {
  check_cublaslt(op, options);
  const Types types = types_of(op.dtype);
  const bool linear = options.layout == WeightLayout::linear;

  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle));
  handle_.reset(handle);
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, types.compute, CUDA_R_32F));
  description_.reset(description);
  const cublasOperation_t transposed = linear ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  if (op.bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    const auto type = static_cast<std::int32_t>(types.result);
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    // The heuristic may look at the address for its alignment; nothing is read from it before the first call.
    const auto address = static_cast<std::uintptr_t>(options.alignment);
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address));
  }
  if (options.fast_accumulation && op.dtype == DType::fp8) {
    const std::int8_t on = 1;
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &on, sizeof on));
  }
  first_.reset(linear ? column_major(types.operand, op.n, op.k, op.batch)
                      : column_major(types.operand, op.k, op.n, op.batch));
  second_.reset(column_major(types.operand, op.m, op.k, op.batch));
  result_.reset(column_major(types.result, op.m, op.n, op.batch));

  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made));
  const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(options.workspace_limit.value()));
  const auto aligned = [&](std::int64_t elements, DType t) {
    return alignment_of(elements, t, op.batch, options.alignment);
  };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(checked_mul(op.n, op.k), op.dtype));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(checked_mul(op.m, op.k), op.dtype));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(checked_mul(op.m, op.n), result_type(op.dtype)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned(checked_mul(op.m, op.n), result_type(op.dtype)));

  const int asked = options.choice == CublasLtOptions::Choice::first ? 1 : options.candidates;
  std::vector<cublasLtMatmulHeuristicResult_t> offered(static_cast<std::size_t>(asked));
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_.get(), description_.get(), first_.get(), second_.get(), result_.get(),
                                     result_.get(), preference.get(), asked, offered.data(), &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
  offered.resize(static_cast<std::size_t>(count));
  for (const auto& o : offered) {
    if (o.state != CUBLAS_STATUS_SUCCESS) continue;
    handles_.push_back(o.algo);
    algorithms_.push_back(described(o));
  }
  if (algorithms_.empty())
    throw Error("matmul",
                "cuBLASLt has no kernel for " + std::string(vlmest::name(op.dtype)) + ", batch " +
                    std::to_string(op.batch) + ", m " + std::to_string(op.m) + ", n " + std::to_string(op.n) + ", k " +
                    std::to_string(op.k),
                "take another type or sizes that are multiples of 16 bytes");
}

cublasStatus_t CublasLtMatmul::run(const MatmulOperands& operands, std::size_t algorithm, cudaStream_t stream) const {
  if (op_.bias)
    check(cublasLtMatmulDescSetAttribute(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias,
                                         sizeof operands.bias));
  const float one = 1;
  const float zero = 0;
  return cublasLtMatmul(handle_.get(), description_.get(), &one, operands.b, first_.get(), operands.a, second_.get(),
                        &zero, operands.out, result_.get(), operands.out, result_.get(), &handles_[algorithm],
                        operands.workspace, static_cast<std::size_t>(algorithms_[algorithm].workspace.value()), stream);
}

void CublasLtMatmul::operator()(const MatmulOperands& operands, cudaStream_t stream) const {
  check(run(operands, chosen_, stream));
}

void CublasLtMatmul::tune(cudaStream_t stream) {
  if (options_.choice == CublasLtOptions::Choice::first || algorithms_.size() == 1) return;
  const auto random = [&](std::int64_t rows, std::int64_t columns, std::int64_t batch, DType type, std::uint64_t seed) {
    const Elements n(checked_mul(checked_mul(rows, columns), batch));
    cuda::Buffer r(size_of(n, type));
    cuda::fill_uniform(r.data(), n, type, -1, 1, seed, stream);
    return r;
  };
  const cuda::Buffer a = random(op_.m, op_.k, op_.batch, op_.dtype, 1);
  const cuda::Buffer b = random(op_.n, op_.k, op_.batch, op_.dtype, 2);
  const cuda::Buffer bias = random(1, op_.n, 1, result_type(op_.dtype), 3);
  const cuda::Buffer out = random(op_.m, op_.n, op_.batch, result_type(op_.dtype), 4);
  Bytes most{};
  for (const MatmulAlgorithm& algorithm : algorithms_) most = std::max(most, algorithm.workspace);
  const cuda::Buffer workspace(most);
  const MatmulOperands operands{a.data(), b.data(), bias.data(), out.data(), workspace.data()};

  // Several rounds over all candidates rather than all runs of one at once: a change of the clock then meets each
  // alike.
  constexpr int rounds = 5;
  constexpr int runs = 4;
  const cuda::Event begin;
  const cuda::Event end;
  std::vector<bool> works(algorithms_.size());
  for (std::size_t i = 0; i < algorithms_.size(); ++i) works[i] = run(operands, i, stream) == CUBLAS_STATUS_SUCCESS;
  std::vector<std::array<double, rounds>> times(algorithms_.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < algorithms_.size(); ++i) {
      if (!works[i]) continue;
      begin.record(stream);
      for (int k = 0; k < runs; ++k) check(run(operands, i, stream));
      end.record(stream);
      end.synchronize();
      times[i][static_cast<std::size_t>(round)] = cuda::elapsed(begin, end).value / runs;
    }
  for (std::size_t i = 0; i < algorithms_.size(); ++i) {
    if (!works[i]) continue;
    std::nth_element(times[i].begin(), times[i].begin() + rounds / 2, times[i].end());
    algorithms_[i].time = {times[i][rounds / 2]};
    if (!works[chosen_] || algorithms_[i].time < algorithms_[chosen_].time) chosen_ = i;
  }
}

}  // namespace vlmest::kernels
