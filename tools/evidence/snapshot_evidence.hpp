// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "evidence/evidence.hpp"
#include "evidence/gzip_source.hpp"

namespace vlmest::tool {

/// A memory snapshot as torch.cuda.memory._dump_snapshot() writes it, piece by piece.
Evidence pickled_snapshot_evidence(FileSource& source, const std::string& where);
/// The same written with json.dump.
Evidence json_snapshot_evidence(std::string_view text, const std::string& where);
/// The page of `python -m torch.cuda._memory_viz trace_plot`.
Evidence page_snapshot_evidence(std::string_view text, const std::string& where);

}  // namespace vlmest::tool
