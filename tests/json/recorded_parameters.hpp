// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/nn/stack/registry.hpp>

#include "config_support.hpp"

/// What tests/data/parameters holds against what a family declares.
namespace vlmest::test {

/// Every weight by its name, as state_dict has it, with its shape; a tied head is the embedding.
inline std::map<std::string, std::string> named_weights(const Vlm& vlm) {
  Builder b;
  const Plan plan;
  Context c{b, plan, stack_of(plan)};
  vlm.family.make_model(c);
  std::map<std::string, std::string> r;
  for (const auto& t : b.graph.tensors) {
    if (t.role != Role::weight || t.alias_of != none) continue;
    const std::string scope = path(b.graph, t.scope);
    r[scope + (scope.empty() ? "" : ".") + t.name] = to_string(t.shape);
  }
  return r;
}

inline nlohmann::json recorded_parameters(const std::string& file) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/parameters/" + file);
  return nlohmann::json::parse(in);
}

/// The weights of an entry by their names; empty where it has its total alone.
inline std::map<std::string, std::string> recorded_weights(const nlohmann::json& entry) {
  std::map<std::string, std::string> r;
  if (entry.contains("parameters"))
    for (const auto& [name, sizes] : entry.at("parameters").items()) {
      Shape s;
      for (const auto& n : sizes) s.push_back(n.get<std::int64_t>());
      r[name] = to_string(s);
    }
  return r;
}

/// Compares each config of the file: its count, and where they are recorded its weights by name and shape. Returns how
/// many were compared by name.
inline int expect_recorded_parameters(const std::string& file) {
  int named = 0;
  for (const auto& e : recorded_parameters(file)) {
    const Vlm vlm = read(e.at("config").dump());
    EXPECT_EQ(parameters(vlm), e.at("total").get<std::int64_t>()) << e.at("name");
    const auto expected = recorded_weights(e);
    if (expected.empty()) continue;
    EXPECT_EQ(named_weights(vlm), expected) << e.at("name");
    ++named;
  }
  return named;
}

}  // namespace vlmest::test
