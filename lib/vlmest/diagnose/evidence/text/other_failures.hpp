// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_text.hpp>

/// Failures that are no lack of a GPU's memory, or do not say so: what people take for one.
namespace vlmest::diagnose {

struct OtherFailure {
  std::string_view what, hint;
  bool may_be_memory = false;      ///< of the host, or of a library that does not say
  bool in_memory_message = false;  ///< torch says it in a message that memory ran out, which it did not
  std::int64_t line = 0;           ///< where it is first seen
};

namespace other_failures {

struct Words {
  std::string_view words, what, hint;
  bool may_be_memory = false, in_memory_message = false;
};

inline constexpr std::string_view blocking =
    "run with CUDA_LAUNCH_BLOCKING=1 to see the call; compute-sanitizer names the kernel";
inline constexpr std::string_view killed =
    "the process was killed by signal 9: where nobody did it by hand, the kernel or the scheduler did, because the "
    "host's "
    "memory ran out";
inline constexpr std::string_view look = "look into dmesg, 'sacct -j JOB -o State,MaxRSS' or 'kubectl describe pod'";

/// In the order in which they are asked: what is more certain comes first. Sources: the CUDA runtime's error strings,
/// c10/cuda/CUDADeviceAssertionHost.cpp, ProcessGroupNCCL.cpp, triton/runtime/errors.py, the Unified Runtime, and what
/// shells, torch.distributed.elastic, subprocess, Docker and Kubernetes write of SIGKILL.
inline constexpr auto failure_words = std::to_array<Words>({
    {"an illegal memory access was encountered",
     "a kernel read or wrote outside of its tensors (illegal memory access)", blocking},
    {"device-side assert triggered", "an assertion in a kernel, mostly an index or a label that is out of range",
     "compare token ids with the rows of the embedding, labels with the classes; CUDA_LAUNCH_BLOCKING=1 shows the "
     "call"},
    {"CUBLAS_STATUS_EXECUTION_FAILED",
     "a product of cuBLAS failed, mostly because of an earlier error or of libraries of two CUDA versions", blocking},
    {"CUBLAS_STATUS_INVALID_VALUE", "cuBLAS was called with an invalid size or stride", blocking},
    {"misaligned address", "a kernel used a misaligned address", blocking},
    {"unspecified launch failure", "a kernel crashed (unspecified launch failure)", blocking},
    {"no kernel image is available", "the build has no kernels for this GPU",
     "install a build of PyTorch or of the extension for its compute capability"},
    {"out of resource: shared memory", "a Triton kernel needs more shared memory per block than the GPU has",
     "make its blocks smaller or lower num_stages; the memory of the device is not concerned"},
    {"collective operation timeout", "a collective of NCCL waited in vain for another rank",
     "look for the first error in the logs of all ranks: one of them stopped, or still works"},
    // c10/cuda/CUDACachingAllocator.cpp, allocate(): not a word of what is free, since no device has as much.
    {"allocate more than 1EB memory", "torch was asked for more than an exabyte",
     "a size is wrong, not the memory: one that overflowed, or that was read from another rank or from damaged memory",
     false, true},
    {"UR_RESULT_ERROR_DEVICE_LOST", "the driver lost the device (UR_RESULT_ERROR_DEVICE_LOST)",
     "restart the process; current drivers report a lack of memory as one"},
    {"UR_RESULT_ERROR_OUT_OF_RESOURCES", "the driver is out of resources, on this backend mostly memory",
     "lower what the run allocates and see whether it goes away", true},
    {"uncorrectable ECC error", "the GPU's memory is damaged (ECC)",
     "take the GPU out of service: nvidia-smi -q -d ECC"},
    {"Signal 9 (SIGKILL)", killed, look, true},
    {"SIGKILL: 9", killed, look, true},
    {"(exitcode: -9)", killed, look, true},
    {"exits with return code = -9", killed, look, true},
    {"exitcode  : -9", killed, look, true},
    {"exit code 137", killed, look, true},
    {"exited with code 137", killed, look, true},
    {"is killed by signal: Killed", killed, look, true},
});

/// "Killed" alone, or behind a shell's "run.sh: line 28:  8156".
constexpr bool is_killed_line(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  if (line == "Killed") return true;
  const auto word = line.find(" Killed ");
  return word != std::string_view::npos && word > 0 && line.substr(0, word).find(": line ") != std::string_view::npos;
}

}  // namespace other_failures

/// What a log says of such a failure. Its last 8 MiB are looked at: a program that fails says so at its end.
std::optional<OtherFailure> find_other_failure(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/other_failures.hpp>
#endif
