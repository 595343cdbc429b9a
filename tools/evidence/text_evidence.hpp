// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/memory_summary.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// A log: out-of-memory messages, memory_summary() tables, memory over steps, trouble with numbers. Throws Error where
/// it holds none of these.
Evidence text_evidence(std::string_view text, const std::string& where);
/// Tables of torch.cuda.memory_summary(), or its numbers as JSON.
Evidence summary_evidence(const std::vector<diagnose::MemorySummary>& tables);

}  // namespace vlmest::tool
