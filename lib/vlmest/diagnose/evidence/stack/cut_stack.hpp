// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame.hpp>

namespace vlmest::diagnose {

/// A stack whose message is not in the text: cut off before it, or pasted without it.
struct CutStack {
  std::vector<Frame> frames;  ///< outermost first
  std::string ended_by;       ///< the exception that it ends in, where that is none of memory: "KeyError: 'image'"
  std::int64_t line = 0;      ///< of its last frame
};

/// The last stack of a text's last 256 KiB, also where a page put several frames into one line.
std::optional<CutStack> find_cut_stack(std::string_view text);

/// Whether somebody says that memory ran out, in whatever words.
bool says_out_of_memory(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/cut_stack.hpp>
#endif
