// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/trace/host_call.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE HostCallKind host_call_kind(std::string_view name) {
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

VLMEST_INLINE AnnotationKind annotation_kind(std::string_view name) {
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
