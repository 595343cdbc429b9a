// SPDX-License-Identifier: Apache-2.0
// Stored weights against what a device held of them: tests/data/quantization/device_bytes.json, whose rows were built
// by the libraries that write and read the files.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

#include "config_support.hpp"

namespace vlmest::test::device_bytes_test {
namespace {

using nlohmann::json;

json load(const std::string& path) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/" + path);
  return json::parse(in);
}
const json& recorded() {
  static const json d = load("tests/data/quantization/device_bytes.json");
  return d;
}

/// The config.json that a row was built from.
json config_of(const json& row) {
  json c, section;
  if (row.contains("file")) {
    const json q = load("tests/data/quantization/" + row["file"].get<std::string>() + ".json");
    c = load("tests/data/configs/" + q["base"].get<std::string>() + ".json");
    for (const char* part : {"text_config", "vision_config"})
      if (q.contains(part)) c[part].update(q[part]);
    if (q.contains("torch_dtype")) c["torch_dtype"] = q["torch_dtype"];
    section = q["quantization_config"];
    if (row.contains("changes")) section.update(row["changes"]);
  } else {
    c = load("tests/data/" + row["config"].get<std::string>() + ".json");
    if (c.contains("model")) c = json(c["model"]);
    section = row["quantization_config"];
  }
  c["quantization_config"] = section;
  if (row.contains("layers")) {
    json& text = c["text_config"];
    text["num_hidden_layers"] = row["layers"];
    if (text.contains("layer_types"))
      text["layer_types"].erase(text["layer_types"].begin() + row["layers"].get<int>(), text["layer_types"].end());
  }
  return c;
}

Vlm model_of(const json& row) { return read(config_of(row).dump()); }
Plan plan_of(const Vlm& vlm) {
  Plan plan;
  plan.dtype = vlm.dtype.value_or(DType::bf16);
  return plan;
}
const Device& h200() {
  static const Device d = parse_device(load("models/device/h200-sxm.json").dump(), "h200-sxm");
  return d;
}
std::string name_of(const json& row) {
  return row["name"].get<std::string>() + ", " + row["variant"].get<std::string>();
}
double miss(std::int64_t said, const json& measured) {
  return std::abs(static_cast<double>(said) / measured.get<double>() - 1);
}

/// The largest misses of what the allocator held are 0.015 % where another order of the same tensors leaves other
/// remainders of blocks, 0.24 % where transformers 5 converts modules that the file holds wide, and 0.67 % where the
/// files hold what is dropped or repacked when they are loaded.
double bar(const json& row) {
  const std::string variant = row["variant"], name = row["name"];
  if (variant == "library") return 0.0003;
  if (variant == "loaded" && name == "qwen2.5-vl-72b-bnb-4bit") return 0.005;
  const bool repacked = name.ends_with("-awq") || name.ends_with("-gptq-int4");
  if (variant == "files" && repacked) return 0.01;
  return 0;
}

TEST(DeviceBytes, WeightsAsTheAllocatorHeldThem) {
  for (const json& row : recorded()["rows"]) {
    const Vlm vlm = model_of(row);
    const Bytes b =
        inference_estimate::loaded_weights(vlm, plan_of(vlm), h200(), {.total_memory = h200().memory_bytes});
    EXPECT_LE(miss(b.value(), row["allocated"]), bar(row)) << name_of(row) << ": " << b.value();
  }
}

TEST(DeviceBytes, TensorsAsTheirShapesSay) {
  for (const json& row : recorded()["rows"]) {
    const std::string variant = row["variant"];
    if (variant != "library" && bar(row) > 0) continue;
    const Vlm vlm = model_of(row);
    const Plan plan = plan_of(vlm);
    Builder b;
    Context c{b, plan, stack_of(plan)};
    c.loads = true;
    declare_parameters(c, vlm);
    Bytes sum{};
    for (const Tensor& t : b.graph.tensors)
      if ((t.role == Role::weight || t.role == Role::buffer) && t.dies == none && t.alias_of == none)
        sum += requested_bytes(t);
    EXPECT_EQ(sum.value(), row["bytes"].get<std::int64_t>()) << name_of(row);
  }
}

/// The largest miss is 0.079 %: what the allocator's blocks keep of the packed weights that were unpacked one by one.
TEST(DeviceBytes, PeakOfAPrefillOfText) {
  std::size_t ran = 0;
  for (const json& row : recorded()["rows"]) {
    if (!row.contains("prefill")) continue;
    const Vlm vlm = model_of(row);
    Plan plan = plan_of(vlm);
    plan.images = 0;
    plan.text = row["prefill"]["text"];
    plan.new_tokens = 1;
    Estimator estimator;
    estimator.allocator.total_memory = h200().memory_bytes;
    const Estimate e = estimator(vlm, plan, h200());
    EXPECT_LE(miss(e.inference.prefill.memory.peak.value(), row["prefill"]["peak"]), 0.0015) << name_of(row);
    ++ran;
  }
  EXPECT_EQ(ran, 5u);
}

}  // namespace
}  // namespace vlmest::test::device_bytes_test
