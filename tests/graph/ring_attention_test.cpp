// SPDX-License-Identifier: Apache-2.0
// Attention of parts of sequences, against what torch 2.11 allocated on two H100.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/engine.hpp>
#include <vlmest/report/live_tensor.hpp>

namespace vlmest::ring_attention_test {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Recorded {
  Graph graph;
  NodeId backward = 0;  ///< begins here
};

/// The attention of one layer over this rank's part: q, k and v as rotation leaves them, [B, H, S, D] in the storage of
/// [B, S, H, D].
Recorded run(eager::RingRank at, std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads, int sm = 90) {
  Builder b;
  b.gpu = {.sm = sm, .multiprocessors = 132};
  const auto states = [&](std::int64_t n) {
    const TensorId t = b.persistent("x", Role::weight, DType::bf16, {1, tokens / at.ranks, n, 128});
    b.require_grad(t);
    return eager::transpose(Value(b, t), 1, 2);
  };
  b.enable_grad(true);
  Value q = states(heads), k = states(kv_heads), v = states(kv_heads);
  b.begin_phase(PhaseKind::forward);
  Value out = eager::ring_attention(q, k, v, at, false);
  b.end_phase();
  Recorded r;
  r.backward = static_cast<NodeId>(b.graph.nodes.size());
  b.begin_phase(PhaseKind::backward);
  {
    Value seed = eager::fill_like("ones_like", out);
    BackwardEngine engine;
    engine.run(out, std::move(seed));
  }
  b.end_phase();
  r.graph = b.graph;
  return r;
}

/// Bytes of the results of nodes [first, last), in the order in which they are allocated.
Sizes allocated(const Graph& g, NodeId first, NodeId last) {
  Sizes r;
  for (const Tensor& t : g.tensors)
    if (t.alias_of == none && (t.role == Role::activation || t.role == Role::gradient) && t.born >= first &&
        t.born < last)
      r.push_back(requested_bytes(t).value());
  return r;
}
/// What is held at most while they run, scratch included, beyond what was there before.
std::int64_t peak(const Graph& g, NodeId first, NodeId last) {
  Timeline timeline;
  timeline.assign(g);
  std::int64_t before = 0, most = 0;
  for (NodeId n = first; n < last; ++n) {
    std::int64_t held = 0;
    for (const Storage& s : timeline.storages())
      if (s.born < first ? false : alive(s, n)) held += s.bytes.value();
    for (const Bytes b : g.scratch_of(g.node(n))) held += b.value();
    most = std::max(most, held);
  }
  return most - before;
}

// One layer of LLaVA-1.5-7B over 1,596 tokens: key and value made row-major, both in one, gathered; the attention of
// this rank's own part, its fp32 copy; that of the other's, and what joins them. Scratch is left out.
TEST(RingAttention, FirstRankAllocatesWhatWasRecorded) {
  const Recorded r = run({2, 0}, 1596, 32, 32);
  EXPECT_EQ(allocated(r.graph, 0, r.backward),
            (Sizes{6537216, 6537216, 13074432, 26148864, 8,       8,        6537216, 102144,  13074432,
                   8,       8,       3268608,  51072,    6537216, 51072,    51072,   6537216, 6537216,
                   6537216, 51072,   51072,    51072,    102144,  13074432, 6537216}));
  const auto end = static_cast<NodeId>(r.graph.nodes.size());
  const Sizes recorded{13074432, 13074432, 13074432, 6537216,  6537216,  13074432, 26148864, 6537216,
                       6537216,  6537216,  13074432, 13074432, 26148864, 26148864, 51072,    3268608,
                       6537216,  6537216,  26148864, 26148864, 13074432, 6537216,  13074432};
  Sizes backward = allocated(r.graph, r.backward + 1, end);  // behind the seed
  backward.resize(std::min(backward.size(), recorded.size()));
  EXPECT_EQ(backward, recorded);
}

TEST(RingAttention, LastRankAllocatesWhatWasRecorded) {
  const Recorded r = run({2, 1}, 1596, 32, 32);
  EXPECT_EQ(allocated(r.graph, 0, r.backward),
            (Sizes{6537216,  6537216,  13074432, 26148864, 8,      8,        6537216, 102144,
                   13074432, 8,        8,        6537216,  102144, 13074432, 102144,  102144,
                   13074432, 13074432, 13074432, 102144,   102144, 102144,   6537216}));
  const auto end = static_cast<NodeId>(r.graph.nodes.size());
  const Sizes recorded{13074432, 13074432, 13074432, 6537216,  6537216,  13074432, 26148864, 6537216,
                       6537216,  6537216,  13074432, 13074432, 26148864, 26148864, 6537216,  3268608,
                       3268608,  13074432, 13074432, 26148864, 26148864, 6537216,  13074432};
  Sizes backward = allocated(r.graph, r.backward + 1, end);
  backward.resize(std::min(backward.size(), recorded.size()));
  EXPECT_EQ(backward, recorded);
}

/// FLOPs as torch counts them, but half of them where a triangle is left out.
double pairs(const Attention& a) { return static_cast<double>(cost(a).flops.value()) * (a.causal ? 0.5 : 1); }

/// Every key meets the queries behind it once, on one rank or another: half of all pairs.
TEST(RingAttention, RanksTogetherDoTheWholeWork) {
  const std::int64_t tokens = 4096, heads = 8;
  const double whole = pairs({.batch = 1,
                              .heads = heads,
                              .kv_heads = heads,
                              .q_len = tokens,
                              .kv_len = tokens,
                              .head_dim = 128,
                              .v_dim = 128,
                              .causal = true,
                              .dtype = DType::bf16});
  for (const int ranks : {2, 4, 8}) {
    double sum = 0, most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Recorded r = run({ranks, rank}, tokens, heads, heads);
      double own = 0;
      for (NodeId n = 0; n < r.backward; ++n)
        if (const auto* a = std::get_if<Attention>(&r.graph.op(r.graph.node(n)))) own += pairs(*a);
      sum += own;
      most = std::max(most, own);
    }
    EXPECT_NEAR(sum / whole, 1, 0.01) << ranks;
    EXPECT_NEAR(most * ranks / whole, 1, 0.01) << "all have as much to do: " << ranks;
  }
}

