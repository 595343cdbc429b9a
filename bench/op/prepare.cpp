// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include <bench/op/prepare.hpp>

#include <vlmest/unit/error.hpp>

namespace vlmest::bench {
namespace {

struct Entry {
  std::string_view op;
  Prepared (*prepare)(const Point&, cudaStream_t);
};
constexpr std::array entries{
    Entry{"linear", prepare_linear},
    Entry{"sdpa", prepare_sdpa},
    Entry{"fft", prepare_fft},
    Entry{"ifft", prepare_fft},
    Entry{"rfft", prepare_fft},
    Entry{"irfft", prepare_fft},
    Entry{"fft2", prepare_fft},
    Entry{"ifft2", prepare_fft},
    Entry{"rfft2", prepare_fft},
    Entry{"irfft2", prepare_fft},
    Entry{"copy", prepare_elementwise},
    Entry{"read", prepare_elementwise},
    Entry{"write", prepare_elementwise},
    Entry{"add", prepare_elementwise},
    Entry{"silu_mul", prepare_elementwise},
    Entry{"softmax", prepare_softmax},
    Entry{"layernorm", prepare_norm},
    Entry{"rmsnorm", prepare_norm},
    Entry{"rope", prepare_rope},
    Entry{"embedding", prepare_embedding},
    Entry{"cross_entropy", prepare_cross_entropy},
    Entry{"launch", prepare_launch},
};

}  // namespace

Prepared prepare(const Point& p, cudaStream_t stream) {
  for (const Entry& e : entries)
    if (e.op == op_name(p)) return e.prepare(p, stream);
  throw Error(name(p), "has no kernel here");
}

}  // namespace vlmest::bench
