// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/device/device.hpp>

namespace vlmest {

namespace device_json {

using nlohmann::json;

/// Where a value stands, for messages: the file and the path of keys to it.
struct Place {
  std::string file;
  std::string key;
  Place operator/(std::string_view k) const {
    return {file, key.empty() ? std::string(k) : key + "." + std::string(k)};
  }
  std::string text() const { return key.empty() ? file : file + ": " + key; }
};

[[noreturn]] inline void fail(const Place& at, std::string what, std::string hint) {
  throw Error(at.text(), std::move(what), std::move(hint));
}

inline std::string joined(std::initializer_list<std::string_view> keys) {
  std::string s;
  for (const auto k : keys) (s += s.empty() ? "" : " ") += k;
  return s;
}

/// `o` is an object that holds every key of `required`, and beyond them only keys of `optional`.
inline void expect_keys(const json& o, const Place& at, std::initializer_list<std::string_view> required,
                        std::initializer_list<std::string_view> optional = {}) {
  if (!o.is_object()) fail(at, std::string("is ") + o.type_name() + ", not an object", "keys: " + joined(required));
  const auto among = [](std::initializer_list<std::string_view> keys, std::string_view k) {
    return std::find(keys.begin(), keys.end(), k) != keys.end();
  };
  for (const auto& item : o.items())
    if (!among(required, item.key()) && !among(optional, item.key()))
      fail(at / item.key(), "unknown key",
           "known keys: " + joined(required) + (optional.size() ? " " : "") + joined(optional));
  for (const auto k : required)
    if (!o.contains(k)) fail(at / k, "is missing", "see the device files that are shipped for an example");
}

inline std::string text(const json& o, const Place& at, std::string_view k) {
  const json& v = o.at(std::string(k));
  if (!v.is_string()) fail(at / k, std::string("is ") + v.type_name() + ", not a string", "write it in quotes");
  if (v.get_ref<const std::string&>().empty()) fail(at / k, "is empty", "write a name or a source");
  return v.get<std::string>();
}

inline std::int64_t integer(const json& o, const Place& at, std::string_view k, std::int64_t lowest,
                            std::int64_t highest = std::numeric_limits<std::int64_t>::max()) {
  const json& v = o.at(std::string(k));
  if (!v.is_number_integer())
    fail(at / k, std::string("is ") + (v.is_number_float() ? "a fraction" : v.type_name()) + ", not an integer",
         "write digits alone, no quotes, point or exponent");
  const bool beyond = v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(highest);
  if (beyond || v.get<std::int64_t>() < lowest || v.get<std::int64_t>() > highest)
    fail(at / k, "is " + v.dump() + ", outside " + std::to_string(lowest) + " to " + std::to_string(highest),
         "check the value and its unit");
  return v.get<std::int64_t>();
}

/// A finite number above zero, or zero itself where `zero_too`.
inline double number(const json& o, const Place& at, std::string_view k, bool zero_too = false) {
  const json& v = o.at(std::string(k));
  if (!v.is_number())
    fail(at / k, std::string("is ") + v.type_name() + ", not a number", "write a number without quotes");
  const double x = v.get<double>();
  if (!std::isfinite(x) || x < 0 || (x == 0 && !zero_too))
    fail(at / k, "is " + v.dump() + (zero_too ? ", not zero or above" : ", not above zero"),
         "check the value and its unit");
  return x;
}

}  // namespace device_json

/// A device from its JSON (docs/reference/device.schema.json). `file` names it in messages. Every value comes with its
/// source. Throws Error, naming file and key, for a missing or unknown key, a wrong type, and a value that no device
/// can have.
inline Device read_device(const nlohmann::json& j, const std::string& file) {
  using namespace device_json;
  const Place top{file, ""};
  expect_keys(j, top,
              {"name", "product", "vendor", "architecture", "sm", "multiprocessors", "memory_bytes", "usable_bytes",
               "dram_bytes_per_s", "l2_bytes", "host_link_bytes_per_s", "peak_flops_per_s", "launch_us",
               "kernel_floor_us", "sources"},
              {"measured"});
  Device d;
  d.name = text(j, top, "name");
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
    expect_keys(m, at, {}, {"dram_copy_bytes_per_s", "bf16_flops_per_s", "host_link_bytes_per_s"});
    if (m.contains("dram_copy_bytes_per_s")) d.measured.dram_copy = Bandwidth{number(m, at, "dram_copy_bytes_per_s")};
    if (m.contains("bf16_flops_per_s")) d.measured.bf16 = FlopRate{number(m, at, "bf16_flops_per_s")};
    if (m.contains("host_link_bytes_per_s")) d.measured.host_link = Bandwidth{number(m, at, "host_link_bytes_per_s")};
  }

  const Place at_sources = top / "sources";
  const nlohmann::json& s = j.at("sources");
  const std::initializer_list<std::string_view> sourced{
      "sm",       "multiprocessors",       "memory_bytes",     "usable_bytes", "dram_bytes_per_s",
      "l2_bytes", "host_link_bytes_per_s", "peak_flops_per_s", "launch_us",    "kernel_floor_us"};
  expect_keys(s, at_sources, sourced, {"measured"});
  for (const auto k : sourced) text(s, at_sources, k);
  if (j.contains("measured") != s.contains("measured"))
    fail(at_sources / "measured", j.contains("measured") ? "is missing" : "is the source of nothing",
         "give measured values and their source together");
  if (s.contains("measured")) text(s, at_sources, "measured");
  return d;
}

/// The same from JSON text.
inline Device parse_device(std::string_view text, const std::string& file) {
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

/// The same from a file.
inline Device load_device(const std::filesystem::path& file) {
  std::error_code ignored;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, ignored))
    throw Error(file.string(), "cannot be read", "give the path of a device description");
  return parse_device(std::string(std::istreambuf_iterator<char>(in), {}), file.string());
}

}  // namespace vlmest
