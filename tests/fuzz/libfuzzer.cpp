// SPDX-License-Identifier: Apache-2.0
// Gives libFuzzer the mutations of mutate.hpp beside its own.
#include <cstring>

#include "mutate.hpp"
#include "target.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  static vlmest::fuzz::Mutator mutate({});
  vlmest::fuzz::Mutator::Random random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string_view input = vlmest::fuzz::text(data, size);
  if (random() % 1024 == 0) mutate.add(input);
  const std::string out = mutate(input, random);
  const std::size_t n = std::min(out.size(), most);
  std::memcpy(data, out.data(), n);
  return n;
}