TEST(RingAttention, GathersOnceAndSendsGradientsRound) {
  for (const int ranks : {2, 4}) {
    const Recorded r = run({ranks, 1}, 4096, 8, 2);
    const auto count = [&](CollectiveKind kind, NodeId first, NodeId last) {
      std::vector<Bytes> found;
      for (NodeId n = first; n < last; ++n)
        if (const auto* op = std::get_if<CollectiveOp>(&r.graph.op(r.graph.node(n))); op && op->kind == kind)
          found.push_back(op->bytes);
      return found;
    };
    const auto end = static_cast<NodeId>(r.graph.nodes.size());
    const Bytes both(std::int64_t{2} * 4096 * 2 * 128 * 2);  // keys and values of all ranks in bf16
    EXPECT_EQ(count(CollectiveKind::all_gather, 0, r.backward), std::vector{both});
    EXPECT_EQ(count(CollectiveKind::all_gather, r.backward, end), std::vector{both});
    EXPECT_EQ(count(CollectiveKind::send, r.backward, end),
              std::vector(static_cast<std::size_t>(ranks), Bytes(both.value() * 2 / ranks)))
        << "gradients of this rank's share of them in fp32";
  }
}

TEST(RingAttention, FlashRunsWhereCudnnDoesNotLead) {
  const Recorded r = run({2, 0}, 1024, 8, 8, 80);
  int calls = 0;
  for (const Node& n : r.graph.nodes) calls += std::string(n.name) == "_scaled_dot_product_flash_attention";
  EXPECT_EQ(calls, 2);
  EXPECT_GT(peak(r.graph, r.backward, static_cast<NodeId>(r.graph.nodes.size())), peak(r.graph, 0, r.backward))
      << "gradients go round in fp32";
}

TEST(RingAttention, RefusesOtherKernels) {
  EXPECT_THROW(run({2, 0}, 1024, 8, 8, 70), Error) << "neither cuDNN's nor Flash's attention on Volta";
}

}  // namespace
}  // namespace vlmest::ring_attention_test
