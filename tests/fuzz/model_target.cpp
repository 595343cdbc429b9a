// SPDX-License-Identifier: Apache-2.0
// A model description or config.json, and estimates of inference and training under a plan that is chosen by the
// input's bytes.
#include <algorithm>

#include <vlmest/json/model.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "device.hpp"
#include "target.hpp"

namespace {

using namespace vlmest;

Plan plan(fuzz::Choices& choose) {
  Plan p;
  p.batch = 1 + static_cast<std::int64_t>(choose.of(3));
  p.images = static_cast<std::int64_t>(choose.of(4));
  if (choose.of(2) == 0) {
    p.image_height = 1 + static_cast<std::int64_t>(choose.of(1500));
    p.image_width = 1 + static_cast<std::int64_t>(choose.of(1500));
  }
  for (auto n = choose.of(8) == 0 ? choose.of(3) : 0; n > 0; --n)
    p.more_sizes.push_back(
        {1 + static_cast<std::int64_t>(choose.of(1500)), 1 + static_cast<std::int64_t>(choose.of(1500))});
  if (choose.of(4) == 0) p.vision_chunk = 1 + static_cast<std::int64_t>(choose.of(8));
  p.text = static_cast<std::int64_t>(choose.of(300));
  p.new_tokens = static_cast<std::int64_t>(choose.of(300));
  if (choose.of(1024) == 0) p.batch = std::int64_t{1} << choose.of(40);
  if (choose.of(1024) == 0) p.image_height = p.image_width = std::int64_t{1} << choose.of(24);
  if (choose.of(1024) == 0) p.seq = std::int64_t{1} << choose.of(40);
  p.dtype = choose.of(2) == 0 ? DType::bf16 : choose.of(2) == 0 ? DType::fp16 : DType::fp32;
  p.attention = static_cast<AttentionKind>(choose.of(3));
  p.runtime = runtimes[choose.of(runtimes.size())];
  p.logits = static_cast<Logits>(choose.of(2));
  p.optimizer = static_cast<Optimizer>(choose.of(6));
  p.checkpointing = static_cast<Checkpointing>(choose.of(3));
  p.loss = static_cast<Loss>(choose.of(3));
  p.amp = choose.of(4) == 0;
  p.gradient_accumulation = 1 + static_cast<std::int64_t>(choose.of(3));
  p.trainable = {choose.of(3) != 0, choose.of(3) != 0, choose.of(3) != 0};
  if (choose.of(3) == 0) {
    p.lora.rank = 1 + static_cast<std::int64_t>(choose.of(64));
    p.lora.dropout = choose.of(2) == 0;
    p.lora.vision = choose.of(2) == 0;
    if (choose.of(2) == 0) p.lora.targets = {"all-linear"};
    if (choose.of(2) == 0) p.weights = DType::nf4;
  }
  return p;
}

void check(const Estimate& e) {
  using fuzz::require;
  const InferenceEstimate& r = e.inference;
  require(e.params.total() > Elements{}, "a model without parameters");
  require(r.weights > Bytes{} && r.weights <= r.prefill.memory.peak, "weights above the peak");
  require(r.peak == std::max(r.prefill.memory.peak, r.decode.memory.peak), "the peak is no phase's");
  for (const auto* phase : {&r.prefill, &r.decode})
    require(phase->memory.peak <= phase->memory.reserved, "more allocated than reserved");
  Bytes sum{};
  for (const auto& t : r.tensors) sum += t.bytes;
  require(sum == r.peak, "the tensors of the peak do not add up to it");
  require(r.prefill.work.flops >= r.prefill.work.flops_causal && r.decode.work.flops > Flops{}, "FLOPs");
  require(r.prefill.gpu.value > 0 && r.prefill.wall >= r.prefill.gpu && std::isfinite(r.prefill.wall.value), "time");
  Elements rows{};
  for (const auto& row : e.layers) rows += row.params;
  require(rows == e.params.total(), "the rows' parameters do not add up");
}

void check(const TrainingEstimate& t) {
  using fuzz::require;
  require(t.trainable > Elements{}, "nothing trains");
  require(t.peak == std::max({t.forward.peak, t.backward.peak, t.step.peak}), "the peak of training is no phase's");
  Bytes sum{};
  for (const auto& x : t.tensors) sum += x.bytes;
  require(sum == t.peak, "the tensors of training's peak do not add up to it");
  require(t.weights <= t.step.peak, "weights above the peak of training");
  require(t.work.flops > Flops{} && t.gpu.value > 0 && t.wall >= t.gpu, "work of training");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Estimator estimator;
  const std::string_view input = fuzz::text(data, size);
  fuzz::Choices choose(input);
  try {
    const Vlm vlm = json::parse_model(input, "input");
    Plan asked = plan(choose);
    if (choose.of(3) == 0) asked.packages = vlm.family.traits().packages;
    check(estimator(vlm, asked, fuzz::device));
    check(estimator(vlm, asked, fuzz::device, Phases::train).training);
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
