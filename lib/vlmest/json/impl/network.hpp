// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <vlmest/json/benchmark.hpp>
#include <vlmest/json/device_values.hpp>
#include <vlmest/json/network.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

namespace network_json {

using device_json::expect_keys;
using device_json::fail;
using device_json::integer;
using device_json::number;
using device_json::Place;
using device_json::text;

inline const nlohmann::json& list(const nlohmann::json& o, const Place& at, const char* key) {
  const nlohmann::json& l = o.at(key);
  if (!l.is_array() || l.empty())
    fail(at / key, "is no list, or an empty one", "see docs/reference/network.schema.json");
  return l;
}

inline constexpr const char* collectives = "one of all_reduce, reduce_scatter, all_gather, all_to_all, send";

/// The operation that a label says; an empty object where it says none.
inline nlohmann::json label(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("label") || !entry["label"].is_string()) return nlohmann::json::object();
  nlohmann::json op = nlohmann::json::parse(entry["label"].get<std::string>(), nullptr, false);
  return op.is_object() ? op : nlohmann::json::object();
}

inline parallel::CollectiveCurve read_curve(const nlohmann::json& o, const Place& at) {
  expect_keys(o, at, {"op", "ranks", "bytes_us"});
  parallel::CollectiveCurve c{.ranks = static_cast<int>(integer(o, at, "ranks", 2, 1 << 16)), .points = {}};
  const std::string op = text(o, at, "op");
  const auto kind = collective_kind(op);
  if (!kind) fail(at / "op", "'" + op + "' is no collective", collectives);
  c.kind = *kind;
  for (const nlohmann::json& p : list(o, at, "bytes_us")) {
    if (!p.is_array() || p.size() != 2 || !p[0].is_number_integer() || !p[1].is_number())
      fail(at / "bytes_us", "has a point that is no pair of bytes and microseconds", "such as [1024, 6.5]");
    const parallel::CollectivePoint point{Bytes(p[0].get<std::int64_t>()), Seconds{p[1].get<double>() * 1e-6}};
    const bool grows = c.points.empty() || (point.bytes > c.points.back().bytes && point.time >= c.points.back().time);
    if (point.bytes < Bytes(1) || !(point.time.value > 0 && point.time.value < 1e6) || !grows)
      fail(at / "bytes_us", "does not grow from point to point", "sort by bytes; more bytes take no less time");
    c.points.push_back(point);
  }
  return c;
}

}  // namespace network_json

VLMEST_INLINE parallel::Network read_network(const nlohmann::json& j, const std::string& file) {
  using namespace network_json;
  const Place top{file, ""};
  expect_keys(j, top, {"name", "product", "domains"});
  parallel::Network n{.name = text(j, top, "name"), .domains = {}};
  for (const nlohmann::json& o : list(j, top, "domains")) {
    const Place at = top / ("domains[" + std::to_string(n.domains.size()) + "]");
    expect_keys(o, at, {"name", "gpus", "bandwidth_gb_s", "launch_us", "hop_us", "channels", "source"}, {"curves"});
    parallel::Domain d{.name = text(o, at, "name"),
                       .gpus = integer(o, at, "gpus", 2, 1 << 20),
                       .bandwidth = {number(o, at, "bandwidth_gb_s") * 1e9},
                       .launch = {number(o, at, "launch_us") * 1e-6},
                       .hop = {number(o, at, "hop_us") * 1e-6},
                       .channels = integer(o, at, "channels", 1, 64),
                       .curves = {}};
    if (!n.domains.empty() && d.gpus <= n.domains.back().gpus)
      fail(at / "gpus", "is no more than the domain before has", "list domains from the innermost to the outermost");
    if (o.contains("curves"))
      for (const nlohmann::json& c : list(o, at, "curves"))
        d.curves.push_back(read_curve(c, at / ("curves[" + std::to_string(d.curves.size()) + "]")));
    n.domains.push_back(std::move(d));
  }
  return n;
}

VLMEST_INLINE bool is_collective(const nlohmann::json& entry) {
  const nlohmann::json op = network_json::label(entry);
  return op.contains("op") && op["op"].is_string() && collective_kind(op["op"].get<std::string>());
}

VLMEST_INLINE parallel::MeasuredCollective read_collective(const nlohmann::json& entry, const std::string& where) {
  const nlohmann::json op = network_json::label(entry);
  const Reader label(op, where + ".label"), row(entry, where);
  const auto kind = collective_kind(label.string("op", ""));
  if (!kind) label.fail("op", "is no collective", network_json::collectives);
  const double us = row.number("real_time", 0.0) * benchmark::microseconds(row);
  if (!(us > 0.0 && us < 1e12)) row.fail("real_time", "is no time that can be measured", "leave the entry out");
  return {.kind = *kind,
          .ranks = static_cast<int>(label.integer_required("ranks", 2, 1 << 16)),
          .bytes = Bytes(label.integer_required("bytes", 1, std::int64_t{1} << 50)),
          .time = {us * 1e-6}};
}

VLMEST_INLINE parallel::Network parse_network(std::string_view text, const std::string& file) {
  return read_network(parse(text, file), file);
}

}  // namespace vlmest::json
