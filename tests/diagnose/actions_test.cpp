// SPDX-License-Identifier: Apache-2.0
// Actions: each is what a fresh estimate of its settings says, none is offered in vain, and the order is the
// documented.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include <vlmest/diagnose/advise/action/actions.hpp>
#include <vlmest/parallel/link.hpp>

#include "planning_support.hpp"

namespace vlmest::diagnose::actions_test {
namespace {

using test::device_of;
using test::settings;

std::set<std::string> ids(const std::vector<Action>& all) {
  std::set<std::string> r;
  for (const auto& a : all) r.emplace(name(a.id));
  return r;
}
const Action* find(const std::vector<Action>& all, const std::string& id) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Action& a) { return name(a.id) == id; });
  return at == all.end() ? nullptr : &*at;
}
Plan eager(std::int64_t batch) {
  Plan p;
  p.batch = batch;
  p.attention = AttentionKind::eager;
  return p;
}

/// What holds for the actions of any run.
std::vector<Action> checked(const Settings& now, const Device& device, Mode mode) {
  Estimator estimator;
  estimator.details = true;
  estimator.allocator.max_split_size = Bytes(64 << 20);
  const auto all = actions(now, device, mode, estimator);
  EXPECT_TRUE(estimator.details);
  EXPECT_EQ(estimator.allocator.max_split_size, Bytes(64 << 20));
  const Outcome before = evaluate(now, device, mode, estimator);
  for (const Action& a : all) {
    SCOPED_TRACE(name(a.id));
    Estimator fresh;
    const Outcome after = evaluate(a.after, device, mode, fresh);
    EXPECT_EQ(a.peak_after, after.peak);
    EXPECT_EQ(a.reserved_after, after.reserved);
    EXPECT_EQ(a.fits, after.fits);
    EXPECT_EQ(a.saves, a.of_reserved ? before.reserved - after.reserved : before.peak - after.peak);
    EXPECT_GT(a.saves, Bytes{});
    EXPECT_NEAR(a.time_cost_pct, (after.per_sample().value / before.per_sample().value - 1) * 100, 1e-9);
    EXPECT_FALSE(a.how.empty());
    EXPECT_EQ(a.how.find('\n'), std::string::npos);
    EXPECT_FALSE(a.title.empty());
  }
  EXPECT_EQ(ids(all).size(), all.size());
  return all;
}

TEST(Actions, OfATrainingStepThatDoesNotFit) {
  const Settings now = settings("qwen2-vl-2b", eager(8));
  const auto all = checked(now, device_of(40), Mode::training);
  const auto offered = ids(all);
  for (const char* id : {"checkpointing-full", "checkpointing-layers", "checkpointing-selective",
                         "checkpointing-vision", "attention-sdpa", "attention-flash", "loss-fused", "loss-chunked",
                         "optimizer-8bit", "optimizer-adafactor", "freeze-vision", "lora-16", "qlora", "smaller-images",
                         "shorter-seq", "offload-optimizer", "offload-parameters", "smaller-micro-batch"})
    EXPECT_TRUE(offered.contains(id)) << id;
  for (const char* id : {"zero-1", "zero-3", "logits-last", "weights-int8", "kv-fp8", "fewer-images", "smaller-batch",
                         "fewer-new-tokens", "weights-bf16"})
    EXPECT_FALSE(offered.contains(id)) << id;
  EXPECT_EQ(all.back().id, action_id("smaller-micro-batch"));
  const Plan& p = all.back().after.plan;
  EXPECT_EQ(p.batch * p.gradient_accumulation, 8);
  // Recomputing costs time, and everything but the last resort stands in order.
  EXPECT_GT(find(all, "checkpointing-full")->time_cost_pct, 10);
  EXPECT_TRUE(find(all, "checkpointing-full")->fits);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].loses == Loses::order || all[i - 1].loses == Loses::order) continue;
    EXPECT_GE(all[i - 1].fits, all[i].fits) << name(all[i].id);
    if (all[i - 1].fits != all[i].fits) continue;
    EXPECT_LE(all[i - 1].loses, all[i].loses) << name(all[i].id);
    if (all[i - 1].loses == all[i].loses) {
      EXPECT_LE(all[i - 1].time_cost_pct, all[i].time_cost_pct) << name(all[i].id);
    }
  }
  // The vision tower alone: between nothing and everything.
  EXPECT_GT(find(all, "checkpointing-vision")->peak_after, find(all, "checkpointing-full")->peak_after);
  EXPECT_LT(find(all, "checkpointing-vision")->time_cost_pct, find(all, "checkpointing-full")->time_cost_pct);
  EXPECT_NE(find(all, "freeze-vision")->how.find("model.model.visual."), std::string::npos);
  // transformers matches names from their beginning: "visual" alone would skip nothing.
  EXPECT_NE(find(all, "qlora")->how.find("llm_int8_skip_modules=[\"model.visual\", \"lm_head\"]"), std::string::npos);
}

