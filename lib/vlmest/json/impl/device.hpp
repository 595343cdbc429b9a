// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/device.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {
namespace device_json {

VLMEST_INLINE TimeSpread read_spread(const nlohmann::json& o, const Place& at) {
  TimeSpread r;
  const std::array<std::pair<const char*, Spread*>, 7> all{{{"kernels", &r.kernels},
                                                            {"launch", &r.launch},
                                                            {"forward_launch", &r.forward_launch},
                                                            {"backward_launch", &r.backward_launch},
                                                            {"attention_plan", &r.attention_plan},
                                                            {"checkpoint", &r.checkpoint},
                                                            {"optimizer_parameter", &r.optimizer_parameter}}};
  std::vector<std::string> known;
  for (const auto& [key, s] : all) known.emplace_back(key);
  expect_among(o, at, known);
  for (const auto& [key, s] : all) {
    if (!o.contains(key)) continue;
    const nlohmann::json& ends = o.at(key);
    const bool pair = ends.is_array() && ends.size() == 2 && ends[0].is_number() && ends[1].is_number();
    if (pair) *s = {ends[0].get<double>(), ends[1].get<double>()};
    if (!pair || !(s->low > 0 && s->low <= 1 && s->high >= 1 && std::isfinite(s->high)))
      fail(at / key, "is no range around 1", "give the lowest and the highest part, as [0.9, 1.2]");
  }
  return r;
}

}  // namespace device_json

