// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/trace/name_table.hpp>
#include <vlmest/unit/units.hpp>

/// What a profiler recorded of a run, whichever profiler it was: torch.profiler (json/kineto.hpp) or Nsight Systems
/// (tools/evidence/nsys_sqlite.hpp). Times are integer nanoseconds on the profiler's clock.
namespace vlmest::diagnose {

/// A point of time, or a length of time, in nanoseconds.
using Ns = std::int64_t;

/// What a reader accepts as one: sums and differences of times then stay in 64 bits, and it takes thousands of events
/// of the longest length (13 days) to fill one.
inline constexpr Ns latest_time = Ns{1} << 61, longest_time = Ns{1} << 50;

/// From `begin` up to `end`, which does not belong to it.
struct Interval {
  Ns begin = 0, end = 0;
  constexpr Ns length() const { return end - begin; }
  constexpr auto operator<=>(const Interval&) const = default;
};

/// `correlation` is CUPTI's number, the same for a runtime call and what it put on the device; `op` is the external id
/// of the operator that was running. 0: none is known.
struct KernelEvent {
  Interval time;
  std::int64_t correlation = 0, op = 0;
  NameId name = 0;
  std::int32_t device = 0, stream = 0;
};

enum class CopyKind : std::uint8_t { host_to_device, device_to_host, device_to_device, peer, fill, other };

/// A copy or a fill on the device.
struct CopyEvent {
  Interval time;
  Bytes bytes{};
  std::int64_t correlation = 0, op = 0;
  std::int32_t device = 0, stream = 0;
  CopyKind kind = CopyKind::other;
  bool pageable = false;  ///< host memory that is not page-locked: staged by the driver, and the host waits
};

enum class HostCallKind : std::uint8_t { launch, graph_launch, synchronise, copy, allocate, free, other };

/// A call of the CUDA runtime or driver. `process` tells the ranks apart that one recording holds.
struct HostCall {
  Interval time;
  std::int64_t correlation = 0, thread = 0;
  NameId name = 0;
  HostCallKind kind = HostCallKind::other;
  std::int64_t process = 0;
};

/// One argument of an operator: a tensor's sizes and strides in elements where it is one, a type as the profiler spells
/// it, and the value of a scalar or a list, as text.
struct OpInput {
  std::vector<std::int64_t> sizes, strides;
  NameId type = 0, value = 0;
  bool operator==(const OpInput&) const = default;
};

/// An operator of the framework on the host. `inputs` counts in ProfileTrace::signatures.
struct CpuOp {
  Interval time;
  std::int64_t id = 0, thread = 0;
  NameId name = 0;
  std::int32_t inputs = 0;
};

enum class AnnotationKind : std::uint8_t { step, data_loader, module, profiler, other };

/// A named stretch of host time: a step, a data loader's next batch, a module's forward, the profiler's own work, a
/// user's own name.
struct Annotation {
  Interval time;
  std::int64_t thread = 0;
  NameId name = 0;
  AnnotationKind kind = AnnotationKind::other;
  std::int64_t process = 0;
};

/// A call of the framework's allocator, with its totals afterwards. `bytes` is negative where memory is given back. Of
/// an allocation that failed (`failed`), `bytes` were asked for.
struct MemoryEvent {
  Ns time = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  Bytes allocated{}, reserved{};
  std::int32_t device = -1;  ///< -1: the host
  bool failed = false;
};

/// A device as the trace describes it; 0 where it does not say.
struct TracedDevice {
  std::int32_t id = 0;
  std::string name;
  Bytes memory{};
  std::int32_t multiprocessors = 0;
  std::int32_t sm = 0;  ///< compute capability, 10 * major + minor
};

struct ProfileTrace {
  NameTable names;
  std::vector<std::vector<OpInput>> signatures{{}};  ///< 0: not recorded
  std::vector<KernelEvent> kernels;
  std::vector<CopyEvent> copies;
  std::vector<HostCall> calls;
  std::vector<CpuOp> ops;
  std::vector<Annotation> annotations;
  std::vector<MemoryEvent> memory;
  std::vector<TracedDevice> devices;
  Ns base = 0;  ///< the clock's zero, nanoseconds of Unix time where the trace says
  std::int32_t rank = 0, ranks = 1;
  bool with_shapes = false;       ///< operators have their arguments' sizes
  std::int64_t broken = 0;        ///< events that could not be read and were left out
  std::int64_t other_events = 0;  ///< events of kinds that nothing here is made of
  std::int64_t foreign = 0;       ///< of them, those on accelerators that are not read (MTIA, Gaudi)
  bool truncated = false;         ///< the file ends in the middle: the run was killed while it was written

  bool empty() const {
    return kernels.empty() && copies.empty() && calls.empty() && ops.empty() && annotations.empty();
  }
};

}  // namespace vlmest::diagnose