TEST(Actions, OfLinearAttentionWithoutItsPackages) {
  Plan p;
  p.images = 0;
  p.text = 2048;
  const auto all = checked(settings("qwen3.5-4b", p), device_of(80), Mode::training);
  const auto* packages = find(all, "kernel-packages");
  ASSERT_NE(packages, nullptr);
  EXPECT_EQ(packages->how.find("pip install flash-linear-attention causal-conv1d"), 0U) << packages->how;
  EXPECT_GT(packages->saves, Bytes(std::int64_t{1} << 30));
  EXPECT_LT(packages->time_cost_pct, 0);
  p.packages = {.fla = true, .causal_conv1d = true};
  EXPECT_FALSE(ids(checked(settings("qwen3.5-4b", p), device_of(80), Mode::training)).contains("kernel-packages"));
  EXPECT_FALSE(ids(checked(settings("qwen2-vl-2b", {}), device_of(80), Mode::training)).contains("kernel-packages"));
}

TEST(Actions, OfInference) {
  Plan p;
  p.batch = 16;
  p.logits = Logits::all;
  const auto all = checked(settings("qwen2-vl-2b", p), device_of(6), Mode::inference);
  const auto offered = ids(all);
  for (const char* id : {"logits-last", "weights-int8", "smaller-batch", "shorter-seq"})
    EXPECT_TRUE(offered.contains(id)) << id;
  for (const char* id : {"checkpointing-full", "lora-16", "optimizer-8bit", "offload-optimizer", "smaller-micro-batch"})
    EXPECT_FALSE(offered.contains(id)) << id;
  EXPECT_EQ(all.back().id, action_id("smaller-batch"));
}

TEST(Actions, OfASpectralBlockThatKeepsItsSteps) {
  Plan p;
  p.batch = 8;
  Settings now = settings("llava-next-7b-fft", p);
  EXPECT_FALSE(ids(checked(now, device_of(1), Mode::inference)).contains("fft-release"));
  // Transforms of so many channels are larger than anything else.
  SpectralFilter wide{.grid = {24, 24}, .channels = 8192, .flat = false, .keeps_steps = true};
  const BlockPoint after = now.vlm.blocks.front().after;
  now.vlm.blocks = {{after, LinearBlock{1024, 8192}, {}, false},
                    {after, wide, {}, false},
                    {after, LinearBlock{8192, 1024}, {}, false}};
  const auto all = checked(now, device_of(1), Mode::inference);
  ASSERT_NE(find(all, "fft-release"), nullptr);
  // The fp32 copy, the spectrum and the product of eight times five tiles, and the result beside its cast.
  EXPECT_GT(find(all, "fft-release")->saves, Bytes(std::int64_t{40} * 576 * 8192 * 4));
}

