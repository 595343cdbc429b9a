// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/oom/oom_message.hpp>
#include <vlmest/diagnose/text/size_text.hpp>

/// The figures of out-of-memory messages, found one by one: a message may be wrapped anywhere, cut short, or spelled a
/// little differently, so each figure is known by the words next to it and by nothing else. The search runs on text in
/// lower case without blanks, quotes, tags and anything beyond ASCII.
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

struct OomFact {
  OomField field = OomField::begin;
  std::size_t at = 0;   ///< in the squeezed text
  std::size_t end = 0;  ///< past the words and the figure
  std::optional<PrintedSize> size;
  std::int64_t number = 0;  ///< process id, GPU
  MemoryBackend backend = MemoryBackend::unknown;
  bool alone = false;  ///< of begin: a message even where no figure follows
  bool async_only = false;
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

inline constexpr std::array<Anchor, 37> anchors{{
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
    {"cached)", OomField::reserved, Side::before},
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
    // the kernel's OOM killer
    {"anon-rss:", OomField::own_process, Side::after},
}};

/// When the words of a beginning are a message without any figure.
enum class Alone : std::uint8_t { never, as_sentence, always };

struct Beginning {
  std::string_view words;
  MemoryBackend backend;
  Alone alone;
};

inline constexpr std::array<Beginning, 34> beginnings{{
    {"outofmemoryerror:", MemoryBackend::unknown, Alone::never},
    {"outofmemory.tried", MemoryBackend::unknown, Alone::never},
    {"outofmemory(", MemoryBackend::unknown, Alone::never},
    {"cudaoutofmemory", MemoryBackend::cuda, Alone::as_sentence},
    {"hipoutofmemory", MemoryBackend::hip, Alone::as_sentence},
    {"xpuoutofmemory", MemoryBackend::xpu, Alone::as_sentence},
    {"npuoutofmemory", MemoryBackend::npu, Alone::as_sentence},
    {"mpsbackendoutofmemory", MemoryBackend::mps, Alone::as_sentence},
    {"error:allocationondevice", MemoryBackend::cuda_malloc_async, Alone::always},
    {"wouldexceedallowedmemory", MemoryBackend::cuda_malloc_async, Alone::as_sentence},
    {"currentlyallocated:", MemoryBackend::cuda_malloc_async, Alone::never},
    {"cudaerror:outofmemory", MemoryBackend::cuda_driver, Alone::as_sentence},
    {"hiperror:outofmemory", MemoryBackend::hip, Alone::as_sentence},
    {"cudadrivererror:outofmemory", MemoryBackend::cuda_driver, Alone::as_sentence},
    {"cuda_error_out_of_memory", MemoryBackend::cuda_driver, Alone::always},
    {"cudaerrormemoryallocation", MemoryBackend::cuda_driver, Alone::always},
    {"cublas_status_alloc_failed", MemoryBackend::cublas, Alone::always},
    {"cublas_status_not_initialized", MemoryBackend::cublas, Alone::always},
    {"cudnn_status_alloc_failed", MemoryBackend::cudnn, Alone::always},
    {"cudafailure2outofmemory", MemoryBackend::nccl, Alone::always},
    {"cudafailureoutofmemory", MemoryBackend::nccl, Alone::always},
    {"defaultcpuallocator:", MemoryBackend::host, Alone::always},
    {"memoryerror:unableto", MemoryBackend::host, Alone::never},
    {"std::bad_alloc", MemoryBackend::host, Alone::always},
    {"outofmemory:killedprocess", MemoryBackend::host, Alone::always},
    {"cannotallocatememory", MemoryBackend::host, Alone::always},
    {"resource_exhausted", MemoryBackend::jax, Alone::always},
    {"cudamallocfailed:outofmemory", MemoryBackend::ggml, Alone::always},
    {"failedtoallocatecuda", MemoryBackend::ggml, Alone::never},
    {"failedtoallocaterocm", MemoryBackend::ggml, Alone::never},
    {"alloc_tensor_range", MemoryBackend::ggml, Alone::never},
    {"ggml_", MemoryBackend::ggml, Alone::never},
    {"metal::malloc", MemoryBackend::mlx, Alone::never},
    {"malloc_or_wait", MemoryBackend::mlx, Alone::never},
}};

constexpr bool ends_with(std::string_view text, std::size_t at, std::string_view word) {
  return at >= word.size() && text.substr(at - word.size(), word.size()) == word;
}

/// "CUDA out of memory" without a figure is a message where it stands as a sentence, not within one.
template <class LineBegins>
bool is_sentence(std::string_view s, std::size_t at, std::size_t end, LineBegins line_begins) {
  if (end < s.size() && is_letter(s[end]) && !line_begins(end)) return false;
  if (at == 0 || line_begins(at)) return true;
  const char c = s[at - 1];
  return std::string_view(":([>=!.,-").find(c) != std::string_view::npos || ends_with(s, at, "error") ||
         ends_with(s, at, "exception");
}

inline std::optional<std::int64_t> digits_at(std::string_view s, std::size_t at) {
  std::int64_t n = 0;
  std::size_t i = at;
  while (i < s.size() && is_digit(s[i]) && i - at < 12) n = n * 10 + (s[i++] - '0');
  return i == at ? std::nullopt : std::optional(n);
}

template <class Found>
void each(std::string_view text, std::string_view words, Found found) {
  for (auto at = text.find(words); at != std::string_view::npos; at = text.find(words, at + words.size())) found(at);
}

/// Skips what may stand between words and their figure: "Tried to allocate about 2 GiB", "approx. 2 GiB", "~2 GiB".
inline std::size_t pass_over(std::string_view s, std::size_t at) {
  for (const std::string_view word : {":", "=", "memory:", "about", "approximately", "~", "(", "over"})
    if (s.substr(at).starts_with(word)) at += word.size();
  return at;
}

}  // namespace oom_facts

