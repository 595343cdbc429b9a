// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/action/action.hpp>
#include <vlmest/diagnose/verdict.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// All that `vlmest diagnose` answers with.
struct Diagnosis {
  std::vector<Evidence> evidence;
  diagnose::Verdict verdict;
  std::vector<diagnose::Action> actions;
  std::vector<diagnose::ReadSetting> read;  ///< settings that were read from the texts
  std::vector<std::string> unused;          ///< flags without a model to be of
};

/// As docs/reference/diagnosis.schema.json describes it, with `top` hypotheses and every action.
nlohmann::ordered_json to_json(const Diagnosis& d, std::size_t top);
/// With `top` hypotheses and the first `actions` actions.
std::string text(const Diagnosis& d, std::size_t top, std::size_t actions);
std::string markdown(const Diagnosis& d, std::size_t top, std::size_t actions);
/// Every action, a line each.
std::string csv(const Diagnosis& d);

}  // namespace vlmest::tool
