// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include <bench/harness/kernel_trace.hpp>
#include <bench/harness/statistics.hpp>
#include <cupti.h>

namespace vlmest::bench {
namespace {

struct Record {
  std::uint64_t start_ns, end_ns;
  std::string name;
};

/// CUPTI hands records to plain functions without an argument of ours, on a thread of its own.
struct Records {
  std::mutex lock;
  std::vector<Record> list;
};
Records& records() {
  static Records all;
  return all;
}

constexpr std::array kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                           CUPTI_ACTIVITY_KIND_MEMSET};

void require(CUptiResult r) {
  if (r == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  static_cast<void>(cuptiGetResultString(r, &text));
  throw Error("kernel trace", text ? text : "CUPTI failed",
              r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "another profiler is attached: end it" : "");
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t bytes = 1 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, bytes));
  *size = *buffer ? bytes : 0;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard hold(records().lock);
  const auto keep = [](const auto* record, const char* name) {
    records().list.push_back({record->start, record->end, name ? name : ""});
  };
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      // Newer versions of the record begin as this one does.
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      keep(kernel, kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      keep(reinterpret_cast<const CUpti_ActivityMemcpy5*>(record), "memcpy");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      keep(reinterpret_cast<const CUpti_ActivityMemset4*>(record), "memset");
    }
  }
  std::free(buffer);
}

}  // namespace

KernelTrace::KernelTrace() { require(cuptiActivityRegisterCallbacks(give_buffer, take_buffer)); }

Traced KernelTrace::trace(int calls, const std::function<void()>& work) const {
  for (const auto kind : kinds) require(cuptiActivityEnable(kind));
  {
    const std::lock_guard hold(records().lock);
    records().list.clear();
  }
  std::exception_ptr failed;
  try {
    work();
  } catch (...) {
    failed = std::current_exception();  // recording must end, whatever happened
  }
  for (const auto kind : kinds) static_cast<void>(cuptiActivityDisable(kind));
  require(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  if (failed) std::rethrow_exception(failed);

  const std::lock_guard hold(records().lock);
  std::vector<Record>& list = records().list;
  std::sort(list.begin(), list.end(), [](const Record& a, const Record& b) { return a.start_ns < b.start_ns; });
  const std::size_t each = list.size() / static_cast<std::size_t>(calls);
  if (list.empty() || each * static_cast<std::size_t>(calls) != list.size())
    throw Error("kernel trace",
                std::to_string(list.size()) + " kernels were recorded in " + std::to_string(calls) + " equal calls");
  std::vector<double> busy(static_cast<std::size_t>(calls));
  Traced r;
  for (std::size_t i = 0; i < list.size(); ++i) {
    busy[i / each] += static_cast<double>(list[i].end_ns - list[i].start_ns) * 1e-9;
    if (i < each) r.names.push_back(list[i].name);
  }
  r.busy = {statistics(busy).median};
  r.kernels = static_cast<double>(each);
  return r;
}

}  // namespace vlmest::bench
