// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava/read.hpp>

#include "toy/read.hpp"

/// A registry as the library's: one family of it, and the row of one that only this test knows.
namespace vlmest::toy_family_test {

inline constexpr auto registry = json::family_rows<family::Llava, toy::Row>;

}  // namespace vlmest::toy_family_test
