// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <numeric>
#include <source_location>

#include <bench/harness/counters.hpp>
#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::bench {
namespace {

/// CUPTI 13.0, cupti_result.h: the failures that say why this machine's counters cannot be read.
std::string hint(CUptiResult r) {
  switch (r) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "counters need root, CAP_SYS_ADMIN, or the driver's option NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED: return "a virtual GPU does not show its counters here";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED: return "confidential computing hides the counters";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED: return "a part of a GPU (MIG) does not show its counters";
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED: return "the Windows Subsystem for Linux does not show the counters";
    case CUPTI_ERROR_HARDWARE_BUSY: return "another profiler uses the counters: end it";
    case CUPTI_ERROR_INVALID_METRIC_NAME: return "this chip has no such counter";
    default: return {};
  }
}

void check(CUptiResult r, std::source_location where = std::source_location::current()) {
  if (r == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  static_cast<void>(cuptiGetResultString(r, &text));
  throw Error("counters",
              std::string(text ? text : "an unknown failure of CUPTI") + " (" + std::to_string(static_cast<int>(r)) +
                  ", " + cuda::spelt(where) + ")",
              hint(r));
}

/// CUPTI's parameters begin with their own size.
template <class Parameters>
Parameters sized(std::size_t size) {
  Parameters p{};
  p.structSize = size;
  return p;
}

}  // namespace

std::string cupti_version() { return std::to_string(CUPTI_API_VERSION); }

std::vector<const char*> counter_names(const Cost& cost) {
  std::vector<const char*> r(CounterNames::always.begin(), CounterNames::always.end());
  if (cost.engine == Engine::tensor_core)
    for (const char* tensor : tensor_counters(cost.dtype)) r.push_back(tensor);
  return r;
}

