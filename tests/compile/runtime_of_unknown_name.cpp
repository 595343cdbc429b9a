// SPDX-License-Identifier: Apache-2.0
// rejected with: no row of the registry has this name
#include <vlmest/nn/stack/registry.hpp>

using namespace vlmest;

#ifdef REJECT
constexpr Runtime runtime = runtime_id("transformer");
#else
constexpr Runtime runtime = runtime_id("transformers");
#endif
