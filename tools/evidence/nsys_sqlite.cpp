// SPDX-License-Identifier: Apache-2.0
#include "evidence/nsys_sqlite.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <vlmest/diagnose/evidence/trace/host_call.hpp>
#include <vlmest/unit/error.hpp>

#include "evidence/sqlite_file.hpp"

namespace vlmest::tool {
namespace {

using namespace diagnose;

std::int32_t small(std::int64_t n) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(n, INT32_MIN, INT32_MAX));
}

/// globalTid and globalPid: 8 bits of hardware, 8 of a virtual machine, 24 of a process, 24 of a thread (user guide of
/// Nsight Systems, "SQLite schema reference"). 0 where it is not recorded.
std::int64_t process_of(std::optional<std::int64_t> global) { return global ? *global >> 24 & 0xffffff : 0; }

/// Texts of the table StringIds, by their numbers.
using Strings = std::unordered_map<std::int64_t, NameId>;

class Reader {
 public:
  Reader(SqliteFile& file, ProfileTrace& trace) : file_(file), t_(trace) {}

  void read() {
    strings();
    kernels();
    copies();
    calls();
    ranges();
    allocations();
    devices();
    if (!processes_known_) forget_processes();
  }

 private:
  /// Start and end of a row, its first two columns; a row without them is counted as broken.
  std::optional<Interval> time(const SqliteRow& r) {
    const auto start = r.integer(0), end = r.integer(1);
    if (start && end && *start >= -latest_time && *start <= latest_time && *end >= *start && *end <= latest_time &&
        *end - *start <= longest_time)
      return Interval{*start, *end};
    ++t_.broken;
    return std::nullopt;
  }
  static std::int64_t integer(const SqliteRow& r, int column) { return r.integer(column).value_or(0); }
  NameId named(std::int64_t id) const {
    const auto known = strings_.find(id);
    return known == strings_.end() ? 0 : known->second;
  }

  void strings() {
    file_.each("StringIds", {"id", "value"}, 2, [&](const SqliteRow& r) {
      const auto id = r.integer(0);
      const auto text = r.text(1);
      if (id && text) strings_.emplace(*id, t_.names.intern(*text));
    });
  }

  /// CUPTI counts calls in each process anew: ranks in one report have the same numbers.
  std::int64_t correlation(const SqliteRow& r, int column, std::optional<std::int64_t> global) {
    processes_known_ = processes_known_ && global.has_value();
    const auto n = r.integer(column).value_or(0);
    return n <= 0 || n > UINT32_MAX ? n : process_of(global) << 32 | n;
  }
  /// Where rows do not tell their process, all are of one.
  void forget_processes() {
    const auto forget = [](auto& list) {
      for (auto& e : list)
        if (e.correlation > 0) e.correlation &= UINT32_MAX;
    };
    forget(t_.kernels);
    forget(t_.copies);
    forget(t_.calls);
    for (auto& c : t_.calls) c.process = 0;
    for (auto& a : t_.annotations) a.process = 0;
  }

  void kernels() {
    file_.each("CUPTI_ACTIVITY_KIND_KERNEL",
               {"start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName", "globalPid"}, 2,
               [&](const SqliteRow& r) {
                 const auto at = time(r);
                 if (!at) return;
                 const NameId full = named(integer(r, 5));
                 t_.kernels.push_back({.time = *at,
                                       .correlation = correlation(r, 4, r.integer(7)),
                                       .name = full != 0 ? full : named(integer(r, 6)),
                                       .device = small(integer(r, 2)),
                                       .stream = small(integer(r, 3))});
               });
    // With --cuda-graph-trace=graph a replayed graph is one row, and its kernels have none.
    file_.each("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
               {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"}, 2, [&](const SqliteRow& r) {
                 if (const auto at = time(r))
                   t_.kernels.push_back({.time = *at,
                                         .correlation = correlation(r, 4, r.integer(5)),
                                         .name = t_.names.intern("CUDA graph"),
                                         .device = small(integer(r, 2)),
                                         .stream = small(integer(r, 3))});
               });
  }

