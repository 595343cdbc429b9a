// SPDX-License-Identifier: Apache-2.0
// The borders of the architectures that libraries treat apart.
#include <vlmest/library/cublas.hpp>
#include <vlmest/library/rules.hpp>

namespace vlmest::rules_test {
namespace {

static_assert(cublas_workspace(90) == Bytes(33'554'432));
static_assert(cublas_workspace(70) == Bytes(8'519'680));
static_assert(cublas_workspace(89) == Bytes(8'519'680));
static_assert(cublas_workspace(100) == Bytes(8'519'680));
static_assert(cublas_workspace(120) == Bytes(8'519'680));
static_assert(cublaslt_workspace() == Bytes(1'048'576));

static_assert(holds(ArchitectureRule::cudnn_attention_first, 90) &&
              holds(ArchitectureRule::cudnn_attention_first, 103));
static_assert(!holds(ArchitectureRule::cudnn_attention_first, 89) &&
              !holds(ArchitectureRule::cudnn_attention_first, 101) &&
              !holds(ArchitectureRule::cudnn_attention_first, 120));
static_assert(holds(ArchitectureRule::grouped_product, 90) && holds(ArchitectureRule::grouped_product, 103) &&
              !holds(ArchitectureRule::grouped_product, 80) && !holds(ArchitectureRule::grouped_product, 120));
static_assert(holds(ArchitectureRule::marlin, 80) && !holds(ArchitectureRule::marlin, 75));
static_assert(holds(ArchitectureRule::row_wise_fp8, 89) && !holds(ArchitectureRule::row_wise_fp8, 86));
// A rule holds for nothing that its row leaves out, also not for what no GPU is.
static_assert(!holds(ArchitectureRule::convolution_scratch, 0) && !holds(ArchitectureRule::convolution_scratch, 1000));

}  // namespace
}  // namespace vlmest::rules_test
