// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <vlmest/analysis/params.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/stack/registry.hpp>

/// The parameters of a model by name, from the library and from what transformers builds.
namespace golden {

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(in);
}

struct Parameter {
  std::string shape;  ///< "4096x1024"
  std::int64_t elements = 0;
};

struct Model {
  std::map<std::string, Parameter> tensors;
  vlmest::Parameters totals;
};

inline Model build(const nlohmann::json& config, const std::string& name) {
  const vlmest::Vlm vlm = vlmest::json::read_model(config, name);
  vlmest::Builder b;
  const vlmest::Plan plan;
  vlmest::Context c{b, plan, stack_of(plan)};
  vlm.family.make_model(c);
  Model m;
  for (const auto& t : b.graph.tensors) {
    if (t.role != vlmest::Role::weight || t.alias_of != vlmest::none) continue;
    const std::string scope = path(b.graph, t.scope);
    const std::string full = scope.empty() ? t.name : scope + "." + t.name;
    if (!m.tensors.emplace(full, Parameter{to_string(t.shape), numel(t.shape).value()}).second)
      throw std::runtime_error(name + ": two parameters are called " + full);
  }
  m.totals = vlmest::parameters(b.graph);
  return m;
}
inline std::int64_t count(const nlohmann::json& config, const std::string& name) {
  return build(config, name).totals.total().value();
}

/// Sum of the parameters at or below a module path.
inline std::int64_t below(const Model& m, const std::string& module) {
  std::int64_t n = 0;
  for (const auto& [name, p] : m.tensors)
    if (name == module || name.starts_with(module + ".")) n += p.elements;
  return n;
}

/// Every name of a path with sets of numbers in it: "layers.{0-2,5}.weight".
inline std::vector<std::string> expand(const std::string& pattern) {
  const auto open = pattern.find('{'), close = pattern.find('}');
  if (open == std::string::npos) return {pattern};
  std::vector<std::string> r;
  std::string set = pattern.substr(open + 1, close - open - 1) + ",";
  for (std::size_t comma; (comma = set.find(',')) != std::string::npos; set.erase(0, comma + 1)) {
    const std::string part = set.substr(0, comma);
    const auto dash = part.find('-');
    const int first = std::stoi(part), last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
    for (int i = first; i <= last; ++i)
      for (auto& s : expand(pattern.substr(0, open) + std::to_string(i) + pattern.substr(close + 1))) r.push_back(s);
  }
  return r;
}

/// tensors/*.txt: one line for the tensors of a shape whose names differ in layer numbers only, "PATH SHAPE". A path
/// that begins with "3|" repeats the first three elements of the path above.
inline std::map<std::string, std::string> read_tensors(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::map<std::string, std::string> r;
  std::vector<std::string> above;
  for (std::string name, shape; in >> name >> shape;) {
    std::size_t kept = 0;
    if (const auto bar = name.find('|'); bar != std::string::npos) {
      kept = std::stoul(name.substr(0, bar));
      name.erase(0, bar + 1);
    }
    above.resize(kept);
    for (std::size_t dot; (dot = name.find('.')) != std::string::npos; name.erase(0, dot + 1))
      above.push_back(name.substr(0, dot));
    above.push_back(name);
    std::string pattern;
    for (const auto& e : above) pattern += (pattern.empty() ? "" : ".") + e;
    for (auto& n : expand(pattern)) r[n] = shape;
  }
  return r;
}

}  // namespace golden
