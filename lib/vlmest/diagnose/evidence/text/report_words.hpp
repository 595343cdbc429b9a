// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The words of a report, as they are counted by cause over settled ones.
namespace vlmest::diagnose {

/// Each word once, in the order of their bytes: runs of 2 to 24 letters in lower case, those of six or more without an
/// ending "s", "es", "ed" or "ing", and pairs of Chinese characters that stand side by side. Digits and marks part
/// words. Of a text's first and last 256 KiB, in one pass.
std::vector<std::string> report_words(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/report_words.hpp>
#endif
