// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <numeric>

#include "several_gpus.hpp"
#include "slow_shapes.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace {

using Json = nlohmann::ordered_json;

Json tensors(const Graph& g, const std::vector<LiveTensor>& all, std::size_t top) {
  Json list = Json::array();
  for (const auto& t : largest(g, all, top)) {
    Json shape = Json::array();
    for (auto d : t.shape) shape.push_back(d);
    list.push_back({{"name", t.name},
                    {"scope", t.scope},
                    {"role", t.name == "other" && t.dtype.empty() ? "other" : std::string(name(t.role))},
                    {"shape", shape},
                    {"dtype", t.dtype},
                    {"bytes", t.bytes.value()}});
  }
  return list;
}

Json range(const WallRange& r) { return Json::array({significant(r.low.ms()), significant(r.high.ms())}); }

Json parts(const PeakParts& p) {
  return {{"weights_bytes", p.weights.value()},
          {"kv_cache_bytes", p.kv_cache.value()},
          {"activations_bytes", p.activations.value()},
          {"saved_activations_bytes", p.saved.value()},
          {"gradients_bytes", p.gradients.value()},
          {"optimizer_bytes", p.optimizer.value()},
          {"other_bytes", p.other.value()}};
}

Json phase(const PhaseEstimate& p) {
  return {{"peak_bytes", p.memory.peak.value()},
          {"reserved_bytes", p.memory.reserved.value()},
          {"parts", parts(p.parts)},
          {"flops", p.work.flops.value()},
          {"flops_causal", p.work.flops_causal.value()},
          {"gpu_ms", significant(p.gpu.ms())},
          {"roofline_ms", significant(p.work.roofline.ms())},
          {"graph_ms", significant(p.graph.ms())},
          {"wall_ms", significant(p.wall.ms())},
          {"wall_ms_range", range(p.wall_range)},
          {"kernels", p.work.kernels},
          {"bytes_read", p.work.read.value()},
          {"bytes_written", p.work.written.value()},
          {"intensity", intensity(p.work)},
          {"bound", std::string(name(p.bound))}};
}

Json fragmentation(const allocator::Fragmentation& f) {
  return {{"reserved_bytes", f.reserved.value()},
          {"releasable_bytes", f.releasable.value()},
          {"split_bytes", f.split.value()},
          {"largest_free_bytes", f.largest_free.value()}};
}

Json inference(const InferenceEstimate& e, const Plan& plan, const Graph& g, std::size_t top) {
  Json decode = {{"kv_len", e.decode.kv_len}};
  decode.update(phase(e.decode));
  if (e.canvas > 0) decode.update({{"canvas_tokens", e.canvas}, {"denoising_steps", e.steps}});
  decode["tokens_per_s"] = significant(e.tokens_per_second(plan.batch));
  return {{"weights_bytes", e.weights.value()},
          {"inputs_bytes", e.inputs.value()},
          {"kv_cache_bytes", e.kv_cache.value()},
          {"kv_cache_states_bytes", e.cache_states.value()},
          {"kv_cache_cross_bytes", e.cache_cross.value()},
          {"kv_cache_decoded_bytes", e.kv_cache_decoded.value()},
          {"fft_bytes", e.fft.value()},
          {"prefill", phase(e.prefill)},
          {"decode", decode},
          {"peak",
           {{"phase", name(e.peak_phase())},
            {"bytes", e.peak.value()},
            {"fragmentation", fragmentation((e.decode_is_peak ? e.decode : e.prefill).memory.at_peak)},
            {"tensors", tensors(g, e.tensors, top)}}},
          {"fits", e.fits}};
}

Json phase(const allocator::PhaseMemory& memory, const Work& work) {
  return {{"start_bytes", memory.before.value()},
          {"peak_bytes", memory.peak.value()},
          {"end_bytes", memory.after.value()},
          {"flops", work.flops.value()},
          {"flops_causal", work.flops_causal.value()},
          {"gpu_ms", significant(work.time.ms())},
          {"roofline_ms", significant(work.roofline.ms())},
          {"kernels", work.kernels}};
}

Json training(const TrainingEstimate& e, const Graph& g, std::size_t top) {
  return {{"weights_bytes", e.weights.value()},
          {"gradients_bytes", e.gradients.value()},
          {"optimizer_bytes", e.optimizer.value()},
          {"saved_activations_bytes", e.saved_activations.value()},
          {"checkpointed_tensors", e.checkpointed_tensors},
          {"fft_bytes", e.fft.value()},
          {"micro_batches", e.micro_batches},
          {"forward", phase(e.forward, e.forward_work)},
          {"backward", phase(e.backward, e.backward_work)},
          {"step", phase(e.step, e.step_work)},
          {"peak_bytes", e.peak.value()},
          {"reserved_bytes", e.reserved.value()},
          {"reserved_in_loop_bytes", e.reserved_in_loop.value()},
          {"flops", e.work.flops.value()},
          {"flops_causal", e.work.flops_causal.value()},
          {"gpu_ms", significant(e.gpu.ms())},
          {"roofline_ms", significant(e.work.roofline.ms())},
          {"graph_ms", significant(e.graph.ms())},
          {"wall_ms", significant(e.wall.ms())},
          {"wall_ms_range", range(e.wall_range)},
          {"kernels", e.work.kernels},
          {"bytes_read", e.work.read.value()},
          {"bytes_written", e.work.written.value()},
          {"intensity", intensity(e.work)},
          {"bound", std::string(name(e.bound))},
          {"peak",
           {{"phase", name(e.peak_phase)},
            {"bytes", e.peak.value()},
            {"parts", parts(e.parts)},
            {"fragmentation", fragmentation(e.highest().at_peak)},
            {"tensors", tensors(g, e.tensors, top)}}},
          {"fits", e.fits}};
}

