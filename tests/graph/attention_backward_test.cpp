// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/engine.hpp>

namespace vlmest::attention_backward_test {
namespace {

struct Call {
  std::int64_t batch, heads, kv_heads, tokens, head_dim;
  DType dtype = DType::bf16;
  bool masked = false;
  int sm = 80;
};

/// The backward's node of one call on projected states, its scratch and the bytes that the forward left for it.
struct Recorded {
  std::string name;
  std::vector<std::int64_t> scratch;
};
Recorded backward_of(const Call& c) {
  Builder b;
  b.gpu.sm = c.sm;
  const auto parameter = [&](std::int64_t heads) {
    const TensorId t = b.persistent("x", Role::weight, c.dtype, {c.batch, c.tokens, heads, c.head_dim});
    b.require_grad(t);
    return t;
  };
  const TensorId q = parameter(c.heads), k = parameter(c.kv_heads), v = parameter(c.kv_heads);
  b.enable_grad(true);
  b.begin_phase(PhaseKind::forward);
  const auto states = [&](TensorId t) { return eager::transpose(Value(b, t), 1, 2); };
  Value mask;
  if (c.masked) mask = b.existing("mask", Role::input, DType::boolean, {c.batch, 1, c.tokens, c.tokens});
  Value query = states(q), keys = states(k), values = states(v);
  Value out = eager::scaled_dot_product_attention(query, keys, values, mask, false);
  b.end_phase();
  b.begin_phase(PhaseKind::backward);
  {
    // ones_like keeps the result's layout, [B, S, H, D].
    Value seed = eager::transpose(eager::fill(b, "ones_like", {c.batch, c.tokens, c.heads, c.head_dim}, c.dtype), 1, 2);
    BackwardEngine engine;
    engine.run(out, std::move(seed));
  }
  b.end_phase();
  Recorded r;
  for (const Node& n : b.graph.nodes) {
    const std::string name = n.name;
    if (name.find("attention_backward") == std::string::npos) continue;
    r.name = name;
    for (std::int32_t i = 0; i < n.scratch; ++i)
      r.scratch.push_back(b.graph.scratch[static_cast<std::size_t>(n.first_scratch + i)].value());
  }
  return r;
}
std::int64_t total(const Recorded& r) {
  std::int64_t n = 0;
  for (auto s : r.scratch) n += s;
  return n;
}

// Requested bytes of torch 2.11 on an H200, each backend forced.
TEST(AttentionBackward, FlashScratch) {
  const Recorded r = backward_of({2, 8, 8, 577, 64});
  EXPECT_EQ(r.name, "_scaled_dot_product_flash_attention_backward");
  EXPECT_EQ(r.scratch, (std::vector<std::int64_t>{40960, 2621440}));
  EXPECT_EQ(backward_of({2, 8, 8, 577, 72}).scratch, (std::vector<std::int64_t>{40960, 3932160}));
  EXPECT_EQ(backward_of({1, 8, 8, 577, 256}).scratch, (std::vector<std::int64_t>{20480, 5242880}));
  EXPECT_EQ(backward_of({2, 8, 2, 577, 64}).scratch, (std::vector<std::int64_t>{40960, 2621440, 1181696, 1181696}));
}

// Heads of 36 channels run as 40: the cut result's gradient comes back as [B, H, S, D], which the kernel cannot read.
TEST(AttentionBackward, PaddedHeadsCopyTheGradientAndTheResult) {
  constexpr std::int64_t copy = 2 * 8 * 128 * 40 * 2;
  EXPECT_EQ(backward_of({2, 8, 8, 128, 36}).scratch,
            (std::vector<std::int64_t>{copy, copy, 2 * 8 * 128 * 4, 2 * 8 * 128 * 64 * 4}));
}

TEST(AttentionBackward, EfficientScratch) {
  const Recorded r = backward_of({2, 8, 8, 577, 64, DType::bf16, true});
  EXPECT_EQ(r.name, "_scaled_dot_product_efficient_attention_backward");
  EXPECT_EQ(total(r), 36928 + 2624000);
  EXPECT_EQ(total(backward_of({2, 8, 8, 577, 72, DType::bf16, true})), 36928 + 5244160);
  EXPECT_EQ(total(backward_of({2, 8, 8, 576, 64, DType::bf16, true})), 36864 + 2361600);
  EXPECT_EQ(total(backward_of({1, 8, 8, 577, 256, DType::bf16, true})), 18464 + 15731200);
  EXPECT_EQ(total(backward_of({2, 8, 8, 577, 64, DType::fp32})), 36928 + 2624000);
  EXPECT_EQ(total(backward_of({2, 32, 32, 676, 128, DType::fp32})), 25351168);
}

TEST(AttentionBackward, CudnnScratch) {
  EXPECT_EQ(total(backward_of({2, 8, 8, 577, 64, DType::bf16, false, 90})), 2400576);
  EXPECT_EQ(total(backward_of({2, 8, 8, 577, 72, DType::bf16, false, 90})), 2696000);
  EXPECT_EQ(total(backward_of({2, 8, 2, 577, 64, DType::bf16, false, 90})), 4763968);
}

}  // namespace
}  // namespace vlmest::attention_backward_test
