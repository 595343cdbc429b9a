// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// A profiler's trace, judged as a run on `device`; where none is given, on the shipped device that the trace
/// describes, and without one, by its own times alone.
Evidence trace_evidence(const diagnose::ProfileTrace& trace, std::optional<Device> device);

}  // namespace vlmest::tool
