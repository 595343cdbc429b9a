// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/diagnose/evidence/text/xla_program.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// Verdicts of programs that XLA compiled and that do not fit.
namespace vlmest::diagnose {

/// The kind of tensor that a buffer is, by the names of its operator, its instruction and its shape.
Cause cause_of(const XlaBuffer& b, bool trains);

/// What fills the device by XLA's own table: what the program is given, where that is more than what it makes, else the
/// largest of its buffers. Nothing where there is no table.
std::optional<Verdict> judge_program(const Failure& f);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_program.hpp>
#endif
