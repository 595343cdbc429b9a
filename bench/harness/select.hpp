// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <bench/harness/filter.hpp>
#include <bench/harness/suite.hpp>

#include <vlmest/json/parse.hpp>

namespace vlmest::bench {

/// What the command line asks for.
struct Selection {
  std::vector<std::string> ops;      ///< OP or OP/VARIANT; empty: all
  std::optional<std::string> list;   ///< text of an op list, instead of a suite
  std::string list_name = "points";  ///< for messages
  Suite suite = Suite::quick;
  std::string filter;  ///< a regular expression that a point's name must contain
  bool cold = false, hot = false;
  std::uint64_t seed = heldout_seed;
};

/// The points of an op list: an array of objects, or one object. Throws Error where it is none, or an op is not known.
inline std::vector<Point> read_points(const std::string& text, const std::string& where) {
  static_cast<void>(json::parse(text, where));  // for its messages: line, column, depth
  OpJson list = OpJson::parse(text);
  if (!list.is_array()) list = OpJson::array({list});
  std::vector<Point> r;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    r.push_back(make_point(list[i], at, {}, Cache::cold));
    // A bad size is told before anything runs.
    if (!is_launch(r.back())) static_cast<void>(json::read_op(nlohmann::json(r.back().op), at));
  }
  return r;
}

/// The points to measure, each once, in order. Throws Error for what is not known, and where nothing is left.
inline std::vector<Point> select(const Selection& s) {
  std::vector<Choice> choices;
  for (const std::string& word : s.ops) choices.push_back(read_choice(word));
  const std::regex filter = read_filter(s.filter);
  std::vector<Point> r;
  std::set<std::string> seen;
  const auto take = [&](Point p) {
    const std::string n = name(p);
    if (std::regex_search(n, filter) && seen.insert(n).second) r.push_back(std::move(p));
  };
  const auto in_caches = [&](Point p) {
    if (!s.cold && !s.hot) return take(std::move(p));
    for (const Cache c : {Cache::cold, Cache::hot})
      if (c == Cache::cold ? s.cold : s.hot) {
        p.cache = c;
        take(p);
      }
  };
  for (Point& p : s.list ? read_points(*s.list, s.list_name) : points(s.suite, s.seed)) {
    if (choices.empty()) in_caches(std::move(p));
    for (const Choice& c : choices)
      if (c.op == op_name(p)) {
        Point chosen = p;
        if (!c.variant.empty()) chosen.variant = c.variant;
        in_caches(std::move(chosen));
      }
  }
  if (r.empty()) throw Error("bench", "no point is left to measure", "'vlmest bench --suite quick --list' shows names");
  return r;
}

}  // namespace vlmest::bench
