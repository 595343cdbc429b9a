// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/json/device.hpp>

namespace vlmest::device_json_test {
namespace {

using nlohmann::json;

const std::filesystem::path folder = std::filesystem::path(VLMEST_SOURCE_DIR) / "models" / "device";

json text_of(const std::string& name) {
  std::ifstream in(folder / (name + ".json"));
  return json::parse(in);
}

std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path().extension() == ".json") files.push_back(e.path());
  return files;
}

TEST(DeviceJson, EveryShippedDeviceLoads) {
  std::set<std::string> names;
  for (const auto& f : shipped()) names.insert(load_device(f).name);
  EXPECT_EQ(names, (std::set<std::string>{"a100-40", "a100-80", "a10g", "b200", "h100-pcie", "h100-sxm", "h200-sxm",
                                          "l4", "l40s", "rtx-4090", "rtx-5090", "t4", "v100"}));
}

TEST(DeviceJson, ShippedValuesArePlausible) {
  for (const auto& f : shipped()) {
    SCOPED_TRACE(f.filename().string());
    const Device d = load_device(f);
    EXPECT_EQ(d.name, f.stem().string());
    EXPECT_EQ(d.vendor, "NVIDIA");
    EXPECT_TRUE((std::set<int>{70, 75, 80, 86, 89, 90, 100, 120}.contains(d.sm))) << d.sm;
    EXPECT_GT(d.multiprocessors, 30);
    EXPECT_LT(d.multiprocessors, 200);

    // The number in the product's name is the capacity in GB or GiB, less what ECC and firmware take.
    EXPECT_GT(d.memory_bytes, Bytes(14'000'000'000));
    EXPECT_LT(d.memory_bytes, Bytes(200'000'000'000));
    EXPECT_LT(d.usable_bytes, d.memory_bytes);
    EXPECT_GT(d.usable_bytes / d.memory_bytes, 0.94);
    EXPECT_GE(d.l2, Bytes(4 << 20));
    EXPECT_LT(d.l2, Bytes(128 << 20));
    EXPECT_GE(d.dram.value, 300e9);
    EXPECT_LE(d.dram.value, 8e12);
    EXPECT_GE(d.host_link.value, 16e9);
    EXPECT_LE(d.host_link.value, 64e9);

    // A multiprocessor does 64 or 128 fp32 multiply-adds a clock; clocks are between 1.2 and 2.6 GHz.
    const double per_clock = d.peaks.fp32.value / (2.0 * d.multiprocessors);
    const double cores = d.sm == 70 || d.sm == 75 || d.sm == 80 ? 64 : 128;
    EXPECT_GT(per_clock / cores, 1.2e9);
    EXPECT_LT(per_clock / cores, 2.6e9);

    // A dense tensor peak is a power of two times the next wider type's; a sparse one in its place would double it.
    const double half = d.peaks.fp16.value;
    EXPECT_GT(half, d.peaks.fp32.value);
    EXPECT_LE(half / d.peaks.fp32.value, 31);
    if (d.sm >= 80) {
      EXPECT_EQ(d.peaks.bf16.value, half);
      EXPECT_NEAR(half / d.peaks.tf32.value, 2.0, 0.05);
      EXPECT_GE(d.peaks.int8.value / half, 1.97);
    } else {
      EXPECT_EQ(d.peaks.bf16.value, 0);
      EXPECT_EQ(d.peaks.tf32.value, 0);
    }
    EXPECT_EQ(d.peaks.fp8.value > 0, d.sm >= 89);

    EXPECT_GT(ridge(d, DType::fp16), 90);
    EXPECT_LT(ridge(d, DType::fp16), 450);
    EXPECT_GT(ridge(d, DType::fp32, false), 9);
    EXPECT_LT(ridge(d, DType::fp32, false), 110);
    EXPECT_GT(d.launch.us(), 1);
    EXPECT_LT(d.launch.us(), 20);
    EXPECT_GT(d.kernel_floor.us(), 0.5);
    EXPECT_LT(d.kernel_floor.us(), d.launch.us());
  }
}

TEST(DeviceJson, TheDefaultDevice) {
  const Device d = load_device(folder / "h200-sxm.json");
  EXPECT_EQ(d.sm, 90);
  EXPECT_EQ(d.multiprocessors, 132);
  EXPECT_EQ(d.memory_bytes, Bytes(150'109'880'320));
  EXPECT_EQ(d.usable_bytes, Bytes(149'298'348'032));
  EXPECT_EQ(d.l2, Bytes(60 << 20));
  EXPECT_DOUBLE_EQ(d.peaks.bf16.value, 989.4e12);
  EXPECT_DOUBLE_EQ(d.dram.value, 4.8e12);
  EXPECT_NEAR(ridge(d, DType::bf16), 206.1, 0.1);
  ASSERT_TRUE(d.measured.dram_copy && d.measured.bf16 && d.measured.host_link);
  EXPECT_LT(*d.measured.dram_copy, d.dram);
  EXPECT_LT(*d.measured.bf16, d.peaks.bf16);
  EXPECT_LT(*d.measured.host_link, d.host_link);
}

TEST(DeviceJson, MeasuredCeilingsAreOptional) {
  json j = text_of("h200-sxm");
  j.erase("measured");
  j["sources"].erase("measured");
  EXPECT_FALSE(read_device(j, "f").measured.dram_copy.has_value());
}

/// The message of the Error that reading throws after `damage`.
Error refusal(const std::function<void(json&)>& damage) {
  json j = text_of("h200-sxm");
  damage(j);
  try {
    read_device(j, "my.json");
  } catch (const Error& e) {
    return e;
  }
  return Error("", "read without complaint");
}

struct Case {
  std::string where;
  std::string what;
  std::function<void(json&)> damage;
};

TEST(DeviceJson, WhatIsRefusedAndHow) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<Case> cases{
      {"my.json: colour", "unknown key", [](json& j) { j["colour"] = "green"; }},
      {"my.json: peak_flops_per_s.fp4", "unknown key", [](json& j) { j["peak_flops_per_s"]["fp4"] = 1e15; }},
      {"my.json: measured.speed", "unknown key", [](json& j) { j["measured"]["speed"] = 1; }},
      {"my.json: sources.name", "unknown key", [](json& j) { j["sources"]["name"] = "x"; }},
      {"my.json: l2_bytes", "is missing", [](json& j) { j.erase("l2_bytes"); }},
      {"my.json: peak_flops_per_s.fp8", "is missing", [](json& j) { j["peak_flops_per_s"].erase("fp8"); }},
      {"my.json: sources.l2_bytes", "is missing", [](json& j) { j["sources"].erase("l2_bytes"); }},
      {"my.json: sources.measured", "is missing", [](json& j) { j["sources"].erase("measured"); }},
      {"my.json: sources.measured", "is the source of nothing", [](json& j) { j.erase("measured"); }},
      {"my.json", "not an object", [](json& j) { j = json::array(); }},
      {"my.json: peak_flops_per_s", "not an object", [](json& j) { j["peak_flops_per_s"] = 1; }},
      {"my.json: measured", "not an object", [](json& j) { j["measured"] = nullptr; }},
      {"my.json: sources", "not an object", [](json& j) { j["sources"] = "datasheet"; }},
      {"my.json: name", "not a string", [](json& j) { j["name"] = 7; }},
      {"my.json: name", "is empty", [](json& j) { j["name"] = ""; }},
      {"my.json: sources.sm", "is empty", [](json& j) { j["sources"]["sm"] = ""; }},
      {"my.json: sm", "not an integer", [](json& j) { j["sm"] = "90"; }},
      {"my.json: sm", "outside 50 to 999", [](json& j) { j["sm"] = 9; }},
      {"my.json: sm", "outside 50 to 999", [](json& j) { j["sm"] = 9000; }},
      {"my.json: multiprocessors", "outside", [](json& j) { j["multiprocessors"] = 0; }},
      {"my.json: memory_bytes", "a fraction, not an integer", [](json& j) { j["memory_bytes"] = 1.5e11; }},
      {"my.json: memory_bytes", "outside", [](json& j) { j["memory_bytes"] = -1; }},
      {"my.json: memory_bytes", "outside",
       [](json& j) { j["memory_bytes"] = std::numeric_limits<std::uint64_t>::max(); }},
      {"my.json: usable_bytes", "is more than memory_bytes", [](json& j) { j["usable_bytes"] = 200'000'000'000; }},
      {"my.json: l2_bytes", "outside", [](json& j) { j["l2_bytes"] = 0; }},
      {"my.json: dram_bytes_per_s", "not above zero", [](json& j) { j["dram_bytes_per_s"] = 0; }},
      {"my.json: dram_bytes_per_s", "not above zero", [](json& j) { j["dram_bytes_per_s"] = -4.8e12; }},
      {"my.json: dram_bytes_per_s", "not above zero", [=](json& j) { j["dram_bytes_per_s"] = nan; }},
      {"my.json: dram_bytes_per_s", "not above zero", [=](json& j) { j["dram_bytes_per_s"] = inf; }},
      {"my.json: dram_bytes_per_s", "not a number", [](json& j) { j["dram_bytes_per_s"] = "4.8 TB/s"; }},
      {"my.json: host_link_bytes_per_s", "not above zero", [](json& j) { j["host_link_bytes_per_s"] = 0.0; }},
      {"my.json: peak_flops_per_s.fp32", "not above zero", [](json& j) { j["peak_flops_per_s"]["fp32"] = 0; }},
      {"my.json: peak_flops_per_s.bf16", "not zero or above", [](json& j) { j["peak_flops_per_s"]["bf16"] = -1; }},
      {"my.json: peak_flops_per_s.bf16", "not zero or above", [=](json& j) { j["peak_flops_per_s"]["bf16"] = nan; }},
      {"my.json: launch_us", "not above zero", [](json& j) { j["launch_us"] = 0; }},
      {"my.json: kernel_floor_us", "not a number", [](json& j) { j["kernel_floor_us"] = true; }},
      {"my.json: efficiency.matmul", "unknown key", [](json& j) { j["efficiency"]["matmul"] = 1; }},
      {"my.json: efficiency.fp32.speed", "unknown key", [](json& j) { j["efficiency"]["fp32"]["speed"] = 1; }},
      {"my.json: efficiency.fp32", "not an object", [](json& j) { j["efficiency"]["fp32"] = 0.7; }},
      {"my.json: efficiency.fp32.rate", "not above zero", [](json& j) { j["efficiency"]["fp32"]["rate"] = 0; }},
      {"my.json: efficiency.memory.rows.start_us", "more than a second",
       [](json& j) { j["efficiency"]["memory"]["rows"]["start_us"] = 1e9; }},
      {"my.json: efficiency.half.bytes16.correction.m", "is not ascending",
       [](json& j) {
         j["efficiency"]["half"]["bytes16"]["correction"]["m"] = {64, 1};
       }},
      {"my.json: efficiency.half.bytes16.correction.n", "fewer than two",
       [](json& j) { j["efficiency"]["half"]["bytes16"]["correction"]["n"] = {64}; }},
      {"my.json: efficiency.half.bytes16.correction.percent", "not one for each",
       [](json& j) {
         j["efficiency"]["half"]["bytes16"]["correction"]["percent"] = {1, 2};
       }},
      {"my.json: efficiency.half.bytes16.correction.percent", "holds -100",
       [](json& j) { j["efficiency"]["half"]["bytes16"]["correction"]["percent"][0] = -100; }},
      {"my.json: sources.efficiency", "is missing", [](json& j) { j["sources"].erase("efficiency"); }},
      {"my.json: measured.bf16_flops_per_s", "not above zero", [](json& j) { j["measured"]["bf16_flops_per_s"] = 0; }},
  };
  for (const Case& c : cases) {
    const Error e = refusal(c.damage);
    SCOPED_TRACE(c.where + " / " + c.what + " -> " + e.what());
    EXPECT_EQ(e.where, c.where);
    EXPECT_NE(e.what_happened.find(c.what), std::string::npos);
    EXPECT_FALSE(e.hint.empty());
  }
}

TEST(DeviceJson, AnUnknownKeyIsToldTheKnownOnes) {
  const Error e = refusal([](json& j) { j["measured"]["speed"] = 1; });
  EXPECT_NE(e.hint.find("dram_copy_bytes_per_s"), std::string::npos);
}

TEST(DeviceJson, TextThatIsNotJson) {
  for (const std::string text :
       {"", "{", "{\"name\": }", "[1, 2", "nonsense", "{} {}", "{\"sm\": 1e999}", "\xff\xfe"}) {
    SCOPED_TRACE(text);
    try {
      parse_device(text, "my.json");
      ADD_FAILURE() << "read without complaint";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, "my.json");
      EXPECT_EQ(e.what_happened.find("is not valid JSON: "), 0U);
      EXPECT_EQ(e.what_happened.find("[json.exception"), std::string::npos);
      EXPECT_FALSE(e.hint.empty());
    }
  }
}

TEST(DeviceJson, DeepNestingIsRefusedWithoutHarm) {
  const std::string deep = "{\"name\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_THROW(parse_device(deep, "deep.json"), Error);
}

TEST(DeviceJson, AFileThatIsNotThere) {
  EXPECT_THROW(load_device(folder / "none.json"), Error);
  EXPECT_THROW(load_device(folder), Error);
}

/// What is written is read again as it was, to the digits that are written.
TEST(DeviceJson, EfficienciesGoRoundInJson) {
  const Device d = load_device(folder / "h200-sxm.json");
  EXPECT_TRUE(d.calibrated);
  Efficiency again;
  efficiency_json::read(again, efficiency_json::write(d.efficiency), {"again", ""});
  EXPECT_NEAR(again.half.bytes16.rate, d.efficiency.half.bytes16.rate, 1e-6);
  EXPECT_NEAR(again.memory.strided.element.value, d.efficiency.memory.strided.element.value, 1e-17);
  EXPECT_EQ(again.half.bytes16.correction.size(), d.efficiency.half.bytes16.correction.size());
  const std::array<double, 3> sizes{300, 5000, 777};
  EXPECT_NEAR(again.half.bytes16.correction(sizes), d.efficiency.half.bytes16.correction(sizes), 1e-3);
}

/// The schema lists the keys that the reader knows, no more and no fewer.
TEST(DeviceJson, TheSchemaKnowsTheSameKeys) {
  std::ifstream in(std::filesystem::path(VLMEST_SOURCE_DIR) / "docs" / "reference" / "device.schema.json");
  const json schema = json::parse(in);
  const auto keys = [](const json& o) {
    std::set<std::string> s;
    for (const auto& e : o.items()) s.insert(e.key());
    return s;
  };
  const json h200 = text_of("h200-sxm");
  const json& p = schema.at("properties");
  EXPECT_EQ(keys(p), keys(h200));
  for (const char* part : {"peak_flops_per_s", "measured", "efficiency", "sources"})
    EXPECT_EQ(keys(p.at(part).at("properties")), keys(h200.at(part))) << part;
  // The efficiencies as they are written, level by level.
  const json written = efficiency_json::write(Efficiency{}), &e = p.at("efficiency").at("properties");
  EXPECT_EQ(keys(e), keys(written));
  for (const char* part : {"half", "attention", "memory"})
    EXPECT_EQ(keys(e.at(part).at("properties")), keys(written.at(part))) << part;
  EXPECT_EQ(keys(e.at("attention").at("properties").at("decode").at("properties")),
            keys(written.at("attention").at("decode")));
  auto matmul = keys(schema.at("$defs").at("matmul").at("properties"));
  matmul.erase("correction");  // written where there is one
  EXPECT_EQ(matmul, keys(written.at("fp32")));
  EXPECT_EQ(keys(schema.at("$defs").at("memory").at("properties")), keys(written.at("memory").at("rows")));
  for (const auto& k : schema.at("required")) {
    const Error missing = refusal([&](json& j) { j.erase(k.get<std::string>()); });
    EXPECT_EQ(missing.where, "my.json: " + k.get<std::string>());
  }
}

}  // namespace
}  // namespace vlmest::device_json_test
