// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

/// Words of the causes in tests/data/corpus that are others of vlmest's.
namespace corpus {

inline std::string cause_of(const std::string& label) {
  static const std::map<std::string, std::string> ours{{"vision_tokens", "vision_tiles"},
                                                       {"optimizer_states", "optimizer_state"},
                                                       {"dataloader", "host_memory"},
                                                       {"rollout_engine", "engine_budget"},
                                                       {"loading", "weights"},
                                                       {"not_memory", "unknown"}};
  const auto other = ours.find(label);
  return other == ours.end() ? label : other->second;
}

}  // namespace corpus