struct CounterConfig::Host {
  CUpti_Profiler_Host_Object* object = nullptr;
  ~Host() {
    auto p = sized<CUpti_Profiler_Host_Deinitialize_Params>(CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
    p.pHostObject = object;
    if (object) static_cast<void>(cuptiProfilerHostDeinitialize(&p));
  }
};

CounterConfig::CounterConfig(const std::string& chip, std::vector<const char*> names,
                             const std::vector<std::uint8_t>& available)
    : names_(std::move(names)), host_(std::make_unique<Host>()) {
  auto start = sized<CUpti_Profiler_Host_Initialize_Params>(CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
  start.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  start.pChipName = chip.c_str();
  start.pCounterAvailabilityImage = available.empty() ? nullptr : available.data();
  check(cuptiProfilerHostInitialize(&start));
  host_->object = start.pHostObject;

  auto add =
      sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
  add.pHostObject = host_->object;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  check(cuptiProfilerHostConfigAddMetrics(&add));

  auto size =
      sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
  size.pHostObject = host_->object;
  check(cuptiProfilerHostGetConfigImageSize(&size));
  image_.resize(size.configImageSize);

  auto image = sized<CUpti_Profiler_Host_GetConfigImage_Params>(CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
  image.pHostObject = host_->object;
  image.configImageSize = image_.size();
  image.pConfigImage = image_.data();
  check(cuptiProfilerHostGetConfigImage(&image));

  auto passes = sized<CUpti_Profiler_Host_GetNumOfPasses_Params>(CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
  passes.configImageSize = image_.size();
  passes.pConfigImage = image_.data();
  check(cuptiProfilerHostGetNumOfPasses(&passes));
  passes_ = passes.numOfPasses;
}
CounterConfig::~CounterConfig() = default;

std::vector<double> CounterConfig::values(const std::vector<std::uint8_t>& data) const {
  std::vector<const char*> names = names_;
  std::vector<double> r(names.size());
  auto p =
      sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
  p.pHostObject = host_->object;
  p.pCounterDataImage = data.data();
  p.counterDataImageSize = data.size();
  p.rangeIndex = 0;
  p.ppMetricNames = names.data();
  p.numMetrics = names.size();
  p.pMetricValues = r.data();
  check(cuptiProfilerHostEvaluateToGpuValues(&p));
  for (std::size_t i = 0; i < r.size(); ++i)
    if (!std::isfinite(r[i]) || r[i] < 0)
      throw Error("counters", std::string(names[i]) + " gave no number", "another profiler may hold the counters");
  return r;
}

namespace {

/// Asked for at run time: a program that is linked with the driver does not start where there is none.
CUcontext current_context() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cuda::check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &found, 12000, cudaEnableDefault, &result));
  CUcontext context = nullptr;
  if (result != cudaDriverEntryPointSuccess || !found ||
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(found)(&context) != CUDA_SUCCESS || !context)
    throw Error("counters", "there is no CUDA context");
  return context;
}

/// CUPTI's range profiler on the current context, for as long as this lives: it slows launches and may hold the clock.
class RangeProfiler {
 public:
  explicit RangeProfiler(CounterConfig& config) {
    auto enable = sized<CUpti_RangeProfiler_Enable_Params>(CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
    enable.ctx = current_context();
    check(cuptiRangeProfilerEnable(&enable));
    object_ = enable.pRangeProfilerObject;
    try {
      set_up(config);
    } catch (...) {
      disable();
      throw;
    }
  }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;
  ~RangeProfiler() { disable(); }

  void run(const std::function<void()>& work) {
    auto start = parameters<CUpti_RangeProfiler_Start_Params>(CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
    check(cuptiRangeProfilerStart(&start));
    auto push = parameters<CUpti_RangeProfiler_PushRange_Params>(CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE);
    push.pRangeName = "calls";
    check(cuptiRangeProfilerPushRange(&push));
    work();
    auto pop = parameters<CUpti_RangeProfiler_PopRange_Params>(CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
    check(cuptiRangeProfilerPopRange(&pop));
    auto stop = parameters<CUpti_RangeProfiler_Stop_Params>(CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
    check(cuptiRangeProfilerStop(&stop));
    if (!stop.isAllPassSubmitted) throw Error("counters", "one pass was not enough to read all counters");
    auto decode = parameters<CUpti_RangeProfiler_DecodeData_Params>(CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE);
    check(cuptiRangeProfilerDecodeData(&decode));
    if (decode.numOfRangeDropped > 0) throw Error("counters", "the range was dropped");
  }

  const std::vector<std::uint8_t>& data() const { return data_; }

 private:
  template <class Parameters>
  Parameters parameters(std::size_t size) const {
    auto p = sized<Parameters>(size);
    p.pRangeProfilerObject = object_;
    return p;
  }

  void set_up(CounterConfig& config) {
    std::vector<const char*> names = config.names();
    auto size = parameters<CUpti_RangeProfiler_GetCounterDataSize_Params>(
        CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    check(cuptiRangeProfilerGetCounterDataSize(&size));
    data_.resize(size.counterDataSize);
    auto clear = parameters<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>(
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    clear.counterDataSize = data_.size();
    clear.pCounterData = data_.data();
    check(cuptiRangeProfilerCounterDataImageInitialize(&clear));
    auto set = parameters<CUpti_RangeProfiler_SetConfig_Params>(CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
    set.configSize = config.image().size();
    set.pConfig = config.image().data();
    set.counterDataImageSize = data_.size();
    set.pCounterDataImage = data_.data();
    set.range = CUPTI_UserRange;
    set.replayMode = CUPTI_UserReplay;  // one pass, so that nothing is replayed
    set.maxRangesPerPass = 1;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    set.passIndex = 0;
    set.targetNestingLevel = 1;
    check(cuptiRangeProfilerSetConfig(&set));
  }

  void disable() {
    auto p = parameters<CUpti_RangeProfiler_Disable_Params>(CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);
    static_cast<void>(cuptiRangeProfilerDisable(&p));
  }

  CUpti_RangeProfiler_Object* object_ = nullptr;
  std::vector<std::uint8_t> data_;
};

}  // namespace

Counters::Counters() {
  auto start = sized<CUpti_Profiler_Initialize_Params>(CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
  check(cuptiProfilerInitialize(&start));
  int device = 0;
  cuda::check(cudaGetDevice(&device));
  auto supported = sized<CUpti_Profiler_DeviceSupported_Params>(CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE);
  supported.cuDevice = device;
  supported.api = CUPTI_PROFILER_RANGE_PROFILING;
  check(cuptiProfilerDeviceSupported(&supported));
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) {
    const auto off = [](CUpti_Profiler_Support_Level l) { return l != CUPTI_PROFILER_CONFIGURATION_SUPPORTED; };
    throw Error("counters",
                std::string("CUPTI cannot read this device's counters") +
                    (off(supported.architecture)          ? ": its architecture is too old"
                     : off(supported.vGpu)                ? ": it is a virtual GPU"
                     : off(supported.confidentialCompute) ? ": confidential computing is on"
                     : off(supported.cmp)                 ? ": it is a mining processor"
                     : off(supported.wsl)                 ? ": this is the Windows Subsystem for Linux"
                     : off(supported.sli)                 ? ": SLI is on"
                                                          : ""),
                "times and memory are measured without counters");
  }
  auto chip = sized<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
  chip.deviceIndex = static_cast<std::size_t>(device);
  check(cuptiDeviceGetChipName(&chip));
  chip_ = chip.pChipName;

  // The first call that tells whether this process may read counters at all.
  auto available =
      sized<CUpti_Profiler_GetCounterAvailability_Params>(CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE);
  check(cuptiProfilerGetCounterAvailability(&available));
  available_.resize(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = available_.data();
  check(cuptiProfilerGetCounterAvailability(&available));
}

Counted Counters::measure(const Cost& cost, int calls, const std::function<void()>& work) const {
  CounterConfig config(chip_, counter_names(cost), available_);
  if (config.passes() != 1)
    throw Error("counters", "this chip needs " + std::to_string(config.passes()) + " passes for them",
                "one is supported: nothing is replayed");
  RangeProfiler profiler(config);
  profiler.run(work);
  const std::vector<double> v = config.values(profiler.data());
  const double each = 1.0 / calls;
  Counted r{
      .dram_read = v[0] * each, .dram_written = v[1] * each, .l2 = v[2] * each, .duration_us = v[3] * each * 1e-3};
  if (v.size() > CounterNames::always.size())
    r.tensor_ops = std::accumulate(v.begin() + CounterNames::always.size(), v.end(), 0.0) * each;
  return r;
}

}  // namespace vlmest::bench
