// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {

/// What the library says, in words of the command line: it calls a choice of the plan "plan.seq", a value of it
/// "plan.attention=sdpa" and one of the layout "layout.stages", where users type --seq, --attention sdpa and --stages.
std::string in_flags(const std::string& text);
Error in_flags(const Error& e);

}  // namespace vlmest::tool
