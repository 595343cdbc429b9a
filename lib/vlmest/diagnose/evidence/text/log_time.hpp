// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace vlmest::diagnose {

/// The first time stamp within the first 120 characters of a line, "2025-09-25 10:53:36,123", "2025/09/25 10:53:36.1",
/// "2025-09-25T10:53:36Z", "09-25 10:53:36" or "10:53:36", as seconds: from 1970 with a year, from the year's beginning
/// with a month, from midnight without. Time zones are not looked at: a log's times are compared with each other.
std::optional<double> log_time(std::string_view line);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_time.hpp>
#endif