VLMEST_INLINE Device read_device(const nlohmann::json& j, const std::string& file) {
  using namespace device_json;
  const Place top{file, ""};
  expect_keys(j, top,
              {"name", "product", "vendor", "architecture", "sm", "multiprocessors", "memory_bytes", "usable_bytes",
               "dram_bytes_per_s", "l2_bytes", "host_link_bytes_per_s", "peak_flops_per_s", "launch_us",
               "kernel_floor_us", "sources"},
              {"aliases", "measured", "efficiency"});
  Device d;
  d.name = text(j, top, "name");
  if (j.contains("aliases")) d.aliases = texts(j, top, "aliases");
  d.product = text(j, top, "product");
  d.vendor = text(j, top, "vendor");
  d.architecture = text(j, top, "architecture");
  d.sm = static_cast<int>(integer(j, top, "sm", 50, 999));
  d.multiprocessors = static_cast<int>(integer(j, top, "multiprocessors", 1, 100000));
  d.memory_bytes = Bytes(integer(j, top, "memory_bytes", 1));
  d.usable_bytes = Bytes(integer(j, top, "usable_bytes", 1));
  if (d.usable_bytes > d.memory_bytes)
    fail(top / "usable_bytes", "is more than memory_bytes", "a process gets the total less its context");
  d.dram = {number(j, top, "dram_bytes_per_s")};
  d.l2 = Bytes(integer(j, top, "l2_bytes", 1));
  d.host_link = {number(j, top, "host_link_bytes_per_s")};
  d.launch = {number(j, top, "launch_us") * 1e-6};
  d.kernel_floor = {number(j, top, "kernel_floor_us") * 1e-6};

  const Place at_peak = top / "peak_flops_per_s";
  const nlohmann::json& p = j.at("peak_flops_per_s");
  expect_keys(p, at_peak, {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"});
  d.peaks = {{number(p, at_peak, "fp32")},       {number(p, at_peak, "tf32", true)},
             {number(p, at_peak, "fp16", true)}, {number(p, at_peak, "bf16", true)},
             {number(p, at_peak, "fp8", true)},  {number(p, at_peak, "int8", true)}};

  if (j.contains("measured")) {
    const Place at = top / "measured";
    const nlohmann::json& m = j.at("measured");
    expect_keys(m, at, {},
                {"dram_copy_bytes_per_s",
                 "l2_bytes_per_s",
                 "bf16_flops_per_s",
                 "host_link_bytes_per_s",
                 "attention_plan_us",
                 "graph_gap_us",
                 "forward_launch_us",
                 "backward_launch_us",
                 "checkpoint_forward_layer_us",
                 "checkpoint_forward_tensor_us",
                 "checkpoint_backward_layer_us",
                 "checkpoint_backward_tensor_us",
                 "ddp_forward_parameter_us",
                 "ddp_backward_parameter_us",
                 "fsdp_forward_module_us",
                 "fsdp_backward_module_us",
                 "ring_attention_forward_us",
                 "ring_attention_backward_us",
                 "optimizer_parameter_us",
                 "optimizer_shard_us",
                 "spread"});
    if (m.contains("dram_copy_bytes_per_s")) d.measured.dram_copy = Bandwidth{number(m, at, "dram_copy_bytes_per_s")};
    if (m.contains("l2_bytes_per_s")) d.measured.l2 = Bandwidth{number(m, at, "l2_bytes_per_s")};
    if (m.contains("bf16_flops_per_s")) d.measured.bf16 = FlopRate{number(m, at, "bf16_flops_per_s")};
    if (m.contains("host_link_bytes_per_s")) d.measured.host_link = Bandwidth{number(m, at, "host_link_bytes_per_s")};
    if (m.contains("attention_plan_us")) d.attention_plan = {number(m, at, "attention_plan_us") * 1e-6};
    if (m.contains("graph_gap_us")) d.graph_gap = {number(m, at, "graph_gap_us") * 1e-6};
    if (m.contains("forward_launch_us")) d.forward_launch = {number(m, at, "forward_launch_us") * 1e-6};
    if (m.contains("backward_launch_us")) d.backward_launch = {number(m, at, "backward_launch_us") * 1e-6};
    const auto host_time = [&](Seconds& t, const char* key) {
      if (m.contains(key)) t = {number(m, at, key) * 1e-6};
    };
    host_time(d.checkpoint_forward.layer, "checkpoint_forward_layer_us");
    host_time(d.checkpoint_forward.tensor, "checkpoint_forward_tensor_us");
    host_time(d.checkpoint_backward.layer, "checkpoint_backward_layer_us");
    host_time(d.checkpoint_backward.tensor, "checkpoint_backward_tensor_us");
    host_time(d.ddp_parameter.forward, "ddp_forward_parameter_us");
    host_time(d.ddp_parameter.backward, "ddp_backward_parameter_us");
    host_time(d.fsdp_module.forward, "fsdp_forward_module_us");
    host_time(d.fsdp_module.backward, "fsdp_backward_module_us");
    host_time(d.ring_attention.forward, "ring_attention_forward_us");
    host_time(d.ring_attention.backward, "ring_attention_backward_us");
    host_time(d.optimizer_parameter, "optimizer_parameter_us");
    host_time(d.optimizer_shard, "optimizer_shard_us");
    if (m.contains("spread")) d.spread = read_spread(m.at("spread"), at / "spread");
  }

  d.calibrated = j.contains("efficiency");
  if (d.calibrated) efficiency_json::read(d.efficiency, j.at("efficiency"), top / "efficiency");

  const Place at_sources = top / "sources";
  const nlohmann::json& s = j.at("sources");
  const std::initializer_list<std::string_view> sourced{
      "sm",       "multiprocessors",       "memory_bytes",     "usable_bytes", "dram_bytes_per_s",
      "l2_bytes", "host_link_bytes_per_s", "peak_flops_per_s", "launch_us",    "kernel_floor_us"};
  expect_keys(s, at_sources, sourced, {"measured", "efficiency"});
  for (const auto k : sourced) text(s, at_sources, k);
  for (const char* k : {"measured", "efficiency"}) {
    if (j.contains(k) != s.contains(k))
      fail(at_sources / k, j.contains(k) ? "is missing" : "is the source of nothing",
           "give measured values and their source together");
    if (s.contains(k)) text(s, at_sources, k);
  }
  return d;
}

VLMEST_INLINE Device parse_device(std::string_view text, const std::string& file) {
  nlohmann::json j;
  try {
    j = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    std::string what = e.what();
    if (const auto end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    throw Error(file, "is not valid JSON: " + what, "check the file with a JSON linter");
  }
  return read_device(j, file);
}

}  // namespace vlmest
