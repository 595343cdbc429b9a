// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 of two GPUs, the first of which fills by 1 GiB at each question. FAKE_NVML=no-driver, no-gpu or
// old says what is wrong with it.
#include <cstdlib>
#include <string_view>

namespace {

constexpr unsigned long long gib = 1ULL << 30U;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};

bool is(std::string_view word) {
  const char* const value = std::getenv("FAKE_NVML");
  return value != nullptr && word == value;
}

int gpus[2] = {0, 1};
unsigned long long asked = 0;

unsigned long long used(void* gpu) { return gpu == &gpus[0] ? (10 + asked++) * gib : 2 * gib; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return is("no-driver") ? 9 : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Not Supported"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = is("no-gpu") ? 0 : 3;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  if (index > 1) return 3;
  *gpu = &gpus[index];
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* gpu, Memory* m) {
  const auto u = used(gpu);
  *m = {80 * gib, 79 * gib - u, u + gib};  // the driver's own GiB is in it
  return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void* gpu, MemoryV2* m) {
  if (is("old")) return 25;
  if (m->version != (sizeof(MemoryV2) | 2U << 24U)) return 25;
  const auto u = used(gpu);
  *m = {m->version, 80 * gib, gib, 79 * gib - u, u};
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* gpu, Utilization* u) {
  if (gpu != &gpus[0]) return 3;
  *u = {93, 40};
  return 0;
}
}
