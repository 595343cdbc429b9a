// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kernels/attention/cudnn.hpp>
#include <kernels/attention/decode.hpp>
#include <kernels/attention/flash.hpp>
#include <kernels/attention/flash_mma.hpp>
#include <kernels/attention/naive.hpp>
#include <kernels/cuda/fill.hpp>
#include <kernels/cuda/graph.hpp>
#include <kernels/reference/attention.hpp>

#include "device_tensor.hpp"

namespace vlmest::kernels::attention_test {
namespace {

std::string spelt(const Attention& op) {
  return std::string(name(op.dtype)) + " batch " + std::to_string(op.batch) + " heads " + std::to_string(op.heads) +
         "/" + std::to_string(op.kv_heads) + " q " + std::to_string(op.q_len) + " kv " + std::to_string(op.kv_len) +
         " head_dim " + std::to_string(op.head_dim) + (op.causal ? " causal" : "");
}

/// One op's operands and the right answer.
struct Problem {
  Attention op;
  Input q, k, v;
  std::vector<double> expected;

  /// `sharpness` scales the queries: scores have about that standard deviation.
  Problem(const Attention& o, Random& random, double sharpness = 1)
      : op(o),
        q(o.dtype, random.normal(o.batch * o.heads * o.q_len * o.head_dim, 0, sharpness)),
        k(o.dtype, random.normal(o.batch * o.kv_heads * o.kv_len * o.head_dim)),
        v(o.dtype, random.normal(o.batch * o.kv_heads * o.kv_len * o.v_dim)),
        expected(reference::attention(o, q.values(), k.values(), v.values())) {}

