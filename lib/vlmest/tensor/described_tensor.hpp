// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/tensor/tensor.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest {

/// A tensor in words: what it is called, and whose module it belongs to.
struct DescribedTensor {
  std::string name;
  std::string scope;
  Role role = Role::workspace;
  Shape shape;
  std::string dtype;
  Bytes bytes{};
};

}  // namespace vlmest