TEST(Actions, WhatIsInForceIsNotOffered) {
  Plan p;
  p.batch = 4;
  p.checkpointing = Checkpointing::full;
  p.attention = AttentionKind::flash;
  p.loss = Loss::chunked;
  p.optimizer = Optimizer::sgd;
  p.lora.rank = 8;
  p.weights = DType::nf4;
  const auto offered = ids(checked(settings("llava-onevision-0.5b", p), device_of(4), Mode::training));
  for (const char* id : {"checkpointing-full", "checkpointing-layers", "checkpointing-selective",
                         "checkpointing-vision", "attention-sdpa", "attention-flash", "loss-fused", "loss-chunked",
                         "optimizer-fused", "optimizer-8bit", "optimizer-sgd", "lora-16", "qlora", "freeze-vision"})
    EXPECT_FALSE(offered.contains(id)) << id;
}

TEST(Actions, TakeTheLargestSizeThatFits) {
  Plan p;
  p.images = 6;
  p.image_height = p.image_width = 700;
  p.batch = 4;
  const Settings now = settings("qwen2-vl-2b", p);
  const Device device = device_of(60);
  const auto all = checked(now, device, Mode::training);
  Estimator e;
  ASSERT_FALSE(evaluate(now, device, Mode::training, e).fits);
  const Action* fewer = find(all, "fewer-images");
  ASSERT_TRUE(fewer && fewer->fits);
  Settings more = now;
  more.plan.images = fewer->after.plan.images + 1;
  EXPECT_FALSE(evaluate(more, device, Mode::training, e).fits);
  const Action* micro = find(all, "smaller-micro-batch");
  ASSERT_NE(micro, nullptr);
  EXPECT_EQ(micro->after.plan.gradient_accumulation * micro->after.plan.batch, 4);
}

TEST(Actions, TheTowerInChunksAsLargeAsFit) {
  Plan p;
  p.batch = 96;
  p.text = 32;
  p.new_tokens = 1;
  const Settings now = settings("llava-onevision-0.5b", p);
  Estimator e;
  const Outcome whole = evaluate(now, device_of(80), Mode::inference, e);
  const auto action = [&](double gib) {
    const auto all = checked(now, device_of(gib), Mode::inference);
    const Action* a = find(all, "vision-chunks");
    return a ? std::optional(*a) : std::nullopt;
  };
  const auto peak = [&](std::int64_t chunk) {
    Settings s = now;
    s.plan.vision_chunk = chunk;
    return evaluate(s, device_of(80), Mode::inference, e).peak;
  };
  // Room for half of what chunks can save.
  const Bytes least = peak(1);
  ASSERT_LT(least.value(), whole.peak.value() * 9 / 10) << "the tower is the peak of this run";
  const double half = static_cast<double>((least + whole.peak).value() / 2) / (1 << 30);
  const auto fitting = action(half);
  ASSERT_TRUE(fitting && fitting->fits);
  const std::int64_t n = fitting->after.plan.vision_chunk;
  EXPECT_GT(n, 1);
  // The next larger one is that of one call less.
  const std::int64_t calls = (96 + n - 1) / n;
  EXPECT_GT(static_cast<double>(peak((96 + calls - 2) / (calls - 1)).value()) / (1 << 30), half);
  EXPECT_EQ(fitting->loses, Loses::nothing);
  EXPECT_NE(fitting->how.find("pixel_values.split(" + std::to_string(n) + ")"), std::string::npos);
  // Where nothing fits: the largest chunks that save as much as single images do.
  const auto hopeless = action(0.5);
  ASSERT_TRUE(hopeless && !hopeless->fits);
  EXPECT_GT(hopeless->after.plan.vision_chunk, 1);
  EXPECT_LE(hopeless->peak_after, least + Bytes(least.value() / 500));
}