/// The forward is the prefill's where inference is estimated, else training's.
Json layers(const Estimate& e, const Graph& g, bool inference) {
  Json list = Json::array();
  for (const auto& r : e.layers) {
    const Work& forward = inference ? r.prefill : r.forward;
    Json row = {{"scope", path(g, r.scope)},
                {"params", r.params.value()},
                {"weights_bytes", r.weights.value()},
                {"saved_bytes", r.saved.value()},
                {"kv_bytes", r.kv.value()}};
    if (inference) {
      row["activation_bytes"] = r.activations.value();
      row["attention_bytes"] = r.attention.value();
    }
    row["fft_bytes"] = r.fft.value();
    row["flops_forward"] = forward.flops.value();
    row["flops_backward"] = r.backward.flops.value();
    row["forward_us"] = significant(forward.time.us());
    row["backward_us"] = significant(r.backward.time.us());
    row["intensity"] = intensity(forward);
    row["bound"] = std::string(name(bound(forward)));
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace

/// Height and width of each size that the sequences take turns with.
Json image_sizes_json(const Vlm& vlm, const Plan& plan) {
  Json list = Json::array();
  for (const ImageSize s : image_sizes(vlm, plan)) list.push_back({s.height, s.width});
  return list;
}

Json video_json(const Vlm& vlm, const Plan& plan, const Sequences& s) {
  const VideoSource source = video_source(vlm, *plan.video);
  const ImageLayout& l = *s.video;
  return {{"tokens", l.llm_tokens},
          {"marker_tokens", plan.markers ? l.text_overhead : 0},
          {"frames", l.sampled},
          {"frame_size", {source.size.height, source.size.width}},
          {"resized", {l.resized.height, l.resized.width}},
          {"grids", l.frames * l.tiles},
          {"patches", l.patches.count() * l.frames * l.tiles},
          {"fps", significant(static_cast<double>(l.sampled) / source.seconds())},
          {"seconds", significant(source.seconds())}};
}

Json audio_json(const Plan& plan, const Sequences& s) {
  const AudioLayout& l = s.audios.front();
  return {{"tokens", s.audio_tokens},
          {"clips", plan.audio->clips},
          {"seconds", significant(plan.audio->seconds)},
          {"cut", l.cut},
          {"samples", l.samples},
          {"frames", l.frames},
          {"padded_frames", checked_mul(l.rows, l.row_frames)},
          {"tower_tokens", l.tower_tokens},
          {"tokens_per_clip", l.llm_tokens},
          {"marker_tokens", plan.markers ? l.text_overhead : 0}};
}

nlohmann::ordered_json to_json(const Reported& from, const ReportOptions& options) {
  const Estimate& e = from.estimate;
  const Sequences& s = e.sequences;
  Json r = {{"schema_version", 1},
            {"model",
             {{"name", from.vlm.name},
              {"family", from.vlm.type},
              {"params",
               {{"total", e.params.total().value()},
                {"vision", e.params.vision.value()},
                {"projector", e.params.projector.value()},
                {"language", e.params.language.value()}}},
              {"trainable", e.trainable.value()}}},
            {"inputs",
             {{"batch", s.batch},
              {"seq", s.seq},
              {"text_tokens", s.text},
              {"image_tokens", s.image_tokens},
              {"marker_tokens", s.markers},
              {"images", from.plan.images},
              {"image_size", {s.image.height, s.image.width}},
              {"image_sizes", image_sizes_json(from.vlm, from.plan)},
              {"padding_tokens", std::accumulate(s.padding.begin(), s.padding.end(), std::int64_t{0})},
              {"vision_chunk", from.plan.vision_chunk},
              {"target_tokens", s.target}}},
            {"device",
             {{"name", from.device.name},
              {"memory_bytes", from.device.memory_bytes.value()},
              {"usable_bytes", from.device.usable_bytes.value()}}}};
  if (!from.vlm.unread_keys.empty()) r["model"]["unread_keys"] = from.vlm.unread_keys;
  if (s.instruction > 0) r["inputs"]["instruction_tokens"] = s.instruction;
  for (const KernelPackage one : {KernelPackage::fla, KernelPackage::causal_conv1d})
    if (from.plan.packages.has(one)) r["inputs"]["packages"].push_back(name(one));
  if (s.video) r["inputs"]["video"] = video_json(from.vlm, from.plan, s);
  if (from.plan.audio) r["inputs"]["audio"] = audio_json(from.plan, s);
  if (e.params.audio > Elements{}) r["model"]["params"]["audio"] = e.params.audio.value();
  if (e.params.idle > Elements{}) r["model"]["params"]["active"] = e.params.active().value();
  if (options.inference) r["inference"] = inference(e.inference, from.plan, from.estimator.graph(), options.top);
  if (options.training) r["training"] = training(e.training, from.estimator.training_graph(), options.top);
  if (from.several) r["parallel"] = several_gpus_json(*from.several, options);
  r["slow_shapes"] = slow_shapes_json(from, options);
  if (options.per_layer) r["layers"] = layers(e, from.layers_graph(options), options.inference);
  return r;
}

}  // namespace vlmest::tool
