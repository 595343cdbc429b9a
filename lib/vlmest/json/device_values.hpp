// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/unit/error.hpp>

/// Values of a device description, each checked where it is read.
namespace vlmest::device_json {

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

/// The same where every key is optional.
inline void expect_among(const json& o, const Place& at, const std::vector<std::string>& optional) {
  std::string known;
  for (const auto& k : optional) (known += known.empty() ? "" : " ") += k;
  if (!o.is_object()) fail(at, std::string("is ") + o.type_name() + ", not an object", "keys: " + known);
  for (const auto& item : o.items())
    if (std::find(optional.begin(), optional.end(), item.key()) == optional.end())
      fail(at / item.key(), "unknown key", "known keys: " + known);
}

inline std::string text(const json& o, const Place& at, std::string_view k) {
  const json& v = o.at(std::string(k));
  if (!v.is_string()) fail(at / k, std::string("is ") + v.type_name() + ", not a string", "write it in quotes");
  if (v.get_ref<const std::string&>().empty()) fail(at / k, "is empty", "write a name or a source");
  return v.get<std::string>();
}

inline std::vector<std::string> texts(const json& o, const Place& at, std::string_view k) {
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

}  // namespace vlmest::device_json
