// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace vlmest {

/// Owns what `new` has made, with its type left out. std::make_shared has a control block of its own for each type, a
/// class that the compiler would make for hundreds of configs, modules and inputs of families; here all have the same.
template <class T>
std::shared_ptr<void> owned(T* made) {
  return std::shared_ptr<void>(
      static_cast<void*>(made), +[](void* p) { delete static_cast<T*>(p); });
}

}  // namespace vlmest
