// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <tuple>

#include <vlmest/json/measured_run.hpp>
#include <vlmest/nn/image_processor/video.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace measured_run {

VLMEST_INLINE Optimizer optimizer(const Reader& r) {
  static constexpr std::array<std::pair<std::string_view, Optimizer>, 5> also{
      {{"adamw_fused", Optimizer::adamw_fused},
       {"adamw_8bit", Optimizer::adamw_8bit},
       {"adamw_bnb_8bit", Optimizer::adamw_bnb_8bit},
       {"sgdm", Optimizer::sgd_momentum},
       {"sgd_momentum", Optimizer::sgd_momentum}}};
  const std::string word = r.string("optim", "adamw");
  for (const auto& [other, o] : also)
    if (other == word) return o;
  return one_of<Optimizer>(r, "optim", word);
}

VLMEST_INLINE AttentionKind attention(const Reader& r) {
  std::array<std::string_view, words_of<AttentionKind>.size() + 1> known{};
  std::copy(words_of<AttentionKind>.begin(), words_of<AttentionKind>.end(), known.begin());
  known.back() = attn_implementation(AttentionKind::flash);
  const std::size_t i = one_of(r, "attn", r.string("attn", "sdpa"), known);
  return i + 1 == known.size() ? AttentionKind::flash : static_cast<AttentionKind>(i);
}

VLMEST_INLINE Plan plan(const Reader& r) {
  if (r.integer("gpus", 1, 1, 1 << 16) > 1)
    r.fail("gpus", "rows of several GPUs are not compared",
           "hold their ranks' peaks against estimate --gpus N --json, key parallel.ranks");
  Plan p;
  p.batch = r.integer_required("batch");
  p.text = r.integer_required("text", 0);
  p.markers = false;  // a row's text is every token that is no image feature
  p.images = r.integer("images", r.given("frames") ? 0 : 1, 0, 4096);
  if (r.given("frames")) {
    p.video = VideoPlan{.frames = r.integer("frames", 0, 1, image_processor::max_frames)};
    if (r.given("frame_hw")) std::tie(p.video->height, p.video->width) = pair_required(r, "frame_hw", 1 << 20);
  }
  if (r.given("hw")) std::tie(p.image_height, p.image_width) = pair_required(r, "hw", 1 << 20);
  if (r.given("target")) p.target = r.integer("target", 0, 1, 1 << 30);
  p.vision_chunk = r.integer("vision_chunk", 0, 0, most_sequences);
  try {
    p.dtype = parse_dtype(r.string("dtype", "bf16"));
  } catch (const Error& e) {
    r.fail("dtype", e.what_happened, e.hint);
  }
  p.attention = attention(r);
  std::stringstream packages(r.string("packages", ""));
  for (std::string one; std::getline(packages, one, ',');) p.packages.add(one_of<KernelPackage>(r, "packages", one));
  p.logits = one_of<Logits>(r, "logits", r.string("logits", "last"));
  p.optimizer = optimizer(r);
  p.amp = r.boolean("amp", false);
  if (r.boolean("ckpt", false)) p.checkpointing = Checkpointing::full;
  p.lora.rank = r.integer("lora", 0, 0, 1 << 16);
  p.trainable.vision = !r.boolean("freeze_vision", false);
  p.gradient_accumulation = r.integer("gradient_accumulation", 1, 1, 1 << 20);
  if (p.amp && p.dtype != DType::fp32)
    r.fail("amp", "needs fp32 weights", "autocast runs over float32 weights: \"dtype\": \"float32\"");
  return p;
}

}  // namespace measured_run

VLMEST_INLINE MeasuredRun read_measured_run(const nlohmann::json& row, const std::string& where,
                                            const RunHeader& header) {
  const Reader r(row, where, "docs/reference/measured-rows.md lists the keys");
  MeasuredRun m;
  m.model = r.string("model", "");
  const bool printable = std::none_of(m.model.begin(), m.model.end(), [](unsigned char c) { return c < ' '; });
  if (m.model.empty() || m.model.size() > 256 || !printable)
    r.fail("model", m.model.empty() ? "missing" : "is no name", "give a shipped model's name, or a config's");
  m.config = r.string("config", "");
  if (r.given("image")) m.image = r.object("image").value().dump();
  m.training = measured_run::training(r);
  m.out_of_memory = r.given("oom") && row["oom"] != false;
  m.cache_emptied = r.boolean("cache_emptied", header.cache_emptied);
  m.figures = measured_run::figures(r);
  m.plan = measured_run::plan(r);
  m.plan.new_tokens = measured_run::new_tokens(r, header, m.plan.new_tokens);
  return m;
}

}  // namespace vlmest::json
