// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <kernels/attention/cudnn.hpp>

#if defined(VLMEST_HAVE_CUDNN)

#include <kernels/attention/cudnn_graph.hpp>

namespace vlmest::kernels::attention {
namespace {

TEST(CudnnAttentionGraph, IsAcceptedWithoutADevice) {
  for (const std::int64_t head_dim : {64, 72, 80, 128, 256})
    for (const DType dtype : {DType::bf16, DType::fp16})
      for (const bool causal : {false, true})
        for (const std::int64_t q_len : {1, 577}) {
          const Attention op{.batch = 2,
                             .heads = 8,
                             .kv_heads = 2,
                             .q_len = q_len,
                             .kv_len = 577,
                             .head_dim = head_dim,
                             .v_dim = head_dim,
                             .causal = causal,
                             .dtype = dtype};
          EXPECT_NO_THROW(static_cast<void>(CudnnAttentionGraph(op).finalised(nullptr)));
        }
}

TEST(CudnnAttentionGraph, MismatchedTensorsAreRefused) {
  // Values for other keys than the scores have: the second product does not fit. The library must see it, or the test
  // above shows nothing.
  const CudnnTensor scores{.sizes = {1, 1, 4, 8}, .strides = {32, 32, 8, 1}, .type = CUDNN_DATA_HALF};
  const CudnnTensor values{.sizes = {1, 1, 9, 16}, .strides = {144, 144, 16, 1}, .type = CUDNN_DATA_HALF};
  const CudnnTensor out{.sizes = {1, 1, 4, 16}, .strides = {64, 64, 16, 1}, .type = CUDNN_DATA_HALF};
  CudnnDescriptor kind(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalise();
  const CudnnDescriptor a = scores.described(1);
  const CudnnDescriptor b = values.described(2);
  const CudnnDescriptor c = out.described(3);
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  EXPECT_THROW(operation.finalise(), Error);
}

}  // namespace
}  // namespace vlmest::kernels::attention

#else

namespace vlmest::kernels::attention_cudnn_test {
namespace {

TEST(CudnnAttention, SaysThatItWasNotBuilt) {
  EXPECT_FALSE(CudnnAttention::built());
  EXPECT_THROW(CudnnAttention(Attention{}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::attention_cudnn_test

#endif
