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
      : std::runtime_error(one_line(where_ + ": " + what_)),
        where(one_line(std::move(where_))),
        what_happened(one_line(std::move(what_))),
        hint(one_line(std::move(hint_))) {}

 private:
  /// What is quoted of an input may hold anything.
  static std::string one_line(std::string s) {
    for (char& c : s)
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
    return s;
  }
};

/// A count that left the range of a signed 64-bit integer: the description asks for something no machine has.
struct Overflow : Error {
  Overflow()
      : Error("size", "a byte, element or FLOP count exceeds 2^63 - 1",
              "check the dimensions, layer counts, batch and sequence length") {}
};

}  // namespace vlmest
