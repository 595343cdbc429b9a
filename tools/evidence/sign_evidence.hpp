// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

#include "evidence/evidence.hpp"

/// What a text tells beside an allocator's message: lines of other programs, stacks that are cut short, what programs
/// reserve whatever they need.
namespace vlmest::tool {

nlohmann::ordered_json frames_json(const std::vector<diagnose::Frame>& frames);
nlohmann::ordered_json signs_json(const std::vector<diagnose::FoundSign>& signs);

/// A message without figures whose stack stands elsewhere, or whose engine says more than it does: the verdict by the
/// signs, or the frames.
void add_bare_message(Evidence& e, std::string_view text);

/// A message where a line says that an engine was in its profile run: the phase, unless the failure tells another.
void add_profile_run(Evidence& e);

/// A stack without its message: a failure if it was one of memory.
void add_cut_stack(Evidence& e, const diagnose::CutStack& s);

/// A text in which nothing failed: what a server has left, or that memory did not grow.
void add_nothing_found(Evidence& e, const diagnose::MemorySeries& log);

/// A text of a program that takes whatever share of the device it is given, so that what is in use tells nothing.
void add_reserved_ahead(Evidence& e, const diagnose::MemorySeries& log, std::string_view text);

}  // namespace vlmest::tool
