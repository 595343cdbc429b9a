// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/inversion/multiple.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// Verdicts on requests that grow with the square of something, and on those of an engine that measures itself.
namespace vlmest::diagnose {

/// That scores were asked for, where something else than the size says so. `known`: the heads are the model's.
std::optional<Verdict> judge_scores(const Failure& f, const std::vector<ScoreMatrix>& all, bool known,
                                    const LengthBounds& bounds = {});

/// One sentence on what it would be as scores, where nothing but the size speaks for it; empty where nothing fits.
std::string scores_as_well(const Failure& f, const std::vector<ScoreMatrix>& all);

/// That a call of scaled_dot_product_attention failed whose size is not known: with a mask, or where nothing trains.
/// Its fused kernels ask for a result as large as their input alone, which seldom is the last straw of an inference;
/// its math path, which a mask leads to, for the scores.
std::optional<Verdict> judge_attention_call(const Failure& f);
std::string attention_call_words(const Failure& f);

/// That an engine was measuring itself: by its stack, or because the size is that of its default of sequences with the
/// largest picture each (`all`, of a known model).
std::optional<Verdict> judge_profile_run(const Failure& f, const std::vector<Multiple>& all, bool inference);

/// That an engine's sleeping memory could not be mapped again.
std::optional<Verdict> judge_engine_pool(const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/scores.hpp>
#endif
