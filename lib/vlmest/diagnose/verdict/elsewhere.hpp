// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/oom/message.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>
#include <vlmest/diagnose/evidence/text/run_settings.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/unit/units.hpp>

/// Messages of memory that no tensor on a GPU was asked for: the host's, or a server's own budget.
namespace vlmest::diagnose {

namespace elsewhere {

/// The last figure of a name that the log holds.
inline std::optional<Bytes> fact(const std::vector<LogFact>& facts, std::string_view name) {
  for (auto f = facts.rbegin(); f != facts.rend(); ++f)
    if (f->name == name && f->size) return f->size->value;
  return std::nullopt;
}
inline std::optional<double> count(const std::vector<LogFact>& facts, std::string_view name) {
  for (auto f = facts.rbegin(); f != facts.rend(); ++f)
    if (f->name == name && !f->size) return f->number;
  return std::nullopt;
}

Verdict of_host(const OomMessage& m);

Verdict of_server(const OomMessage& m, const std::vector<LogFact>& facts);

}  // namespace elsewhere

/// The verdict of a message that is of no GPU's tensor, with the figures of its log; nothing for the others.
inline std::optional<Verdict> judge_elsewhere(const OomMessage& m, const std::vector<LogFact>& facts) {
  if (m.backend == MemoryBackend::host) return elsewhere::of_host(m);
  if (m.backend == MemoryBackend::server) return elsewhere::of_server(m, facts);
  return std::nullopt;
}

/// Where an engine has nothing left for its KV cache and gives no figures, and its settings admit several pictures a
/// prompt: what it measured before it made the cache was as many of the greatest size.
void name_admitted_pictures(Verdict& v, const OomMessage& m, const std::vector<ReadSetting>& settings);

/// What the remedies of such a message need: who holds the device before a server begins.
inline std::optional<Failure> failure_elsewhere(const OomMessage& m) {
  if (m.reason != OomReason::device_in_use || !m.total || !m.free) return std::nullopt;
  return Failure{.requested = m.requested, .free = m.free, .total = m.total, .others = *m.total - *m.free};
}

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/elsewhere.hpp>
#endif
