// SPDX-License-Identifier: Apache-2.0
// InstructBLIP: the instruction's tokens beside the Q-Former's queries, how many there are, frames of a video.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/family/blip2/family.hpp>
#include <vlmest/family/blip2/t5.hpp>
#include <vlmest/family/blip2/video_rule.hpp>
#include <vlmest/transform/training_step.hpp>

#include "family_support.hpp"

namespace vlmest::instructblip_family_test {
namespace {

using test::count;
using test::inference;

constexpr std::int64_t queries = 3, layers = 5, crosses = 3, positions = 20, patches = 4;

Vlm tiny(bool videos = false) {
  Blip2DecoderFamily f;
  f.vision = {.hidden = 32, .intermediate = 64, .layers = 2, .heads = 2, .image_size = 28};
  f.qformer = {.hidden = 32,
               .intermediate = 48,
               .layers = layers,
               .heads = 2,
               .cross_every = 2,
               .encoder_hidden = 32,
               .instructed = true,
               .vocab = 50,
               .positions = positions};
  f.language = LlamaConfig{
      .vocab = 100, .hidden = 64, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 4, .head_dim = 16};
  f.query_tokens = queries;
  f.videos = videos;
  Vlm m{.name = "tiny", .type = videos ? "instructblipvideo" : "instructblip"};
  m.family = f;
  const image_processor::Blip2 square{.image_size = 28, .query_tokens = queries};
  if (videos)
    m.image_processor = image_processor::InstructBlipVideo{square};
  else
    m.image_processor = square;
  m.native = {28, 28};
  return m;
}
Plan plan(std::int64_t batch = 2, std::int64_t text = 11) { return {.batch = batch, .text = text}; }
Plan film(std::int64_t frames, std::int64_t batch = 2) {
  Plan p = plan(batch);
  p.images = 0;
  p.video = VideoPlan{.frames = frames};
  return p;
}
std::string refused(const Vlm& v, const Plan& p) {
  try {
    inference(v, p);
  } catch (const Error& e) {
    return e.where;
  }
  return "accepted";
}

/// Attention of the Q-Former: of queries and text to themselves, and of queries to the image.
struct Reads {
  int own = 0, cross = 0;
};
Reads reads(const Graph& g, std::int64_t rows, std::int64_t text) {
  Reads r;
  for (const auto& n : g.nodes) {
    const auto* a = std::get_if<Attention>(&g.op(n));
    if (a == nullptr || !path(g, n.scope).starts_with("qformer")) continue;
    r.own += a->batch == rows && a->q_len == queries + text && a->kv_len == queries + text;
    r.cross += a->batch == rows && a->q_len == queries && a->kv_len == patches + 1;
  }
  return r;
}

TEST(InstructBlipFamily, QueriesAttendToTheTextAndAloneToTheImage) {
  Plan p = plan();
  p.instruction = 7;
  const Graph g = inference(tiny(), p);
  const Reads r = reads(g, 2, 7);
  EXPECT_EQ(r.own, layers);
  EXPECT_EQ(r.cross, crosses);
  // Text and queries have an MLP each.
  for (const char* mlp : {"intermediate.dense", "intermediate_query.dense"})
    EXPECT_EQ(count(g, "addmm", mlp) + count(g, "mm", mlp), layers) << mlp;
  // A decode step is the language model's alone.
  EXPECT_GT(count(g, 0, "embedding", "qformer"), 0);
  for (NodeId i = g.phases[1].first; i < g.phases[1].last; ++i)
    EXPECT_TRUE(path(g, g.node(i).scope).starts_with("language_model")) << g.node(i).name;
}

TEST(InstructBlipFamily, TheInstructionIsTheTextUnlessThePlanSaysHowLongItIs) {
  const Vlm v = tiny();
  EXPECT_EQ(make_sequences(v, plan(2, 11)).instruction, 11);
  EXPECT_EQ(make_sequences(v, plan(2, 1)).instruction, 2);  // BERT's two tokens around it
  EXPECT_EQ(make_sequences(v, plan(2, 400)).instruction, positions);
  Plan p = plan();
  p.seq = queries + 6;
  EXPECT_EQ(make_sequences(v, p).instruction, 6);
  p.instruction = 9;
  EXPECT_EQ(make_sequences(v, p).instruction, 9);
  for (std::int64_t n : {std::int64_t{0}, positions + 1}) {
    p.instruction = n;
    EXPECT_EQ(refused(v, p), "plan.instruction") << n;
  }
  Blip2Family blip2;
  blip2.vision = get<Blip2DecoderFamily>(v.family).vision;
  Vlm other = v;
  other.family = blip2;
  EXPECT_EQ(make_sequences(other, plan()).instruction, 0);
  p.instruction = 4;
  EXPECT_EQ(refused(other, p), "plan.instruction");
}

TEST(InstructBlipFamily, OnlyQueriesAreFp32InAnFp16Model) {
  Plan p = plan();
  p.dtype = DType::fp16;
  const Graph g = inference(tiny(), p);
  int wide = 0;
  for (const auto& t : g.tensors)
    if (t.role == Role::weight && t.alias_of == none && t.dtype == DType::fp32) {
      ++wide;
      EXPECT_EQ(std::string_view(t.name), "query_tokens");
    }
  EXPECT_EQ(wide, 1);
  // Their concatenation with the text is fp32, and cast before the norm.
  EXPECT_EQ(count(g, 0, "_to_copy", "qformer.embeddings"), 1);
  p.dtype = DType::bf16;
  EXPECT_EQ(count(inference(tiny(), p), 0, "_to_copy", "qformer.embeddings"), 0);
}

TEST(InstructBlipFamily, EachChunkOfPicturesGoesWithItsInstructions) {
  Plan p = plan(3);
  p.vision_chunk = 2;
  p.instruction = 5;
  const Graph g = inference(tiny(), p);
  std::vector<std::int64_t> rows;
  for (const auto& n : g.nodes)
    if (path(g, n.scope) == "qformer.embeddings.word_embeddings") rows.push_back(g.tensor(g.outputs(n)[0]).shape[0]);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(reads(g, 2, 5).own, layers);
  EXPECT_EQ(reads(g, 1, 5).own, layers);
}

TEST(InstructBlipFamily, EveryFrameIsReadWithTheInstruction) {
  Plan p = film(4);
  p.instruction = 6;
  const Graph g = inference(tiny(true), p);
  EXPECT_EQ(reads(g, 8, 6).own, layers);
  EXPECT_EQ(reads(g, 8, 6).cross, crosses);
  EXPECT_EQ(make_sequences(tiny(true), p).seq, 11 + 4 * queries);
  // The processor writes placeholders for four frames, however many there are.
  const Sequences more = make_sequences(tiny(true), film(6));
  EXPECT_EQ(more.seq, 11 + 4 * queries);
  EXPECT_EQ(reads(inference(tiny(true), film(6)), 12, 11).own, layers);
}

TEST(InstructBlipFamily, WhatCannotRunIsRefused) {
  EXPECT_EQ(refused(tiny(), plan()), "accepted");
  for (std::int64_t images : {0, 2}) {
    Plan p = plan();
    p.images = images;
    EXPECT_EQ(refused(tiny(), p), "plan.images") << images;
  }
  EXPECT_EQ(refused(tiny(), film(4)), "plan.video");
  EXPECT_EQ(refused(tiny(true), film(4)), "accepted");
  EXPECT_EQ(refused(tiny(true), film(3)), "plan.video.frames");
  EXPECT_EQ(refused(tiny(true), plan()), "plan.images");
  Plan none = plan();
  none.images = 0;
  EXPECT_EQ(refused(tiny(true), none), "plan.video");
  // Its Q-Former has FlashAttention, which BLIP-2's refuses.
  Plan flash = plan();
  flash.attention = AttentionKind::flash;
  EXPECT_EQ(refused(tiny(), flash), "accepted");
  Blip2T5Family f;
  f.qformer.instructed = true;
  Vlm t5 = tiny();
  t5.family = f;
  EXPECT_EQ(refused(t5, plan()), "accepted");
  EXPECT_EQ(refused(t5, flash), "plan.attention");
}

TEST(InstructBlipFamily, TrainingReachesTheTablesOfTheText) {
  const Vlm v = tiny();
  const Plan p = plan();
  Builder b;
  {
    Context c{b, p, stack_of(p)};
    build_training(c, v, make_sequences(v, p));
  }
  const Graph& g = b.graph;
  int dense = 0;
  for (const auto& n : g.nodes) dense += std::string_view(n.name) == "embedding_dense_backward";
  EXPECT_EQ(dense, 3);  // words and positions of the Q-Former, words of the language model
}

}  // namespace
}  // namespace vlmest::instructblip_family_test
