// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bench/harness/point.hpp>
#include <bench/harness/prepared.hpp>

#include <vlmest/json/reader.hpp>

/// How each op of the table is called. A function for each op reads the point's JSON into the library's op, makes the
/// chosen variant's kernel and says which operands it takes. Throws Error for what a kernel cannot do.
namespace vlmest::bench {

Prepared prepare_linear(const Point& p, cudaStream_t stream);
Prepared prepare_sdpa(const Point& p, cudaStream_t stream);
Prepared prepare_fft(const Point& p, cudaStream_t stream);
Prepared prepare_elementwise(const Point& p, cudaStream_t stream);
Prepared prepare_softmax(const Point& p, cudaStream_t stream);
Prepared prepare_norm(const Point& p, cudaStream_t stream);
Prepared prepare_rope(const Point& p, cudaStream_t stream);
Prepared prepare_embedding(const Point& p, cudaStream_t stream);
Prepared prepare_cross_entropy(const Point& p, cudaStream_t stream);
Prepared prepare_launch(const Point& p, cudaStream_t stream);

/// The call of a point; by the name of its op. `stream` is for what must be tried to be chosen.
Prepared prepare(const Point& p, cudaStream_t stream);

}  // namespace vlmest::bench
