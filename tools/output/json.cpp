// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

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
                    {"role", t.name == "other" ? "other" : std::string(name(t.role))},
                    {"shape", shape},
                    {"dtype", t.dtype},
                    {"bytes", t.bytes.value()}});
  }
  return list;
}

Json phase(const PhaseEstimate& p) {
  return {{"peak_bytes", p.memory.peak.value()},
          {"reserved_bytes", p.memory.reserved.value()},
          {"flops", p.work.flops.value()},
          {"flops_causal", p.work.flops_causal.value()},
          {"gpu_ms", p.gpu.ms()},
          {"wall_ms", p.wall.ms()},
          {"kernels", p.work.kernels},
          {"bytes_read", p.work.read.value()},
          {"bytes_written", p.work.written.value()},
          {"intensity", intensity(p.work)},
          {"bound", std::string(name(p.bound))}};
}

Json inference(const InferenceEstimate& e, const Plan& plan, const Graph& g, std::size_t top) {
  Json decode = {{"kv_len", e.decode.kv_len}};
  decode.update(phase(e.decode));
  decode["tokens_per_s"] = e.tokens_per_second(plan.batch);
  return {{"weights_bytes", e.weights.value()},
          {"inputs_bytes", e.inputs.value()},
          {"kv_cache_bytes", e.kv_cache.value()},
          {"kv_cache_decoded_bytes", e.kv_cache_decoded.value()},
          {"fft_bytes", e.fft.value()},
          {"prefill", phase(e.prefill)},
          {"decode", decode},
          {"peak",
           {{"phase", e.decode_is_peak ? "decode" : "prefill"},
            {"bytes", e.peak.value()},
            {"tensors", tensors(g, e.tensors, top)}}},
          {"fits", e.fits}};
}

Json layers(const Estimate& e, const Graph& g) {
  Json list = Json::array();
  for (const auto& r : e.layers)
    list.push_back({{"scope", path(g, r.scope)},
                    {"params", r.params.value()},
                    {"weights_bytes", r.weights.value()},
                    {"kv_bytes", r.kv.value()},
                    {"activation_bytes", r.activations.value()},
                    {"attention_bytes", r.attention.value()},
                    {"fft_bytes", r.fft.value()},
                    {"flops_forward", r.prefill.flops.value()},
                    {"forward_us", r.prefill.time.us()},
                    {"intensity", intensity(r.prefill)},
                    {"bound", std::string(name(bound(r.prefill)))}});
  return list;
}

}  // namespace

nlohmann::ordered_json to_json(const Vlm& vlm, const Plan& plan, const Device& device, const Estimate& e,
                               const Graph& g, const ReportOptions& options) {
  const Sequences& s = e.sequences;
  Json r = {{"schema_version", 1},
            {"model",
             {{"name", vlm.name},
              {"family", vlm.type},
              {"params",
               {{"total", e.params.total().value()},
                {"vision", e.params.vision.value()},
                {"projector", e.params.projector.value()},
                {"language", e.params.language.value()}}},
              {"trainable", e.training.trainable.value()}}},
            {"inputs",
             {{"batch", s.batch},
              {"seq", s.seq},
              {"text_tokens", s.text},
              {"image_tokens", s.image_tokens},
              {"images", plan.images},
              {"image_size", {s.image.height, s.image.width}}}},
            {"device",
             {{"name", device.name},
              {"memory_bytes", device.memory_bytes.value()},
              {"usable_bytes", device.usable_bytes.value()}}}};
  if (options.inference) r["inference"] = inference(e.inference, plan, g, options.top);
  if (options.training)
    r["training"] = {{"weights_bytes", e.training.weights.value()},
                     {"gradients_bytes", e.training.gradients.value()},
                     {"optimizer_bytes", e.training.optimizer.value()}};
  if (options.per_layer) r["layers"] = layers(e, g);
  return r;
}

}  // namespace vlmest::tool