TEST(Actions, EveryFamilyIsWrappedWhereItsCallerLooks) {
  const auto how = [&](const char* model) {
    Plan p;
    p.batch = 8;
    p.vision_chunk = 2;
    return vision_chunk_line(settings(model, p));
  };
  EXPECT_EQ(how("internvl3-1b"),
            "from transformers.modeling_outputs import BaseModelOutputWithPooling; model.model.get_image_features = "
            "lambda pixel_values, f=model.model.get_image_features, **k: "
            "BaseModelOutputWithPooling(pooler_output=torch.cat([f(pixel_values=p, **k).pooler_output for p in "
            "pixel_values.split(2)]))");
  EXPECT_NE(how("llava-1.5-7b").find("[y for p in pixel_values.split(2) for y in f("), std::string::npos);
  for (const char* model : {"llava-next-7b", "pixtral-12b"})
    EXPECT_NE(how(model).find("zip(pixel_values.split(2), image_sizes.split(2))"), std::string::npos) << model;
  EXPECT_NE(how("qwen2.5-vl-3b").find("pixel_values.split([int(g.prod(-1).sum()) for g in grid.split(2)])"),
            std::string::npos);
  EXPECT_NE(how("idefics3-8b").find("t.flatten(0, 1).unsqueeze(0).split(2, 1)"), std::string::npos);
  EXPECT_EQ(how("llama-3.2-11b-vision").find("model.model.vision_model.forward"),
            how("llama-3.2-11b-vision").find("model.model."));
  // What the counts mean: images, or tiles.
  Plan p;
  p.batch = 2;
  p.image_height = p.image_width = 1344;
  EXPECT_EQ(vision_rows(settings("internvl3-1b").vlm, p), 20);
  EXPECT_EQ(vision_rows(settings("llava-next-7b").vlm, p), 2);
  p.images = 0;
  EXPECT_EQ(vision_rows(settings("llava-next-7b").vlm, p), 0);
}

Plan mixed(std::int64_t batch, std::vector<PixelSize> sizes) {
  Plan p;
  p.batch = batch;
  p.image_height = sizes.front().height;
  p.image_width = sizes.front().width;
  p.more_sizes.assign(sizes.begin() + 1, sizes.end());
  return p;
}

TEST(Actions, BatchesOfOneSize) {
  // Three of five sequences are small.
  const Settings now = settings("qwen2-vl-2b", mixed(5, {{224, 224}, {896, 896}}));
  const Device device = device_of(80);
  Estimator e;
  const auto alone = [&](std::int64_t side, Mode mode) {
    Settings s = now;
    s.plan.more_sizes.clear();
    s.plan.image_height = s.plan.image_width = side;
    return evaluate(s, device, mode, e);
  };
  for (const Mode mode : {Mode::inference, Mode::training}) {
    Settings grouped = now;
    grouped.grouped_by_size = true;
    const Outcome o = evaluate(grouped, device, mode, e), small = alone(224, mode), large = alone(896, mode);
    EXPECT_EQ(o.peak, std::max(small.peak, large.peak));
    EXPECT_EQ(o.reserved, std::max(small.reserved, large.reserved));
    EXPECT_NEAR(o.time.value, small.time.value * 0.6 + large.time.value * 0.4, 1e-12);
    EXPECT_EQ(o.samples, 5);
    EXPECT_EQ(largest_group(grouped, device, mode, e).plan.image_height, 896);
    // Five large images at once need no less than two of them among small ones: the action is offered for its time.
    const Outcome before = evaluate(now, device, mode, e);
    EXPECT_LT(o.per_sample().value, before.per_sample().value);
    const auto all = actions(now, device, mode, e);
    const Action* a = find(all, "group-by-size");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->peak_after, o.peak);
    EXPECT_EQ(a->saves, std::max(Bytes{}, before.peak - o.peak));
    EXPECT_LT(a->time_cost_pct, -1);
    EXPECT_EQ(a->loses, Loses::nothing);
    EXPECT_NE(a->how.find(mode == Mode::training ? "train_sampling_strategy=\"group_by_length\"" : ".sort(key="),
              std::string::npos);
    EXPECT_EQ(find(actions(grouped, device, mode, e), "group-by-size"), nullptr);
  }
  // A run that does not fit is not offered one that does not either, and needs more.
  const auto tight = actions(now, device_of(20), Mode::training, e);
  ASSERT_GT(alone(896, Mode::training).peak, evaluate(now, device, Mode::training, e).peak);
  EXPECT_EQ(find(tight, "group-by-size"), nullptr);
  EXPECT_EQ(find(actions(settings("qwen2-vl-2b", mixed(1, {{224, 224}})), device, Mode::training, e), "group-by-size"),
            nullptr);
}

