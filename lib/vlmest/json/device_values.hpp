// SPDX-License-Identifier: Apache-2.0
#pragma once

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
void expect_keys(const json& o, const Place& at, std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional = {});

/// The same where every key is optional.
void expect_among(const json& o, const Place& at, const std::vector<std::string>& optional);

inline std::string text(const json& o, const Place& at, std::string_view k) {
  const json& v = o.at(std::string(k));
  if (!v.is_string()) fail(at / k, std::string("is ") + v.type_name() + ", not a string", "write it in quotes");
  if (v.get_ref<const std::string&>().empty()) fail(at / k, "is empty", "write a name or a source");
  return v.get<std::string>();
}

std::vector<std::string> texts(const json& o, const Place& at, std::string_view k);

std::int64_t integer(const json& o, const Place& at, std::string_view k, std::int64_t lowest,
                     std::int64_t highest = std::numeric_limits<std::int64_t>::max());

/// A finite number above zero, or zero itself where `zero_too`.
double number(const json& o, const Place& at, std::string_view k, bool zero_too = false);

}  // namespace vlmest::device_json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/device_values.hpp>
#endif
