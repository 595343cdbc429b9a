// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>

namespace vlmest::diagnose {

/// The settings that were in force; the text of PYTORCH_ALLOC_CONF knows some that the table does not hold. `base`
/// gives what a snapshot does not tell: the device's memory and the part of it that the process may use.
allocator::AllocatorConfig allocator_config(const RecordedSnapshot& s, allocator::AllocatorConfig base = {});

/// One device, as the allocator's replay takes it. Throws Error for what cannot be replayed: private pools, segments
/// whose blocks do not fill them, actions that are not known. Its rules are those of json/memory_snapshot.hpp.
allocator::MemorySnapshot replayable(const RecordedSnapshot& s, std::int64_t device,
                                     const allocator::AllocatorConfig& base = {});

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/replayable.hpp>
#endif
