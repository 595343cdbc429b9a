// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

namespace vlmest::diagnose {

namespace words {
inline bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }
template <class... Word>
bool has_any(std::string_view text, Word... word) {
  return (has(text, word) || ...);
}
}  // namespace words

/// What a call of the CUDA runtime or driver does, from its name (CUDA Runtime API and Driver API reference manuals).
/// Nsight Systems appends the version in which a function's form last changed: cudaLaunchKernel_v7000.
HostCallKind host_call_kind(std::string_view name);

/// What a named stretch of host time stands for. torch.profiler calls its steps ProfilerStep#n; torch's DataLoader
/// names its next batch enumerate(DataLoader)#…__next__ (torch/utils/data/dataloader.py). A user's mark is a step where
/// it is called one: "step", "step 3", "train_step_12", "iteration#4".
AnnotationKind annotation_kind(std::string_view name);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/host_call.hpp>
#endif
