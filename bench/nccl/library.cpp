// SPDX-License-Identifier: Apache-2.0
#include <bench/nccl/library.hpp>
#include <dlfcn.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::bench::nccl {
namespace {

// Names, numbers and signatures: NCCL API, https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html and
// types.html there. Every function answers 0 where it succeeded.
using Answer = int;
using Type = int;
using Reduction = int;
constexpr Type bfloat16 = 9;
constexpr Reduction sum = 0;

using OfStream = Answer (*)(const void*, void*, std::size_t, Type, void*, cudaStream_t);
using Reducing = Answer (*)(const void*, void*, std::size_t, Type, Reduction, void*, cudaStream_t);

}  // namespace

Library::Library() : library_(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr)
    throw Error("vlmest-bench", "libnccl.so.2 cannot be loaded",
                "install NCCL, or name the folder that has it in LD_LIBRARY_PATH: PyTorch's is "
                "site-packages/nvidia/nccl/lib");
}
Library::~Library() { static_cast<void>(dlclose(library_)); }

template <class F>
F Library::function(const char* name) const {
  const auto f = reinterpret_cast<F>(dlsym(library_, name));
  if (f == nullptr) throw Error("nccl", std::string(name) + " is missing in this NCCL", "take version 2.10 or newer");
  return f;
}

void Library::check(int answer) const {
  if (answer == 0) return;
  const char* why = function<const char* (*)(Answer)>("ncclGetErrorString")(answer);
  throw Error("nccl", why == nullptr ? "failed" : why, "NCCL_DEBUG=WARN tells more");
}

std::string Library::version() const {
  int v = 0;  // 22809: from 2.9 on, two digits for each of the last two numbers
  check(function<Answer (*)(int*)>("ncclGetVersion")(&v));
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

std::vector<void*> Library::communicators(int devices) const {
  std::vector<void*> all(static_cast<std::size_t>(devices));
  check(function<Answer (*)(void**, int, const int*)>("ncclCommInitAll")(all.data(), devices, nullptr));
  return all;
}
void Library::destroy(void* communicator) const {
  static_cast<void>(function<Answer (*)(void*)>("ncclCommDestroy")(communicator));
}

void Library::group_start() const { check(function<Answer (*)()>("ncclGroupStart")()); }
void Library::group_end() const { check(function<Answer (*)()>("ncclGroupEnd")()); }

void Library::all_reduce(const void* from, void* to, std::size_t n, void* c, cudaStream_t s) const {
  check(function<Reducing>("ncclAllReduce")(from, to, n, bfloat16, sum, c, s));
}
void Library::reduce_scatter(const void* from, void* to, std::size_t part, void* c, cudaStream_t s) const {
  check(function<Reducing>("ncclReduceScatter")(from, to, part, bfloat16, sum, c, s));
}
void Library::all_gather(const void* from, void* to, std::size_t part, void* c, cudaStream_t s) const {
  check(function<OfStream>("ncclAllGather")(from, to, part, bfloat16, c, s));
}
void Library::send(const void* from, std::size_t n, int rank, void* c, cudaStream_t s) const {
  check(function<Answer (*)(const void*, std::size_t, Type, int, void*, cudaStream_t)>("ncclSend")(from, n, bfloat16,
                                                                                                   rank, c, s));
}
void Library::receive(void* to, std::size_t n, int rank, void* c, cudaStream_t s) const {
  check(function<Answer (*)(void*, std::size_t, Type, int, void*, cudaStream_t)>("ncclRecv")(to, n, bfloat16, rank, c,
                                                                                             s));
}

}  // namespace vlmest::bench::nccl
