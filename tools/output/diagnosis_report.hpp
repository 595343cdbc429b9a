// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "diagnosis.hpp"

namespace vlmest::tool {

/// As docs/reference/diagnosis.schema.json describes it, with `top` hypotheses and every action.
nlohmann::ordered_json to_json(const Diagnosis& d, std::size_t top);
/// With `top` hypotheses and the first `actions` actions.
std::string text(const Diagnosis& d, std::size_t top, std::size_t actions);
std::string markdown(const Diagnosis& d, std::size_t top, std::size_t actions);
/// Which flags act on nothing without a model, in words; empty where all act.
std::string unused_words(const Diagnosis& d);
/// Every action, a line each.
std::string csv(const Diagnosis& d);

}  // namespace vlmest::tool
