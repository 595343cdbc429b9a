// SPDX-License-Identifier: Apache-2.0
// Which backend scaled_dot_product_attention chooses for masks that not every kernel takes.
#include <gtest/gtest.h>

#include <vlmest/library/attention.hpp>

namespace vlmest::attention_test {
namespace {

constexpr SdpaCall masked(DType t, int sm) {
  return {
      .op =
          {.batch = 2, .heads = 4, .kv_heads = 4, .q_len = 24, .kv_len = 132, .head_dim = 64, .v_dim = 64, .dtype = t},
      .gpu = {.sm = sm},
      .masked = true};
}

// As recorded for the biases of T5 on an H200.
TEST(SdpaBackend, RowsWithGapsAreForTheMathPathAlone) {
  for (const DType t : {DType::bf16, DType::fp16, DType::fp32})
    for (const int sm : {75, 80, 90}) {
      SdpaCall c = masked(t, sm);
      EXPECT_NE(choose_backend(c), AttentionBackend::flash);
      c.mask_gaps = true;
      EXPECT_EQ(choose_backend(c), AttentionBackend::math) << name(t) << " " << sm;
    }
}

TEST(SdpaBackend, AMaskThatTrainsIsNotForCudnn) {
  SdpaCall c = masked(DType::bf16, 90);
  EXPECT_EQ(choose_backend(c), AttentionBackend::cudnn);
  c.mask_trains = true;
  EXPECT_EQ(choose_backend(c), AttentionBackend::efficient);
}

}  // namespace
}  // namespace vlmest::attention_test