/// Every fact of a squeezed text, in its order. `line_begins(at)` tells whether a line begins there.
template <class LineBegins>
std::vector<OomFact> find_oom_facts(std::string_view s, LineBegins line_begins) {
  using namespace oom_facts;
  std::vector<OomFact> facts;
  for (const auto& b : beginnings)
    each(s, b.words, [&](std::size_t at) {
      const auto end = at + b.words.size();
      if (b.words == "outofmemoryerror:" && s.substr(at - std::min<std::size_t>(at, 24), 24).find("except") < 24)
        return;
      const bool alone =
          b.alone == Alone::always || (b.alone == Alone::as_sentence && is_sentence(s, at, end, line_begins));
      facts.push_back({OomField::begin, at, end, std::nullopt, 0, b.backend, alone});
    });
  for (const auto& a : anchors)
    each(s, a.words, [&](std::size_t at) {
      auto found = a.side == Side::before ? size_before(s, at) : size_at(s, pass_over(s, at + a.words.size()), a.bare);
      if (!found) return;
      const auto end = a.side == Side::before ? at + a.words.size() : found->at;
      facts.push_back({a.field, a.side == Side::before ? found->at : at, end, found->size, 0, MemoryBackend::unknown,
                       false, a.async_only});
    });
  each(s, "process", [&](std::size_t at) {  // "Process 4711 has 3.20 GiB memory in use", "Killed process 4711"
    const auto pid = digits_at(s, at + 7);
    if (!pid) return;
    auto has = at + 7;
    while (has < s.size() && is_digit(s[has])) ++has;
    if (!s.substr(has).starts_with("has")) return;
    if (const auto size = size_at(s, has + 3)) facts.push_back({OomField::process, at, size->at, size->size, *pid});
  });
  for (const std::string_view word : {"gpu", "npu", "ondevice", "ongpu", "cuda"})
    each(s, word, [&](std::size_t at) {
      const auto n = digits_at(s, at + word.size());
      if (!n || *n > 4096) return;
      auto end = at + word.size();
      while (end < s.size() && is_digit(s[end])) ++end;
      const auto next = s.substr(end);
      if (next.starts_with(";") || next.starts_with("has") || next.starts_with("would") || next.starts_with(":cuda") ||
          next.starts_with("buffer") || next.starts_with(".cannot") || word == "ongpu")
        facts.push_back({OomField::gpu, at, end, std::nullopt, *n});
    });
  std::sort(facts.begin(), facts.end(), [](const OomFact& a, const OomFact& b) {
    return a.at != b.at ? a.at < b.at : a.end != b.end ? a.end > b.end : a.field < b.field;
  });
  return facts;
}

}  // namespace vlmest::diagnose
