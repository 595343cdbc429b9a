// SPDX-License-Identifier: Apache-2.0
#include "nvml.hpp"

#include <cstring>
#include <type_traits>

#include <dlfcn.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {
namespace {

// The part of nvml.h that is called here, with its layout; the symbols' versions (_v2) are NVML's own.
constexpr const char* library_name = "libnvidia-ml.so.1";
constexpr const char* other_way = "without the driver's library follow `nvidia-smi --query-gpu=... --format=csv -l 1`";

}  // namespace

struct Nvml::Functions {
  using Return = int;  // nvmlReturn_t; 0 is NVML_SUCCESS
  using Handle = void*;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
  };
  struct Utilization {
    unsigned gpu, memory;  // percent
  };
  /// NVML_STRUCT_VERSION(Memory, 2)
  static constexpr unsigned memory_v2 = static_cast<unsigned>(sizeof(MemoryV2)) | (2U << 24U);

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, Handle*) = nullptr;
  Return (*memory)(Handle, Memory*) = nullptr;
  Return (*memory_2)(Handle, MemoryV2*) = nullptr;  ///< drivers since 510 have it
  Return (*utilization)(Handle, Utilization*) = nullptr;
  bool ready = false;

  ~Functions() {
    if (ready) shutdown();
  }

  void check(Return r, const char* call) const {
    if (r == 0) return;
    const char* why = error != nullptr ? error(r) : nullptr;
    throw Error("NVML", std::string(call) + " failed: " + (why != nullptr ? why : "error " + std::to_string(r)),
                "see whether nvidia-smi works");
  }

  /// What the driver itself keeps counts as used to the first version, and neither to the second nor to nvidia-smi.
  Return read_memory(Handle gpu, NvmlReading& to) const {
    MemoryV2 m{.version = memory_v2, .total = 0, .reserved = 0, .free = 0, .used = 0};
    Return r = memory_2 != nullptr ? memory_2(gpu, &m) : -1;
    if (r != 0) {
      Memory old{};
      r = memory(gpu, &old);
      m.total = old.total;
      m.used = old.used;
    }
    if (r == 0) {
      to.total = Bytes(m.total);
      to.used = Bytes(m.used);
    }
    return r;
  }
};

void Nvml::Close::operator()(void* library) const { dlclose(library); }

Nvml::Nvml() : library_(dlopen(library_name, RTLD_NOW | RTLD_LOCAL)), functions_(new Functions) {
  if (!library_) {
    const char* why = dlerror();
    throw Error("NVML", std::string("cannot load ") + (why != nullptr ? why : library_name), other_way);
  }
  const auto find = [&](auto& f, const char* name, bool needed = true) {
    void* const symbol = dlsym(library_.get(), name);
    if (symbol == nullptr && needed)
      throw Error("NVML", std::string(library_name) + " has no " + name, "is it NVIDIA's? check the library path");
    std::memcpy(&f, &symbol, sizeof f);  // a pointer to an object becomes one to a function: POSIX allows it, C++ not
  };
  Functions& f = *functions_;
  find(f.init, "nvmlInit_v2");
  find(f.shutdown, "nvmlShutdown");
  find(f.count, "nvmlDeviceGetCount_v2");
  find(f.by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(f.memory, "nvmlDeviceGetMemoryInfo");
  find(f.memory_2, "nvmlDeviceGetMemoryInfo_v2", false);
  find(f.utilization, "nvmlDeviceGetUtilizationRates", false);
  find(f.error, "nvmlErrorString", false);
  f.check(f.init(), "nvmlInit_v2");
  f.ready = true;
}

Nvml::~Nvml() { functions_.reset(); }  // before the library that they are in

std::vector<NvmlReading> Nvml::read() const {
  const Functions& f = *functions_;
  unsigned count = 0;
  f.check(f.count(&count), "nvmlDeviceGetCount_v2");
  std::vector<NvmlReading> r;
  Functions::Return last = 0;
  for (unsigned i = 0; i < count; ++i) {
    NvmlReading gpu{.index = i, .used = {}, .total = {}, .utilization = {}};
    Functions::Handle handle = nullptr;
    last = f.by_index(i, &handle);
    if (last == 0) last = f.read_memory(handle, gpu);
    if (last != 0) continue;  // a GPU of another user's, a lost one, or one without memory of its own
    Functions::Utilization u{};
    if (f.utilization != nullptr && f.utilization(handle, &u) == 0 && u.gpu <= 100) gpu.utilization = u.gpu / 100.0;
    r.push_back(gpu);
  }
  if (r.empty() && count > 0) f.check(last, "nvmlDeviceGetMemoryInfo");
  if (r.empty()) throw Error("NVML", "the driver sees no GPU", "see whether nvidia-smi -L lists one");
  return r;
}

}  // namespace vlmest::tool
