// SPDX-License-Identifier: Apache-2.0
// Stands for counters.cpp and kernel_trace.cpp where CUPTI was not found: everything else is measured all the same.
#include <bench/harness/counters.hpp>
#include <bench/harness/kernel_trace.hpp>

namespace vlmest::bench {
namespace {

[[noreturn]] void refuse(const char* where) {
  throw Error(where, "this build has no CUPTI", "install the CUDA toolkit's CUPTI and configure again");
}

}  // namespace

std::string cupti_version() { return {}; }

Counters::Counters() { refuse("counters"); }
Counted Counters::measure(const Cost&, int, const std::function<void()>&) const { refuse("counters"); }

KernelTrace::KernelTrace() { refuse("kernel trace"); }
Traced KernelTrace::trace(int, const std::function<void()>&) const { refuse("kernel trace"); }

}  // namespace vlmest::bench
