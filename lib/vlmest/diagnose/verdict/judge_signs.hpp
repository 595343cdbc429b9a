// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/run_sign.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// Verdicts of texts in which no allocator speaks, by the lines that other programs print.
namespace vlmest::diagnose {

/// What the signs of a text say, the surest first; nothing where none tells of a failure, of slowness or, by itself, of
/// anything. `says_memory`: somebody says that memory ran out. `trains_with_engine`: the text is of a trainer that
/// rolls out with an engine.
std::optional<Verdict> judge_signs(const std::vector<FoundSign>& signs, const std::vector<LogFact>& facts,
                                   bool says_memory, bool trains_with_engine);

/// Whether a text names a trainer that holds an inference engine beside the model that it trains: verl, EasyR1, ROLL,
/// OpenRLHF, slime, TRL's GRPO with vLLM, ms-swift's rollout.
bool trains_with_engine(std::string_view text);

/// The verdict of a message of memory whose stack or log says that an engine was in its profile run: what the tensor
/// belongs to is the run over the largest inputs that the engine admits. Scores, weights and other processes stay what
/// they are.
void name_profile_run(Verdict& v, const Failure& f, const std::vector<LogFact>& facts);

/// The verdict of a failure in the frames of an engine that rolls out for a trainer: whatever tensor it was, the engine
/// and the trainer share the device.
void name_rollout_engine(Verdict& v, const Failure& f);

/// Pieces that would have held the request, or other processes, where the cause is another one.
std::vector<std::string> second_remarks(const Verdict& v, const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_signs.hpp>
#endif
