// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/read.hpp>
#include <vlmest/nn/stack/registry.hpp>

/// What the tests of config readers share.
namespace vlmest::test {

inline Vlm read(const std::string& text) { return json::hf::read(nlohmann::json::parse(text), "config.json"); }

/// Elements of all weights that the model's __init__ makes; shared ones once.
inline std::int64_t parameters(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  vlm.family.make_model(c);
  Elements n{};
  for (const auto& t : b.graph.tensors)
    if (t.role == Role::weight && t.alias_of == none) n += t.storage;
  return n.value();
}
inline std::int64_t parameters(const std::string& text) { return parameters(read(text)); }

/// Where the reader finds fault with a config.json.
inline std::string refused_at(const std::string& text) {
  try {
    read(text);
  } catch (const Error& e) {
    return e.where;
  }
  return "accepted";
}

}  // namespace vlmest::test