TEST(Actions, SmallerBatchesKeepEverySize) {
  const Settings now = settings("qwen2-vl-2b", mixed(8, {{224, 224}, {448, 448}, {896, 896}}));
  for (const Settings& s : action::micro_batches({.now = now, .device = device_of(1), .mode = Mode::training}))
    EXPECT_GE(s.plan.batch, 3);
  for (const Settings& s : action::smaller_batches({.now = now, .device = device_of(1), .mode = Mode::inference}))
    EXPECT_GE(s.plan.batch, 3);
  // Limits on pixels are those of the largest image, which loses tokens first.
  const auto less = lower_images(now);
  ASSERT_FALSE(less.empty());
  EXPECT_LT(layout(less.front().vlm.image_processor, {896, 896}).llm_tokens,
            layout(now.vlm.image_processor, {896, 896}).llm_tokens);
  EXPECT_EQ(layout(less.front().vlm.image_processor, {224, 224}).llm_tokens,
            layout(now.vlm.image_processor, {224, 224}).llm_tokens);
}

/// Sequences of a given length keep their text where images lose tokens.
TEST(Actions, ImagesShrinkWithTheirSequence) {
  Plan p;
  p.seq = 2048;
  p.image_height = p.image_width = 900;
  const Settings now = settings("qwen2.5-vl-3b", p);
  const std::int64_t text = make_sequences(now.vlm, p).text;
  for (const Settings& s : lower_images(now)) {
    EXPECT_EQ(make_sequences(s.vlm, s.plan).text, text);
    EXPECT_LT(*s.plan.seq, 2048);
  }
}

TEST(Actions, EveryFamilyHasItsOwnLever) {
  Plan p;
  p.image_height = 1000;
  p.image_width = 1300;
  const auto how = [&](const char* model) {
    const auto less = lower_images(settings(model, p));
    return less.empty() ? std::string() : limit_line(less.back().vlm.image_processor);
  };
  EXPECT_NE(how("qwen2-vl-2b").find("longest_edge"), std::string::npos);
  EXPECT_NE(how("internvl3-1b").find("max_patches="), std::string::npos);
  EXPECT_NE(how("llama-3.2-11b-vision").find("max_image_tiles=1)"), std::string::npos);
  EXPECT_NE(how("llava-next-7b").find("image_grid_pinpoints"), std::string::npos);
  EXPECT_NE(how("idefics2-8b").find("do_image_splitting=False, size={\"shortest_edge\": "), std::string::npos);
  EXPECT_NE(how("idefics3-8b").find("longest_edge"), std::string::npos);
  EXPECT_NE(how("pixtral-12b").find("longest_edge"), std::string::npos);
  EXPECT_EQ(how("llava-1.5-7b"), "");
  EXPECT_EQ(how("paligemma-3b-224"), "");
  // Each limit lowers what the tower and the language model see.
  for (const char* model :
       {"qwen2-vl-2b", "internvl3-1b", "llava-next-7b", "idefics2-8b", "idefics3-8b", "pixtral-12b"}) {
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    for (const Settings& s : lower_images(settings(model, p))) {
      const ImageLayout l = layout(s.vlm.image_processor, {1000, 1300});
      EXPECT_LT(l.tiles * l.tower_tokens + l.llm_tokens, last) << model;
      last = l.tiles * l.tower_tokens + l.llm_tokens;
    }
  }
}

