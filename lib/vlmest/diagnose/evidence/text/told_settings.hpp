// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/run_settings.hpp>

/// Settings that somebody tells in a sentence: "with batch size 1", "32 frames", "an image of 4032x3024", "context
/// length of 32k". What keys and flags set stands in run_settings.hpp, and is surer.
namespace vlmest::diagnose {

/// Each flag once, as it is told first; of sentences of a text's first 256 KiB.
std::vector<ReadSetting> told_settings(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/told_settings.hpp>
#endif
