// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace vlmest {

/// Bad data: a model description, a size or a request that cannot be answered. One line says where and what, one hint
/// says what to do instead. Only tools/main.cpp catches it.
struct Error : std::runtime_error {
  std::string where;
  std::string what_happened;
  std::string hint;

  Error(std::string where_, std::string what_, std::string hint_ = {})
      : std::runtime_error(where_ + ": " + what_),
        where(std::move(where_)),
        what_happened(std::move(what_)),
        hint(std::move(hint_)) {}
};

/// A count that left the range of a signed 64-bit integer: the description asks for something no machine has.
struct Overflow : Error {
  Overflow()
      : Error("size", "a byte, element or FLOP count exceeds 2^63 - 1",
              "check the dimensions, layer counts, batch and sequence length") {}
};

}  // namespace vlmest
