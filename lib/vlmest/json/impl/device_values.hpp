// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/json/device_values.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::device_json {

VLMEST_INLINE void expect_keys(const json& o, const Place& at, std::initializer_list<std::string_view> required,
                               std::initializer_list<std::string_view> optional) {
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

VLMEST_INLINE void expect_among(const json& o, const Place& at, const std::vector<std::string>& optional) {
  std::string known;
  for (const auto& k : optional) (known += known.empty() ? "" : " ") += k;
  if (!o.is_object()) fail(at, std::string("is ") + o.type_name() + ", not an object", "keys: " + known);
  for (const auto& item : o.items())
    if (std::find(optional.begin(), optional.end(), item.key()) == optional.end())
      fail(at / item.key(), "unknown key", "known keys: " + known);
}

VLMEST_INLINE std::vector<std::string> texts(const json& o, const Place& at, std::string_view k) {
  const json& v = o.at(std::string(k));
  if (!v.is_array()) fail(at / k, std::string("is ") + v.type_name() + ", not a list", "write a list of names");
  std::vector<std::string> r;
  for (const json& name : v) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty())
      fail(at / k, "holds " + name.dump() + ", which is no name", "write names in quotes");
    r.push_back(name.get<std::string>());
  }
  return r;
}

VLMEST_INLINE std::int64_t integer(const json& o, const Place& at, std::string_view k, std::int64_t lowest,
                                   std::int64_t highest) {
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

VLMEST_INLINE double number(const json& o, const Place& at, std::string_view k, bool zero_too) {
  const json& v = o.at(std::string(k));
  if (!v.is_number())
    fail(at / k, std::string("is ") + v.type_name() + ", not a number", "write a number without quotes");
  const double x = v.get<double>();
  if (!std::isfinite(x) || x < 0 || (x == 0 && !zero_too))
    fail(at / k, "is " + v.dump() + (zero_too ? ", not zero or above" : ", not above zero"),
         "check the value and its unit");
  return x;
}

}  // namespace vlmest::device_json