TEST(Actions, StatesAreDividedAmongGpus) {
  Plan p;
  p.optimizer = Optimizer::adamw_fused;
  Settings s = settings("llava-onevision-0.5b", p);
  const Device device = device_of(70);
  Estimator e;
  const Outcome alone = evaluate(s, device, Mode::training, e);
  const Bytes states = e.training_graph().phases.empty() ? Bytes{} : [&] {
    Bytes b{};
    for (const Tensor& t : e.training_graph().tensors)
      if (t.role == Role::optimizer_state) b += requested_bytes(t);
    return b;
  }();
  s.placement.gpus = 4;
  const Outcome whole = evaluate(s, device, Mode::training, e);
  EXPECT_NEAR((whole.peak - alone.peak) / states, 0.5, 0.01) << "buckets of the gradients' size, half of Adam's states";
  s.placement.sharding = Sharding::optimizer;
  const Outcome sharded = evaluate(s, device, Mode::training, e);
  EXPECT_NEAR((whole.peak - sharded.peak) / states, 0.75, 0.03);
  s.placement.gpus = 1 << 10;
  s.placement.sharding = Sharding::parameters;
  const Outcome all = evaluate(s, device, Mode::training, e);
  EXPECT_LT(all.peak, sharded.peak);
  const auto offered = ids(actions(s.vlm, s.plan, device, Mode::training, e, {}, 4));
  for (const char* id : {"zero-1", "zero-2", "zero-3"}) EXPECT_TRUE(offered.contains(id)) << id;
  s.placement.gpus = 0;
  EXPECT_THROW(evaluate(s, device, Mode::training, e), Error);
}

TEST(Actions, GradientsCanBeViewsOfTheBuckets) {
  const Settings s = settings("internvl3-1b");  // whose peak lies in the step
  Estimator e;
  const auto of_two = ids(actions(s.vlm, s.plan, device_of(70), Mode::training, e, {}, 2));
  EXPECT_TRUE(of_two.contains("ddp-bucket-views"));
  const auto of_one = ids(actions(s.vlm, s.plan, device_of(70), Mode::training, e, {}, 1));
  EXPECT_FALSE(of_one.contains("ddp-bucket-views"));
}

TEST(Actions, OffloadedStatesCrossTheLink) {
  Settings s = settings("llava-onevision-0.5b");
  const Device device = device_of(70);
  Estimator e;
  const Outcome here = evaluate(s, device, Mode::inference, e);
  s.placement.offload = Offload::parameters;
  const Outcome there = evaluate(s, device, Mode::inference, e);
  const parallel::WeightBytes u = parallel::weight_bytes(e.graph());
  EXPECT_NEAR((here.peak - there.peak) / (u.all - u.module), 1, 0.02);
  const double copies = static_cast<double>(1 + s.plan.new_tokens);
  EXPECT_NEAR(there.time.value - here.time.value, (u.all / parallel::host_link(device)).value * copies, 1e-9);
}

TEST(Actions, TableIsSound) {
  std::set<std::string_view> seen;
  for (const ActionEntry& e : catalogue::rows) {
    EXPECT_TRUE(seen.insert(e.name).second) << e.name;
    // Of settings, or with a line that is the same for all of them.
    EXPECT_EQ(e.options != nullptr, e.how != nullptr) << e.name;
    EXPECT_TRUE(e.options || !e.line.empty() || !e.general.engine.empty()) << e.name;
    EXPECT_FALSE(e.title.empty()) << e.name;
    EXPECT_EQ(name(id_of(e)), e.name);
    EXPECT_EQ(action_entry(id_of(e)), &e);
  }
  for (const std::string_view n : catalogue::names)
    EXPECT_EQ(n.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string_view::npos) << n;
}

}  // namespace
}  // namespace vlmest::diagnose::actions_test
