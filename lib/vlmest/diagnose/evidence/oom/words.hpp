// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/diagnose/evidence/oom/message.hpp>

/// The words of out-of-memory messages, in lower case and without blanks, quotes and tags.
namespace vlmest::diagnose {

enum class OomField : std::uint8_t {
  begin,  ///< the words that a message begins with: "CUDA out of memory"
  requested,
  total,
  free,
  allocated,
  reserved,
  reserved_unallocated,
  private_pools,
  allowed,
  own_process,
  other,
  process,
  gpu
};

namespace oom_facts {

enum class Side : std::uint8_t { before, after };

/// Words and the side on which their figure stands.
struct Anchor {
  std::string_view words;
  OomField field;
  Side side;
  bool bare = false;        ///< a number without a unit is bytes
  bool async_only = false;  ///< words of other texts as well: only within a message of cudaMallocAsync
};

inline constexpr auto anchors = std::to_array<Anchor>({
    // c10/cuda/CUDACachingAllocator.cpp (CUDA, HIP), its XPU and NPU siblings; also "tried to allocate N bytes" of
    // c10/core/impl/alloc_cpu.cpp
    {"triedtoallocate", OomField::requested, Side::after, true},
    {"totalcapacityof", OomField::total, Side::after},
    {"totalcapactyof", OomField::total, Side::after},  // 2.1
    {"totalcapacity", OomField::total, Side::before},
    {"total;", OomField::total, Side::before},
    {"isfree", OomField::free, Side::before},
    {"free;", OomField::free, Side::before},
    {"free)", OomField::free, Side::before},
    {"isallocatedbypytorch", OomField::allocated, Side::before},
    {"allocatedbypytorch", OomField::allocated, Side::before},
    {"alreadyallocated", OomField::allocated, Side::before},
    {"reservedintotal", OomField::reserved, Side::before},
    {"cached)", OomField::reserved_unallocated, Side::before},  // to 1.3: amount_cached - amount_allocated
    {"isreservedbypytorchbutunallocated", OomField::reserved_unallocated, Side::before},
    {"reservedbypytorchbutunallocated", OomField::reserved_unallocated, Side::before},
    {"allocatedinprivatepools", OomField::private_pools, Side::before},
    {"allowed;", OomField::allowed, Side::before},
    {"thisprocesshas", OomField::own_process, Side::after},
    // c10/cuda/CUDAMallocAsyncAllocator.cpp
    {"currentlyallocated:", OomField::allocated, Side::after},
    {"requested:", OomField::requested, Side::after, false, true},
    {"devicelimit:", OomField::total, Side::after, false, true},
    {"free(accordingtocuda):", OomField::free, Side::after},
    {"memoryfraction):", OomField::allowed, Side::after, false, true},
    // aten/src/ATen/mps/MPSAllocator.mm
    {"mpsallocated:", OomField::allocated, Side::after},
    {"otherallocations:", OomField::other, Side::after},
    {"maxallowed:", OomField::allowed, Side::after},
    // XLA's BFC allocator, numpy, the allocators of PaddlePaddle and ONNX Runtime
    {"tryingtoallocate", OomField::requested, Side::after, true},
    {"outofmemoryallocating", OomField::requested, Side::after, true},
    {"unabletoallocate", OomField::requested, Side::after, true},
    {"cannotallocate", OomField::requested, Side::after, true},
    {"memoryhasbeenallocated", OomField::allocated, Side::before},
    {"availablememoryisonly", OomField::free, Side::after},
    {"bufferofsize", OomField::requested, Side::after, true},
    // MLX: mlx/backend/metal/allocator.cpp; the same words from XLA on TPUs
    {"attemptingtoallocate", OomField::requested, Side::after, true},
    {"maximumallowedbuffersizeof", OomField::allowed, Side::after, true},
    // ggml/src/ggml-cuda/ggml-cuda.cu
    {"buffer:allocating", OomField::requested, Side::after},
    {"devicememoryallocationofsize", OomField::requested, Side::after, true},
    // the kernel's OOM killer
    {"anon-rss:", OomField::own_process, Side::after},
    // ggml_cuda_host_malloc, and others
    {"failedtoallocate", OomField::requested, Side::after},
    // CuPy, PaddlePaddle on hosts, TT-Metal, Habana's PT_DEVMEM, MPSNDArray
    {"outofmemorytoallocate", OomField::requested, Side::after, true},
    {"allocatedsofar:", OomField::allocated, Side::after, true},
    {"failtoallocmemoryof", OomField::requested, Side::after, true},
    {"notenoughspacetoallocate", OomField::requested, Side::after, true},
    {"allocationfailedforsize::", OomField::requested, Side::after, true},
    {"invalidbuffersize:", OomField::requested, Side::after},
    {"memoryobjectallocation:requested", OomField::requested, Side::after, true},
    {"maxallocsizesupportedbydeviceis", OomField::allowed, Side::after, true},
    // vLLM: v1/core/kv_cache_utils.py
    {"kvcacheisneeded", OomField::requested, Side::before},
    {"availablekvcachememory(", OomField::free, Side::after},
});

/// When the words of a beginning are a message without any figure.
enum class Alone : std::uint8_t { never, as_sentence, always };

struct Beginning {
  std::string_view words;
  MemoryBackend backend;
  Alone alone;
  OomReason reason = OomReason::none;
};

inline constexpr auto beginnings = std::to_array<Beginning>({
    {"outofmemoryerror:", MemoryBackend::unknown, Alone::never},
    {"outofmemory.tried", MemoryBackend::unknown, Alone::never},
    {"outofmemory(", MemoryBackend::unknown, Alone::never},
    {"cudaoutofmemory", MemoryBackend::cuda, Alone::as_sentence},
    {"hipoutofmemory", MemoryBackend::hip, Alone::as_sentence},
    {"xpuoutofmemory", MemoryBackend::xpu, Alone::as_sentence},
    {"npuoutofmemory", MemoryBackend::npu, Alone::as_sentence},
    {"mpsbackendoutofmemory", MemoryBackend::mps, Alone::as_sentence},
    {"cudaoutofmemoryoccurred", MemoryBackend::cuda, Alone::always},  // vLLM, warming up its sampler
    {"allocationondevice", MemoryBackend::cuda_malloc_async, Alone::as_sentence},
    {"wouldexceedallowedmemory", MemoryBackend::cuda_malloc_async, Alone::as_sentence},
    {"currentlyallocated:", MemoryBackend::cuda_malloc_async, Alone::never},
    {"cudaerror:outofmemory", MemoryBackend::cuda_driver, Alone::as_sentence},
    {"cudaerror:outofmemoryat", MemoryBackend::cuda_driver, Alone::always},  // vLLM: csrc/cumem_allocator.cpp
    {"hiperror:outofmemory", MemoryBackend::hip, Alone::as_sentence},
    {"cudadrivererror:outofmemory", MemoryBackend::cuda_driver, Alone::as_sentence},
    {"cuda_error_out_of_memory", MemoryBackend::cuda_driver, Alone::always},
    {"cudaerrormemoryallocation", MemoryBackend::cuda_driver, Alone::always},
    {"cudaruntimeerror:outofmemory", MemoryBackend::cuda_driver, Alone::always},     // LMDeploy's TurboMind
    {"runtimeerrorinerror:outofmemory", MemoryBackend::cuda_driver, Alone::always},  // TensorRT-LLM's check()
    {"):outofmemory", MemoryBackend::cuda_driver, Alone::always},           // "in cudaMallocAsync(...): out of memory"
    {"erroroutofmemoryatline", MemoryBackend::cuda_driver, Alone::always},  // bitsandbytes
    {"result_error_out_of_device_memory", MemoryBackend::xpu, Alone::always},  // Unified Runtime and Level Zero
    {"failedtoallocatememoryforrequestedbuffer", MemoryBackend::unknown, Alone::always},  // ONNX Runtime
    {"cublas_status_alloc_failed", MemoryBackend::cublas, Alone::always},
    {"cublas_status_not_initialized", MemoryBackend::cublas, Alone::always},
    {"cusolver_status_alloc_failed", MemoryBackend::cuda_driver, Alone::always},
    {"cufft_alloc_failed", MemoryBackend::cufft, Alone::always},
    {"cudnn_status_alloc_failed", MemoryBackend::cudnn, Alone::always},
    {"findavalidcudnnalgorithm", MemoryBackend::cudnn, Alone::always, OomReason::no_algorithm},
    {"cudafailure2outofmemory", MemoryBackend::nccl, Alone::always},
    {"cudafailureoutofmemory", MemoryBackend::nccl, Alone::always},
    {"defaultcpuallocator:", MemoryBackend::host, Alone::always},
    {"memoryerror:unableto", MemoryBackend::host, Alone::never},
    {"memoryerror", MemoryBackend::host, Alone::as_sentence},  // Python's own
    {"failtoallocmemory", MemoryBackend::host, Alone::never},
    // OpenVINO: src/plugins/intel_gpu/src/runtime/ocl/ocl_engine.cpp, check_allocatable
    {"exceededmaxsizeofmemoryobjectallocation", MemoryBackend::xpu, Alone::never},
    {"invalidbuffersize:", MemoryBackend::mps, Alone::never},
    {"std::bad_alloc", MemoryBackend::host, Alone::always},
    {"outofmemory:killedprocess", MemoryBackend::host, Alone::always, OomReason::killed},
    {"oom_killevent", MemoryBackend::host, Alone::always, OomReason::killed},  // Slurm
    {"oom-killevent", MemoryBackend::host, Alone::always, OomReason::killed},
    {"oomkilled", MemoryBackend::host, Alone::always, OomReason::killed},               // Kubernetes, Slurm
    {"noderunninglowonmemory", MemoryBackend::host, Alone::always, OomReason::killed},  // Ray
    {"killedduetomemorypressure", MemoryBackend::host, Alone::always, OomReason::killed},
    {"workersareoutofsharedmemory", MemoryBackend::host, Alone::always, OomReason::shared_memory},
    // torch: "insufficient shared memory (shm)", "unable to allocate shared memory(shm) for file"
    {"sharedmemory(shm)", MemoryBackend::host, Alone::always, OomReason::shared_memory},
    {"host_malloc:failedtoallocate", MemoryBackend::host, Alone::never},
    {"cannotallocatememory", MemoryBackend::host, Alone::always},
    {"resource_exhausted", MemoryBackend::jax, Alone::always},
    {"oomwhenallocatingtensor", MemoryBackend::jax, Alone::always},
    {"cudamallocfailed:outofmemory", MemoryBackend::ggml, Alone::always},
    // ggml/src/ggml-vulkan/ggml-vulkan.cpp; Vulkan's own word behind it
    {"devicememoryallocationofsize", MemoryBackend::ggml, Alone::never},
    {"erroroutofdevicememory", MemoryBackend::ggml, Alone::always},
    {"failedtoallocatecuda", MemoryBackend::ggml, Alone::never},
    {"failedtoallocaterocm", MemoryBackend::ggml, Alone::never},
    {"alloc_tensor_range", MemoryBackend::ggml, Alone::never},
    {"ggml_", MemoryBackend::ggml, Alone::never},
    {"gallocr_reserve", MemoryBackend::ggml, Alone::never, OomReason::compute_buffer},
    {"allocatecompute", MemoryBackend::ggml, Alone::never, OomReason::compute_buffer},
    {"errorloadingmodel", MemoryBackend::ggml, Alone::never, OomReason::model_buffer},
    {"bufferforkvcache", MemoryBackend::ggml, Alone::never, OomReason::kv_cache_too_small},
    {"metal::malloc", MemoryBackend::mlx, Alone::never},
    {"malloc_or_wait", MemoryBackend::mlx, Alone::never},
    // vLLM (v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py), SGLang (mem_cache, managers), TGI (models), LMDeploy
    {"noavailablememoryforthecacheblocks", MemoryBackend::server, Alone::always, OomReason::kv_cache_too_small},
    {"kvcacheisneeded", MemoryBackend::server, Alone::always, OomReason::kv_cache_too_small},
    {"canbestoredinkvcache(", MemoryBackend::server, Alone::always, OomReason::kv_cache_too_small},
    {"notenoughmemory.pleasetryto", MemoryBackend::server, Alone::always, OomReason::share_too_small},
    {"noenoughgpumemory", MemoryBackend::server, Alone::always, OomReason::kv_cache_too_small},
    {"alloc_req_slotsrunsoutofmemory", MemoryBackend::server, Alone::always, OomReason::kv_cache_full},
    {"decodeoutofmemory.try", MemoryBackend::server, Alone::always, OomReason::kv_cache_full},
    {"prefilloutofmemory.try", MemoryBackend::server, Alone::always, OomReason::kv_cache_full},
    {"notenoughmemorytohandle", MemoryBackend::server, Alone::always, OomReason::prefill_too_large},
    {"freememoryondevice", MemoryBackend::server, Alone::never, OomReason::device_in_use},
});

}  // namespace oom_facts

}  // namespace vlmest::diagnose
