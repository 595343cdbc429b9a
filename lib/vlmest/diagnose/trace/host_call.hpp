// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <vlmest/diagnose/trace/profile_trace.hpp>

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
inline HostCallKind host_call_kind(std::string_view name) {
  using words::has;
  using words::has_any;
  const auto begins = [&](std::string_view word) { return name.starts_with(word); };
  // Intel's runtimes: Unified Runtime and Level Zero.
  if (begins("ur") || begins("ze"))
    return has_any(name, "KernelLaunch", "LaunchKernel") ? HostCallKind::launch : HostCallKind::other;
  if (!begins("cu") && !begins("hip")) return HostCallKind::other;
  if (has(name, "GraphLaunch")) return HostCallKind::graph_launch;
  if (has_any(name, "LaunchKernel", "LaunchCooperativeKernel", "LaunchGrid", "ModuleLaunch") ||
      name.starts_with("cudaLaunch_") || name == "cudaLaunch" || name.starts_with("cuLaunch"))
    return HostCallKind::launch;
  if (has_any(name, "StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "CtxSynchronize",
              "ThreadSynchronize"))
    return HostCallKind::synchronise;
  if (has_any(name, "Memcpy", "Memset")) return HostCallKind::copy;
  if (has_any(name, "Malloc", "MemAlloc", "HostAlloc", "HostRegister", "MemCreate", "MemMap", "MemSetAccess") &&
      !has_any(name, "MemAllocAsync", "MallocAsync"))
    return HostCallKind::allocate;
  if ((has_any(name, "Free", "MemRelease", "MemUnmap")) && !has(name, "FreeAsync")) return HostCallKind::free;
  return HostCallKind::other;
}

/// What a named stretch of host time stands for. torch.profiler calls its steps ProfilerStep#n; torch's DataLoader
/// names its next batch enumerate(DataLoader)#…__next__ (torch/utils/data/dataloader.py). A user's mark is a step where
/// it is called one: "step", "step 3", "train_step_12", "iteration#4".
inline AnnotationKind annotation_kind(std::string_view name) {
  if (name.starts_with("ProfilerStep#")) return AnnotationKind::step;
  if (name.starts_with("enumerate(DataLoader)#") || name.starts_with("enumerate(DataPipe)#"))
    return AnnotationKind::data_loader;
  if (name.starts_with("nn.Module: ")) return AnnotationKind::module;
  for (const std::string_view word : {"step", "train_step", "training_step", "iteration", "iter"})
    if (name.starts_with(word) && name.find_first_not_of("0123456789 #_:", word.size()) == std::string_view::npos)
      return AnnotationKind::step;
  return AnnotationKind::other;
}

}  // namespace vlmest::diagnose
