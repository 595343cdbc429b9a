// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/json/asked_keys.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::json {

/// One object of a document, with the path that error messages name. Absent keys give the default; keys of a wrong type
/// or out of range throw Error.
class Reader {
 public:
  /// `hint` is what errors advise that have nothing better to say.
  Reader(const nlohmann::json& value, std::string path,
         std::string_view hint = "compare with the model's published config.json")
      : j_(&value), path_(std::move(path)), hint_(hint) {
    if (!value.is_object()) throw Error(path_, "expected an object", "see the description format in docs/reference");
  }
  /// The same, which writes down what it and the readers of its objects are asked for; `asked` must outlive them.
  Reader(const nlohmann::json& value, std::string path, AskedKeys& asked) : Reader(value, std::move(path)) {
    write_down(&asked);
  }
  /// An object that stands for the one that `other` reads: with keys renamed, or others beside them.
  Reader(const nlohmann::json& value, const Reader& other) : Reader(value, other.path_, other.hint_) {
    write_down(other.asked_);
  }

  const std::string& path() const { return path_; }
  const nlohmann::json& value() const { return *j_; }
  bool has(const char* key) const {
    if (keys_ != nullptr) keys_->insert(key);
    return j_->contains(key);
  }
  /// Keys that change nothing that is read here, whatever they hold: they count as asked for.
  void without_effect(std::initializer_list<const char*> keys) const {
    if (keys_ != nullptr) keys_->insert(keys.begin(), keys.end());
  }
  bool is_null(const char* key) const { return has(key) && (*j_)[key].is_null(); }
  /// Present and not null.
  bool given(const char* key) const { return has(key) && !(*j_)[key].is_null(); }

  /// Whichever of a key's two names the object has: config classes of transformers take one for the other
  /// (attribute_map), and files have either or both.
  const char* either(const char* key, const char* alias) const {
    if (!given(alias)) return key;
    if (!given(key)) return alias;
    if ((*j_)[key] != (*j_)[alias])
      fail(alias, std::string("is another name of ") + key + ", which says something else", "leave one of them out");
    return key;
  }

  /// An integer within [low, high]; null counts as absent.
  std::int64_t integer(const char* key, std::int64_t absent, std::int64_t low = 1,
                       std::int64_t high = std::int64_t{1} << 31) const {
    if (!given(key)) return absent;
    const auto& v = (*j_)[key];
    if (!v.is_number_integer()) fail(key, "expected an integer");
    if (v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      fail(key, range(low, high));
    const auto n = v.get<std::int64_t>();
    if (n < low || n > high) fail(key, range(low, high));
    return n;
  }
  /// The same, where the key must be there.
  std::int64_t integer_required(const char* key, std::int64_t low = 1,
                                std::int64_t high = std::int64_t{1} << 31) const {
    if (!given(key)) fail(key, "missing");
    return integer(key, 0, low, high);
  }
  std::optional<std::int64_t> optional_integer(const char* key, std::int64_t low = 1,
                                               std::int64_t high = std::int64_t{1} << 31) const {
    if (!given(key)) return std::nullopt;
    return integer(key, 0, low, high);
  }
  /// A count of layers.
  std::int64_t layers(const char* key, std::int64_t absent) const { return integer(key, absent, 1, 1024); }
  /// An integer, or the first of a pair of equal ones ([336, 336]).
  std::int64_t side(const char* key, std::int64_t absent) const {
    if (!given(key) || !(*j_)[key].is_array()) return integer(key, absent, 1, 1 << 16);
    const auto l = integers(key, {});
    if (l.empty() || l.front() != l.back()) fail(key, "expected a square size");
    if (l.front() < 1 || l.front() > 1 << 16) fail(key, range(1, 1 << 16));
    return l.front();
  }
  double number(const char* key, double absent) const {
    if (!given(key)) return absent;
    if (!(*j_)[key].is_number()) fail(key, "expected a number");
    return (*j_)[key].get<double>();
  }
  bool boolean(const char* key, bool absent) const {
    if (!given(key)) return absent;
    if (!(*j_)[key].is_boolean()) fail(key, "expected true or false");
    return (*j_)[key].get<bool>();
  }
  std::string string(const char* key, std::string_view absent) const {
    if (!given(key)) return std::string(absent);
    if (!(*j_)[key].is_string()) fail(key, "expected a string");
    return (*j_)[key].get<std::string>();
  }
  /// A list of integers; a single integer counts as a list of one.
  std::vector<std::int64_t> integers(const char* key, std::vector<std::int64_t> absent) const {
    if (!given(key)) return absent;
    const auto& v = (*j_)[key];
    if (v.is_number_integer()) return {entry(key, v)};
    if (!v.is_array()) fail(key, "expected a list of integers");
    if (v.size() > 65536) fail(key, "the list is longer than any model's");
    std::vector<std::int64_t> r;
    for (const auto& e : v) r.push_back(entry(key, e));
    return r;
  }
  /// A list of truth values.
  std::vector<bool> booleans(const char* key, std::vector<bool> absent) const {
    if (!given(key)) return absent;
    const auto& v = (*j_)[key];
    if (!v.is_array()) fail(key, "expected a list of true and false");
    std::vector<bool> r;
    for (const auto& e : v) {
      if (!e.is_boolean()) fail(key, "expected a list of true and false");
      r.push_back(e.get<bool>());
    }
    return r;
  }
  /// The object under `key`, or an empty one.
  Reader object(const char* key) const {
    static const nlohmann::json empty = nlohmann::json::object();
    Reader inner(given(key) ? (*j_)[key] : empty, path_ + "." + key, hint_);
    inner.write_down(asked_);
    return inner;
  }

  [[noreturn]] void fail(const char* key, const std::string& what, const std::string& hint = {}) const {
    throw Error(path_ + "." + key, what, hint.empty() ? std::string(hint_) : hint);
  }

 private:
  std::int64_t entry(const char* key, const nlohmann::json& v) const {
    if (!v.is_number_integer()) fail(key, "expected a list of integers");
    if (v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      fail(key, "an entry is out of range");
    return v.get<std::int64_t>();
  }
  static std::string range(std::int64_t low, std::int64_t high) {
    return "must lie between " + std::to_string(low) + " and " + std::to_string(high);
  }
  void write_down(AskedKeys* asked) {
    asked_ = asked;
    keys_ = asked == nullptr ? nullptr : &asked->of(path_);
  }
  const nlohmann::json* j_;
  std::string path_;
  std::string_view hint_;  ///< of static storage
  AskedKeys* asked_ = nullptr;
  AskedKeys::Keys* keys_ = nullptr;  ///< of this object
};

}  // namespace vlmest::json
