// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/stack/source_line.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE Failure failure_of(const OomMessage& m) {
  Failure f{.requested = m.requested,
            .allocated = allocated(m),
            .unallocated = unallocated(m),
            .free = m.free,
            .total = m.total,
            .allowed = m.allowed,
            .non_torch = non_torch(m),
            .phase = m.phase,
            .site = m.site,
            .frames = m.traceback.frames,
            .told = told_mode(m.traceback.frames, m.phase)};
  // What the driver keeps for itself is in the difference of total and free; processes that are listed are not.
  if (!m.processes.empty()) {
    f.others = other_processes(m);
  } else if (const auto rest = not_torch(m); rest && !m.own_process && !m.allowed) {
    // Messages before 2.1, and those of HIP, list no process. What remains beyond any context is somebody else's.
    if (rest->low > context_at_most) f.others = PrintedSize{rest->value, rest->low - context_at_most, rest->high};
    f.others_deduced = f.others.has_value();
  }
  f.outside = m.backend == MemoryBackend::cuda_driver || m.backend == MemoryBackend::cublas ||
              m.backend == MemoryBackend::cudnn || m.backend == MemoryBackend::cufft ||
              m.backend == MemoryBackend::nccl;
  f.backend = m.backend;
  // mlx/backend/metal/allocator.cpp and torch's MPSAllocator.mm compare with MTLDevice.maxBufferLength.
  const bool metal = m.text.find("maximum allowed buffer size") != std::string::npos;
  f.one_buffer = metal || m.text.find("nvalid buffer size") != std::string::npos;
  if (metal && m.backend == MemoryBackend::unknown) f.backend = MemoryBackend::mlx;
  const auto by = [&](const char* words) {
    const auto in = [&](const Frame& x) { return x.file.find(words) != std::string::npos; };
    return m.text.find(words) != std::string::npos || std::any_of(f.frames.begin(), f.frames.end(), in);
  };
  f.foreign = f.backend == MemoryBackend::mlx || f.backend == MemoryBackend::ggml || f.backend == MemoryBackend::jax ||
              by("urbomind") || by("TM][") || by("CUDA runtime error") || by("onnxruntime") || by("ggml") || by("/mlx");
  f.engine_pool =
      m.text.find("cumem_allocator") != std::string::npos || m.text.find("torch_memory_saver") != std::string::npos;
  f.whole_graph = m.backend == MemoryBackend::ggml && m.reason != OomReason::model_buffer &&
                  m.reason != OomReason::kv_cache_too_small;
  // XLA asks for the temporaries of a whole program at once (xla/service/buffer_assignment.cc, preallocated temp).
  f.program = m.backend == MemoryBackend::jax && m.text.find("while trying to allocate") != std::string::npos;
  if (const auto t = tensor_sizes(m)) {
    f.tensor = PrintedSize{t->high, t->low, t->high};
    f.telling = t->telling();
  }
  // What a device's allocator was asked for is not in the host's memory.
  if (f.site == AllocationSite::decoded_media && f.requested) f.site = AllocationSite::unknown;
  if (!f.frames.empty())
    if (auto made = tensor_made_in(f.frames.back().code);
        made && (tensor_allowed(m, made->bytes) || rounds_up_to(m, made->bytes))) {
      f.tensor = PrintedSize::exactly(made->bytes);
      f.telling = true;
      f.made = std::move(made);
    }
  // "total capacty" is torch 2.1's, "already allocated" that of those before (c10/cuda/CUDACachingAllocator.cpp); other
  // devices' libraries (torch_npu) have kept the old words.
  f.early_torch =
      (m.backend == MemoryBackend::cuda || m.backend == MemoryBackend::hip) &&
      (m.text.find("total capacty") != std::string::npos || m.text.find("already allocated;") != std::string::npos);
  return f;
}

VLMEST_INLINE void take_printed_shape(Failure& f, const OomMessage& m, const std::vector<PrintedShape>& shapes) {
  if (f.made || !f.tensor || !f.telling) return;
  std::optional<DescribedTensor> found;
  std::int64_t line = 0;
  for (const PrintedShape& p : shapes) {
    std::int64_t elements = 1;
    for (const std::int64_t n : p.shape) elements *= n;
    for (const DType type : {DType::fp32, DType::bf16, DType::fp64, DType::int8}) {
      const DType of = p.dtype.value_or(type);
      const Bytes bytes = size_of(Elements(elements), of);
      if (!tensor_allowed(m, bytes)) continue;
      if (found && found->shape != p.shape) return;  // more than one
      if (!found)
        found = DescribedTensor{.name = "tensor of the printed shape",
                                .scope = {},
                                .role = Role::activation,
                                .shape = p.shape,
                                .dtype = std::string(name(of)),
                                .bytes = bytes};
      if (line == 0) line = p.line;
      break;
    }
  }
  if (!found) return;
  f.made = std::move(found);
  f.shape_line = line;
  f.tensor = PrintedSize::exactly(f.made->bytes);
}

VLMEST_INLINE std::optional<Bytes> limit(const Failure& f) {
  if (f.allowed && !f.one_buffer) return f.allowed->value;
  if (f.total) {
    Bytes r = f.total->value;
    for (const auto& other : {f.non_torch, f.others})
      if (other && other->value < r) r -= other->value;
    return r;
  }
  if (!f.allocated || !f.unallocated || !f.requested) return std::nullopt;
  const Bytes reserved = f.allocated->value + f.unallocated->value;
  return f.free && f.free->value < f.requested->value ? reserved + f.free->value : reserved;
}

VLMEST_INLINE Failure on_device(Failure f, Bytes memory) {
  if (f.total || !f.allocated || !f.unallocated || !f.requested || !f.free || f.free->value >= f.requested->value)
    return f;
  const Bytes reserved = f.allocated->value + f.unallocated->value, known = reserved + f.free->value;
  // A context and its libraries take some.
  if (known >= memory || !cut_off::elsewhere.reached(memory - known, memory)) return f;
  f.total = PrintedSize::exactly(memory);
  f.others = PrintedSize::exactly(memory - known);
  return f;
}

}  // namespace vlmest::diagnose
