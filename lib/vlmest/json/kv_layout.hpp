// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/known_keys.hpp>
#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/kv_layout.hpp>
#include <vlmest/nn/vlm.hpp>

/// "kv" of a description: how keys and values are kept.
namespace vlmest::json {

void read_kv(const Reader& document, Vlm& vlm);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/kv_layout.hpp>
#endif
