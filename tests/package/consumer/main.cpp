// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <vlmest/tensor/dtype.hpp>
#include <vlmest/tensor/shape.hpp>

int main() {
  const vlmest::Shape shape{2, 576, 1024};
  const auto bytes = size_of(numel(shape), vlmest::DType::bf16);
  std::printf("%s in bf16: %lld bytes\n", to_string(shape).c_str(), static_cast<long long>(bytes.value()));
}
