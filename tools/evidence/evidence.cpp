// SPDX-License-Identifier: Apache-2.0
#include "evidence.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <vlmest/diagnose/evidence/kind.hpp>
#include <vlmest/diagnose/evidence/text/encoding.hpp>
#include <vlmest/json/kineto.hpp>
#include <vlmest/json/memory_stats.hpp>
#include <vlmest/json/parse.hpp>

#include "evidence/gzip_source.hpp"
#include "evidence/nsys_sqlite.hpp"
#include "evidence/snapshot_evidence.hpp"
#include "evidence/text_evidence.hpp"
#include "evidence/trace_evidence.hpp"

namespace vlmest::tool {
namespace {

using diagnose::EvidenceKind;

/// What is kept whole is limited more than what is read piece by piece: logs and statistics by what a person sends,
/// snapshots as JSON by the 3 bytes that each of theirs takes. Recorded ones of long runs have 1 GiB and more.
SourceLimit limit_of(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::snapshot_pickle: return {};
    case EvidenceKind::snapshot_json:
    case EvidenceKind::snapshot_html:
      return {.bytes = std::uint64_t{4} << 30, .ratio = 128, .hint = "give the pickle that _dump_snapshot() wrote"};
    case EvidenceKind::trace_json: return {.bytes = std::uint64_t{16} << 30, .ratio = 64, .hint = "record fewer steps"};
    case EvidenceKind::memory_stats_json:
      return {.bytes = std::uint64_t{16} << 20, .ratio = 64, .hint = "give what torch.cuda.memory_stats() returned"};
    default:
      return {.bytes = std::uint64_t{512} << 20, .ratio = 64, .hint = "cut the log to the part around the error"};
  }
}

/// All of it; the room for a plain file's is taken at once, as growing would move a long text again and again.
std::string whole(FileSource& source, const std::string& path, EvidenceKind kind) {
  std::string text;
  std::error_code unknown;
  const auto size = source.compressed() || path == "-" ? 0 : std::filesystem::file_size(path, unknown);
  if (!unknown) text.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(size, limit_of(kind).bytes)));
  for (std::string_view piece = source(); !piece.empty(); piece = source()) text.append(piece);
  return text;
}

Evidence read(FileSource& source, const std::string& path, const std::string& where,
              const std::optional<Device>& device) {
  const EvidenceKind kind = diagnose::evidence_kind(source.head());
  source.limit(limit_of(kind));
  switch (kind) {
    case EvidenceKind::snapshot_pickle: return pickled_snapshot_evidence(source, where);
    case EvidenceKind::snapshot_json: return json_snapshot_evidence(whole(source, path, kind), where);
    case EvidenceKind::snapshot_html: return page_snapshot_evidence(whole(source, path, kind), where);
    case EvidenceKind::trace_json: {
      const diagnose::ProfileTrace trace = json::read_kineto([&source] { return source(); }, where);
      if (trace.empty() && trace.memory.empty())
        throw Error(where, "a trace without any kernel, operator or call of CUDA's",
                    "give the file that torch.profiler's export_chrome_trace wrote");
      return trace_evidence(trace, device);
    }
    case EvidenceKind::nsys_sqlite:
      if (path == "-" || source.compressed())
        throw Error(where, "an export of Nsight Systems must be a plain file", "unpack it and give its path");
      return trace_evidence(read_nsys_sqlite(path), device);
    case EvidenceKind::memory_stats_json:
      return summary_evidence({json::read_memory_stats(json::parse(whole(source, path, kind), where))});
    case EvidenceKind::nsight_csv:
      throw Error(where, "a table of Nsight Compute, which knows single kernels and no run",
                  "give a trace of the profiler of PyTorch or of Nsight Systems; 'vlmest roofline' places kernels");
    case EvidenceKind::packed: {
      const diagnose::Packer packer = diagnose::packer_of(source.head());
      throw Error(where, "is compressed with " + std::string(packer.name) + ", and only gzip is read",
                  "unpack it first: " + std::string(packer.undo) + " FILE");
    }
    case EvidenceKind::zip:
      if (source.head().find("data.pkl") == std::string_view::npos)
        throw Error(where, "is a zip archive", "unpack it and give the file inside");
      [[fallthrough]];
    case EvidenceKind::torch_save:
      throw Error(where, "was written with torch.save, and only plain pickles are read",
                  "if it is a snapshot: pickle.dump(torch.load(FILE), open('snapshot.pickle', 'wb'))");
    case EvidenceKind::nsys_report:
      throw Error(where, "a report of Nsight Systems", "export it: nsys export --type sqlite REPORT.nsys-rep");
    case EvidenceKind::unknown:
      throw Error(where, source.head().empty() ? "the file is empty" : "none of the kinds of evidence",
                  "give an out-of-memory message or a log, a memory snapshot, memory_summary() text or a trace");
    default: return text_evidence(diagnose::utf8_text(whole(source, path, kind)), where);
  }
}

}  // namespace

Evidence read_evidence(const std::string& path, const std::optional<Device>& device) {
  const std::string where = path == "-" ? "standard input" : path;
  FileSource source(path);
  Evidence e = read(source, path, where, device);
  e.file = where;
  if (source.truncated()) e.lines.push_back("the file ends early: the rest of its gzip data is missing");
  return e;
}

}  // namespace vlmest::tool
