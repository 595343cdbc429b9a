// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace vlmest::fuzz {

/// Turns JSON documents into faulty ones that a JSON parser mostly accepts, so that the readers behind it are reached:
/// numbers become 0, negative, huge or fractions, values change their type, keys vanish, appear and move, parts come
/// from other documents, lists grow, values nest; and now and then the text itself is cut or torn.
class Mutator {
 public:
  using Json = nlohmann::json;
  using Random = std::mt19937_64;

  /// `corpus`: documents that keys, words and parts are taken from.
  explicit Mutator(const std::vector<std::string>& corpus) {
    for (const auto& text : corpus) add(text);
  }

  void add(std::string_view text) {
    Json j = Json::parse(text, nullptr, false);
    if (j.is_discarded()) return;
    gather(j);
    documents_.push_back(std::move(j));
  }

  std::string operator()(std::string_view seed, Random& random) const {
    Json j = Json::parse(seed, nullptr, false);
    std::string text(seed);
    if (!j.is_discarded()) {
      for (std::uint64_t n = 1 + below(random, 4); n > 0; --n) change(j, random);
      text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    if (j.is_discarded() || below(random, 16) == 0) tear(text, random);
    return text;
  }

 private:
  static std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }
  template <class T>
  static T pick(const std::vector<T>& from, Random& random, T otherwise) {
    return from.empty() ? otherwise : from[below(random, from.size())];
  }

  void gather(const Json& j) {
    if (j.is_string()) words_.push_back(j.get<std::string>());
    if (j.is_object())
      for (const auto& [key, value] : j.items()) keys_.push_back(key);
    if (j.is_structured())
      for (const auto& value : j) gather(value);
  }
  static void all(Json& j, std::vector<Json*>& nodes) {
    nodes.push_back(&j);
    if (j.is_structured())
      for (auto& value : j) all(value, nodes);
  }
  static Json& any(Json& j, Random& random) {
    std::vector<Json*> nodes;
    all(j, nodes);
    return *nodes[below(random, nodes.size())];
  }

  static Json number(const Json& old, Random& random) {
    static const std::vector<Json> odd{0,
                                       -1,
                                       1,
                                       2,
                                       3,
                                       5,
                                       7,
                                       255,
                                       1023,
                                       1024,
                                       1025,
                                       65535,
                                       65536,
                                       65537,
                                       0.5,
                                       -0.0,
                                       1e308,
                                       -1e-308,
                                       1e19,
                                       INT32_MAX,
                                       INT64_MAX,
                                       INT64_MIN,
                                       UINT64_MAX,
                                       std::int64_t{1} << 31,
                                       std::int64_t{1} << 32};
    switch (below(random, 6)) {
      case 0: return old.is_number_integer() ? Json(old.get<std::int64_t>() / 2) : Json(1);
      case 1: return std::int64_t{1} << below(random, 63);
      case 2: return (std::int64_t{1} << below(random, 62)) + static_cast<std::int64_t>(below(random, 3)) - 1;
      case 3: return static_cast<std::int64_t>(below(random, 200));
      default: return odd[below(random, odd.size())];
    }
  }
  Json value(const Json& old, Random& random) const {
    switch (below(random, 9)) {
      case 0: return nullptr;
      case 1: return below(random, 2) == 0;
      case 2: return pick(words_, random, std::string("gelu"));
      case 3: return Json::array();
      case 4: return Json::object();
      case 5: return Json::array({old, old});
      case 6: return Json{{pick(keys_, random, std::string("model_type")), old}};
      case 7: return std::string(below(random, 40), 'x');
      default: return number(old, random);
    }
  }
  static void remove(Json& j, Random& random) {
    if (j.is_structured() && !j.empty()) {
      auto at = j.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(below(random, j.size())));
      j.erase(at);
    }
  }
  void put(Json& j, Json v, Random& random) const {
    if (j.is_object())
      j[pick(keys_, random, std::string("hidden_size"))] = std::move(v);
    else if (j.is_array())
      j.push_back(std::move(v));
    else
      j = std::move(v);
  }
  Json part(Random& random) const {
    if (documents_.empty()) return 1;
    Json other = documents_[below(random, documents_.size())];
    return any(other, random);
  }

  void change(Json& j, Random& random) const {
    Json& at = any(j, random);
    switch (below(random, 10)) {
      case 0: remove(at, random); break;
      case 1: at = value(at, random); break;
      case 2: put(at, value(at, random), random); break;
      case 3: put(at, part(random), random); break;
      case 4: at = part(random); break;
      case 5: {
        Json other = any(j, random);
        any(j, random) = std::move(other);
        break;
      }
      case 6:
        if (at.is_array() && !at.empty())
          for (std::uint64_t n = below(random, 64); n > 0; --n) at.push_back(Json(at[below(random, at.size())]));
        break;
      case 7:
        if (below(random, 8) == 0)
          for (std::uint64_t n = below(random, 100); n > 0; --n) at = Json::array({std::move(at)});
        break;
      default: {  // numbers are what dimensions are made of
        std::vector<Json*> nodes, numbers;
        all(j, nodes);
        for (auto* n : nodes)
          if (n->is_number()) numbers.push_back(n);
        if (!numbers.empty()) {
          Json& n = *numbers[below(random, numbers.size())];
          n = number(n, random);
        }
      }
    }
  }

  void tear(std::string& text, Random& random) const {
    if (text.empty()) text = "{}";
    const auto at = below(random, text.size());
    switch (below(random, 6)) {
      case 0: text.resize(at); break;
      case 1: text[at] = static_cast<char>(below(random, 256)); break;
      case 2: text.insert(at, "\"" + pick(keys_, random, std::string("model_type")) + "\":"); break;
      case 3: text.insert(at, text.substr(at, below(random, 200))); break;  // a key twice, among other things
      case 4: text.insert(at, std::string(below(random, 5000), below(random, 2) == 0 ? '[' : '{')); break;
      default: text.erase(at, 1 + below(random, 8)); break;
    }
  }

  std::vector<Json> documents_;
  std::vector<std::string> keys_, words_;
};

}  // namespace vlmest::fuzz