  void copies() {
    // Which numbers stand for page-locked memory and which do not differs between exporters; the file says.
    std::unordered_map<std::int64_t, bool> pageable;
    file_.each("ENUM_CUDA_MEM_KIND", {"id", "label", "name"}, 1, [&](const SqliteRow& r) {
      const std::string_view label = r.text(1).value_or(r.text(2).value_or(""));
      pageable.emplace(integer(r, 0), label.find("ageable") != label.npos || label.find("PAGEABLE") != label.npos);
    });
    const auto is_pageable = [&](std::int64_t kind) {
      const auto known = pageable.find(kind);
      return known != pageable.end() && known->second;
    };
    file_.each("CUPTI_ACTIVITY_KIND_MEMCPY",
               {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcKind", "dstKind",
                "globalPid"},
               2, [&](const SqliteRow& r) {
                 const auto at = time(r);
                 if (!at) return;
                 const auto kind = r.integer(6).value_or(0);  // CUpti_ActivityMemcpyKind
                 const bool host = is_pageable(r.integer(7).value_or(-1)) || is_pageable(r.integer(8).value_or(-1));
                 t_.copies.push_back({.time = *at,
                                      .bytes = Bytes(std::max<std::int64_t>(0, integer(r, 5))),
                                      .correlation = correlation(r, 4, r.integer(9)),
                                      .device = small(integer(r, 2)),
                                      .stream = small(integer(r, 3)),
                                      .kind = kind == 1    ? CopyKind::host_to_device
                                              : kind == 2  ? CopyKind::device_to_host
                                              : kind == 8  ? CopyKind::device_to_device
                                              : kind == 10 ? CopyKind::peer
                                                           : CopyKind::other,
                                      .pageable = host});
               });
    file_.each("CUPTI_ACTIVITY_KIND_MEMSET",
               {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "globalPid"}, 2,
               [&](const SqliteRow& r) {
                 if (const auto at = time(r))
                   t_.copies.push_back({.time = *at,
                                        .bytes = Bytes(std::max<std::int64_t>(0, integer(r, 5))),
                                        .correlation = correlation(r, 4, r.integer(6)),
                                        .device = small(integer(r, 2)),
                                        .stream = small(integer(r, 3)),
                                        .kind = CopyKind::fill});
               });
  }

  void calls() {
    file_.each("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"}, 2,
               [&](const SqliteRow& r) {
                 const auto at = time(r);
                 if (!at) return;
                 const NameId name = named(integer(r, 4));
                 const auto global = r.integer(2);
                 t_.calls.push_back({.time = *at,
                                     .correlation = correlation(r, 3, global),
                                     .thread = global.value_or(0),
                                     .name = name,
                                     .kind = host_call_kind(t_.names[name]),
                                     .process = process_of(global)});
               });
  }

  /// Ranges of a thread (eventType 59) and of a process (60); their text stands in the row or in StringIds.
  void ranges() {
    file_.each("NVTX_EVENTS", {"start", "end", "globalTid", "eventType", "text", "textId"}, 2, [&](const SqliteRow& r) {
      const auto type = r.integer(3).value_or(59);
      if ((type != 59 && type != 60) || !r.integer(1)) {
        ++t_.other_events;
        return;
      }
      const auto at = time(r);
      if (!at) return;
      const auto text = r.text(4);
      const NameId name = text ? t_.names.intern(*text) : named(integer(r, 5));
      t_.annotations.push_back({.time = *at,
                                .thread = integer(r, 2),
                                .name = name,
                                .kind = annotation_kind(t_.names[name]),
                                .process = process_of(r.integer(2))});
    });
  }

  /// cudaMalloc's segments, not the framework's blocks: only with --cuda-memory-usage=true.
  void allocations() {
    file_.each("CUDA_GPU_MEMORY_USAGE_EVENTS", {"start", "bytes", "memoryOperationType", "deviceId", "address"}, 3,
               [&](const SqliteRow& r) {
                 const auto start = r.integer(0), bytes = r.integer(1), kind = r.integer(2);
                 if (!start || !bytes || !kind || *start < -latest_time || *start > latest_time || *bytes < 0) {
                   ++t_.broken;
                   return;
                 }
                 if (*kind == 0 || *kind == 1)
                   t_.memory.push_back({.time = *start,
                                        .address = integer(r, 4),
                                        .bytes = *kind == 0 ? *bytes : -*bytes,
                                        .device = small(integer(r, 3))});
               });
  }

  void devices() {
    file_.each("TARGET_INFO_GPU", {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"}, 1,
               [&](const SqliteRow& r) {
                 if (t_.devices.size() >= 1024) return;
                 const auto major = std::clamp<std::int64_t>(integer(r, 4), 0, 1000),
                            minor = std::clamp<std::int64_t>(integer(r, 5), 0, 9);
                 t_.devices.push_back({.id = small(integer(r, 0)),
                                       .name = std::string(r.text(1).value_or("")),
                                       .memory = Bytes(std::max<std::int64_t>(0, integer(r, 2))),
                                       .multiprocessors = small(integer(r, 3)),
                                       .sm = static_cast<std::int32_t>(10 * major + minor)});
               });
  }

  SqliteFile& file_;
  ProfileTrace& t_;
  Strings strings_;
  bool processes_known_ = true;  ///< of every kernel, copy and call
};

}  // namespace

ProfileTrace read_nsys_sqlite(const std::string& path) {
  SqliteFile file(path);
  bool any = false;
  for (const char* table :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "TARGET_INFO_GPU"})
    any = any || file.has(table);
  if (!any)
    throw Error(path, "holds no table of Nsight Systems",
                "export a report with: nsys export --type sqlite report.nsys-rep");
  ProfileTrace t;
  Reader(file, t).read();
  return t;
}

}  // namespace vlmest::tool
