// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <vlmest/unit/units.hpp>

namespace vlmest::diagnose {

/// A size in a sentence, as torch prints them: "6.10 GiB", "512 bytes".
std::string in_words(Bytes b);

/// Whether "false" stands behind the name of a setting: "=False", ": false", " False".
bool is_turned_off(std::string_view behind);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/words.hpp>
#endif
