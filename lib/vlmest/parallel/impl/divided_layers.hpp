// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/divided_layers.hpp>
#include <vlmest/parallel/layer_collectives.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE ParallelEstimate estimate_divided(const Estimator& estimator, Estimate& e, const Plan& plan,
                                                const Device& device, const Layout& layout, const Network& network,
                                                Phases phases) {
  ParallelEstimate p{.layout = layout, .network = network.name};
  const std::int64_t gpus = layout.gpus();
  const char* group = layer_group(layout);
  const Bytes nccl = nccl_memory(1, several::most_channels(network, gpus));
  p.outside = device.memory_bytes - device.usable_bytes + nccl;
  const Device inside = several::without(device, nccl);
  RankEstimate all{.ranks = gpus};
  // Every rank runs the same tokens.
  const auto tokens = static_cast<double>(e.sequences.batch * e.sequences.seq);
  const double peak_rate = peak(device, plan.amp ? DType::bf16 : plan.dtype).value;
  if (has_inference(phases)) {
    InferenceEstimate& i = e.inference;
    const Graph& g = estimator.graph();
    i.fits = inference_estimate::fits(i, g, estimator.timeline(), inside, estimator.allocator);
    all = several::inference_rank(i, gpus);
    p.communication = communication(g, network, group);
    put_on_network(i, p.communication, g, device);
    p.step = i.prefill.wall;
    p.tokens_per_second = i.tokens_per_second(plan.batch);
    p.mfu = static_cast<double>(i.prefill.work.flops.value()) / (p.step.value * peak_rate);
  }
  if (has_training(phases)) {
    TrainingEstimate& t = e.training;
    const Graph& g = estimator.training_graph();
    t.fits = training_estimate::fits(t, g, estimator.training_timeline(), inside, estimator.allocator);
    several::add_training(all, t);
    const std::vector<CommunicationRow> rows = communication(g, network, group, t.micro_batches);
    put_on_network(t, rows, g, device);
    p.communication.insert(p.communication.end(), rows.begin(), rows.end());
    p.training = estimator.training_timeline();
    p.step = t.wall;
    p.tokens_per_second = tokens * static_cast<double>(t.micro_batches) / p.step.value;
    p.mfu = several::model_flops(g, t, estimator.training_works()) / (p.step.value * peak_rate);
  }
  p.ranks.push_back(all);
  return p;
}

}  // namespace vlmest::parallel
