// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vlm.hpp>

/// "kv" of a description: how keys and values are kept.
namespace vlmest::json {

void read_kv(const Reader& document, Vlm& vlm);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/kv_layout.hpp>
#endif