  std::int64_t outputs() const { return op.batch * op.heads * op.q_len * op.v_dim; }
};

/// One run into a poisoned output with a poisoned workspace.
template <class Kernel>
std::vector<double> run(const Kernel& kernel, const Problem& problem) {
  const cuda::Stream stream;
  const Output out(problem.op.dtype, problem.outputs());
  const cuda::Buffer workspace = scratch(kernel.workspace());
  kernel({problem.q.data(), problem.k.data(), problem.v.data(), out.data(), workspace.data()}, stream.get());
  stream.synchronize();
  return out.values();
}

template <class Kernel>
void expect_right(const Kernel& kernel, const Problem& problem, double spread = 8) {
  SCOPED_TRACE(std::string(kernel.name()) + " " + spelt(problem.op));
  expect_close(run(kernel, problem), problem.expected, tolerance(problem.op.dtype), spread);
}
/// Materialised scores are rounded to the type before the softmax. A score s of five standard deviations is then off by
/// 5 u, and so is its probability, by itself: an element of a row with few keys may be off by twice as much as without.
constexpr double spread_of_rounded_scores = 16;

struct Lengths {
  std::int64_t q_len, kv_len;
};

/// Around the tiles' sizes (64, 96, 128, 192), a vision tower's 577, and more queries than keys: the first ones of them
/// see nothing under a causal mask.
constexpr Lengths all_lengths[] = {{1, 1},     {1, 63},    {64, 64},   {63, 65},   {65, 129},   {127, 127}, {128, 128},
                                   {129, 257}, {192, 193}, {191, 384}, {577, 577}, {200, 1000}, {450, 900}, {300, 100}};

using Parameters = std::tuple<DType, int>;

class AttentionVariants : public DeviceTest, public ::testing::WithParamInterface<Parameters> {
 protected:
  /// Calls f with every problem of this head size and type; keys are shared by two heads in half of them.
  void for_each_problem(Random& random, const std::function<void(const Problem&)>& f,
                        std::span<const Lengths> lengths = all_lengths) const {
    for (const Lengths& l : lengths)
      for (const bool causal : {false, true}) {
        const bool shared = (l.q_len + causal) % 2 == 0;
        f(Problem(op({.batch = l.q_len < 300 ? 2 : 1,
                      .heads = 4,
                      .kv_heads = shared ? 2 : 4,
                      .q_len = l.q_len,
                      .kv_len = l.kv_len,
                      .causal = causal}),
                  random));
      }
  }
  Attention op(Attention o) const {
    std::tie(o.dtype, o.head_dim) = GetParam();
    o.v_dim = o.head_dim;
    return o;
  }
  static bool hopper() { return cuda::sm() == 90; }
};

TEST_P(AttentionVariants, Naive) {
  Random random;
  for_each_problem(random, [](const Problem& p) { expect_right(NaiveAttention(p.op), p, spread_of_rounded_scores); });
}

TEST_P(AttentionVariants, FlashMma) {
  Random random;
  for_each_problem(random, [](const Problem& p) { expect_right(FlashMmaAttention(p.op), p); });
}

TEST_P(AttentionVariants, Flash) {
  if (!hopper()) GTEST_SKIP() << "not a device of compute capability 9.0";
  Random random;
  for_each_problem(random, [](const Problem& p) { expect_right(FlashAttention(p.op), p); });
}

TEST_P(AttentionVariants, FlashInTurns) {
  if (!hopper()) GTEST_SKIP() << "not a device of compute capability 9.0";
  Random random;
  for_each_problem(random, [](const Problem& p) { expect_right(FlashAttention(p.op, {.ping_pong = true}), p); });
}

TEST_P(AttentionVariants, Cudnn) {
  if (!CudnnAttention::built()) GTEST_SKIP() << "built without cuDNN";
  Random random;
  // A few: each is compiled at run time.
  constexpr Lengths lengths[] = {{64, 64}, {129, 257}, {577, 577}};
  for_each_problem(
      random, [](const Problem& p) { expect_right(CudnnAttention(p.op), p); }, lengths);
}

TEST_P(AttentionVariants, SharpScoresRescaleWhatWasSummed) {
  Random random;
  for (const bool causal : {false, true}) {
    // Scores up to about 40: the largest of a row moves from tile to tile, and most keys vanish.
    const Problem p(op({.heads = 2, .q_len = 300, .kv_len = 700, .causal = causal}), random, 8);
    expect_right(FlashMmaAttention(p.op), p);
    expect_right(DecodeAttention(p.op, 3), p);
    if (hopper()) expect_right(FlashAttention(p.op), p);
  }
}

TEST_P(AttentionVariants, Decode) {
  Random random;
  for (const std::int64_t kv_len : {1, 16, 17, 64, 65, 1000, 2003})
    for (const std::int64_t group : {1, 7, 20})
      for (const std::int64_t q_len : {1, 3}) {
        const Problem p(op({.batch = 2,
                            .heads = 2 * group,
                            .kv_heads = 2,
                            .q_len = q_len,
                            .kv_len = kv_len,
                            .causal = q_len > 1 || kv_len % 2 == 0}),
                        random);
        for (const std::int64_t splits : {0, 1, 5, 128}) {
          const DecodeAttention kernel(p.op, splits);
          SCOPED_TRACE(std::to_string(kernel.splits()) + " splits");
          expect_right(kernel, p);
        }
      }
}

TEST_P(AttentionVariants, DecodeOverALongCache) {
  Random random;
  const Problem p(op({.heads = 8, .kv_heads = 1, .q_len = 1, .kv_len = 60'001, .causal = true}), random);
  const DecodeAttention kernel(p.op);
  EXPECT_GT(kernel.splits(), 1);
  expect_right(kernel, p);
}

TEST_P(AttentionVariants, RunsRepeatBitByBit) {
  Random random;
  const Problem p(op({.heads = 8, .kv_heads = 2, .q_len = 500, .kv_len = 900, .causal = true}), random);
  const auto twice = [&](const auto& kernel) {
    SCOPED_TRACE(kernel.name());
    EXPECT_EQ(run(kernel, p), run(kernel, p));
  };
  twice(FlashMmaAttention(p.op));
  twice(DecodeAttention(p.op));
  if (hopper()) twice(FlashAttention(p.op));
}

INSTANTIATE_TEST_SUITE_P(HeadSizes, AttentionVariants,
                         ::testing::Combine(::testing::Values(DType::bf16, DType::fp16),
                                            ::testing::Values(64, 72, 80, 128, 256)),
                         [](const auto& i) {
                           return std::string(name(std::get<0>(i.param))) + "_" + std::to_string(std::get<1>(i.param));
                         });

class AttentionDevice : public DeviceTest {};

TEST_F(AttentionDevice, LongSequencesAgree) {
  // Too long for the reference: many tiles, many blocks for each multiprocessor, stages used over and over.
  if (cuda::sm() != 90) GTEST_SKIP() << "not a device of compute capability 9.0";
  for (const bool causal : {false, true})
    for (const std::int64_t head_dim : {64, 80, 128, 256}) {
      const Attention op{.batch = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .q_len = 4096 - 5,
                         .kv_len = 4096,
                         .head_dim = head_dim,
                         .v_dim = head_dim,
                         .causal = causal};
      SCOPED_TRACE(spelt(op));
      const std::uint64_t seed = fresh_seed();
      const cuda::Stream stream;
      const auto filled = [&](std::int64_t elements, std::uint64_t part) {
        cuda::Buffer r(Bytes(2 * elements));
        cuda::fill_uniform(r.data(), Elements(elements), op.dtype, -2, 2, seed + part, stream.get());
        return r;
      };
      const cuda::Buffer q = filled(op.batch * op.heads * op.q_len * head_dim, 0);
      const cuda::Buffer k = filled(op.batch * op.kv_heads * op.kv_len * head_dim, 1);
      const cuda::Buffer v = filled(op.batch * op.kv_heads * op.kv_len * head_dim, 2);
      const auto answer = [&](const auto& kernel) {
        const Output out(op.dtype, op.batch * op.heads * op.q_len * head_dim);
        kernel({q.data(), k.data(), v.data(), out.data()}, stream.get());
        stream.synchronize();
        return out.values();
      };
      const auto expected = answer(FlashMmaAttention(op));
      expect_close(answer(FlashAttention(op)), expected, tolerance(op.dtype), 16);
      expect_close(answer(FlashAttention(op, {.ping_pong = true})), expected, tolerance(op.dtype), 16);
    }
}

TEST_F(AttentionDevice, NaiveTakesOtherSizes) {
  Random random;
  const Problem p({.batch = 2, .heads = 6, .kv_heads = 2, .q_len = 33, .kv_len = 49, .head_dim = 48, .v_dim = 24},
                  random);
  const NaiveAttention kernel(p.op);
  EXPECT_EQ(kernel.scores(), Bytes(2 * 6 * 33 * 49 * 2));
  EXPECT_GE(kernel.workspace(), kernel.scores());
  expect_right(kernel, p);
}

TEST_F(AttentionDevice, RunsFromAGraph) {
  Random random;
  const Problem p({.heads = 4, .q_len = 100, .kv_len = 300, .head_dim = 128, .v_dim = 128}, random);
  const auto expect_recorded = [&](const auto& kernel) {
    SCOPED_TRACE(kernel.name());
    const cuda::Stream stream;
    const Output out(p.op.dtype, p.outputs());
    const cuda::Buffer workspace = scratch(kernel.workspace());
    const AttentionOperands operands{p.q.data(), p.k.data(), p.v.data(), out.data(), workspace.data()};
    kernel(operands, stream.get());  // whatever a first call loads
    stream.synchronize();
    cuda::poison(out.data(), Bytes(2 * p.outputs()), stream.get());
    const cuda::Graph graph(stream.get(), [&] { kernel(operands, stream.get()); });
    graph.launch(stream.get());
    stream.synchronize();
    expect_close(out.values(), p.expected, tolerance(p.op.dtype));
  };
  expect_recorded(NaiveAttention(p.op));
  expect_recorded(FlashMmaAttention(p.op));
  expect_recorded(DecodeAttention(p.op, 2));
  if (cuda::sm() == 90) expect_recorded(FlashAttention(p.op));
  if (CudnnAttention::built()) expect_recorded(CudnnAttention(p.op));
}

TEST_F(AttentionDevice, SaysWhatItCannotDo) {
  const Attention good{.heads = 4, .kv_heads = 2, .q_len = 8, .kv_len = 8, .head_dim = 64, .v_dim = 64};
  EXPECT_NO_THROW(FlashMmaAttention{good});
  const auto refused = [&](const std::function<void(Attention&)>& change) {
    Attention op = good;
    change(op);
    EXPECT_THROW(FlashMmaAttention{op}, Error);
    EXPECT_THROW(FlashAttention{op}, Error);
    EXPECT_THROW(DecodeAttention{op}, Error);
  };
  refused([](Attention& o) { o.head_dim = o.v_dim = 96; });
  refused([](Attention& o) { o.v_dim = 128; });
  refused([](Attention& o) { o.kv_heads = 3; });
  refused([](Attention& o) { o.kv_len = 0; });
  refused([](Attention& o) { o.dtype = DType::fp32; });
  refused([](Attention& o) { o.kv_dtype = DType::fp8; });
  refused([](Attention& o) { o.mask = Bytes(1); });
  EXPECT_THROW(DecodeAttention(good, 129), Error);
  EXPECT_THROW(DecodeAttention(good, -1), Error);
}

}  // namespace
}  // namespace vlmest::kernels::attention_test
