// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

/// A fuzz target: what libFuzzer calls with each input. It returns for every input; bad ones may throw nothing but
/// vlmest::Error, which the target catches.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace vlmest::fuzz {

/// Without libFuzzer all targets are one program, and driver.cpp calls the one that is named.
struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};
extern const std::vector<Target> targets;

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program where a result contradicts itself.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::abort();
}

/// Small numbers out of an input, the same ones for the same input (FNV-1a).
class Choices {
 public:
  explicit Choices(std::string_view input) {
    for (const char c : input) state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  /// One of 0 .. n - 1.
  std::uint64_t of(std::uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  std::uint64_t state_ = 14695981039346656037u;
};

/// What an error must look like: one line that says where and what.
template <class Error>
void require_readable(const Error& e) {
  require(!e.where.empty() && !e.what_happened.empty(), "an error without a place or a text");
  const std::string_view line = e.what();
  require(line.find('\n') == std::string_view::npos && std::string_view(e.hint).find('\n') == std::string_view::npos,
          "an error of several lines");
}

}  // namespace vlmest::fuzz
