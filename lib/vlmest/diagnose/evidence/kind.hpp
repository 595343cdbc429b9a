// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/encoding.hpp>
#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/log_values.hpp>
#include <vlmest/diagnose/evidence/text/memory_series.hpp>

namespace vlmest::diagnose {

/// What a file is, by its first bytes. The five words of the public interface are evidence_word().
enum class EvidenceKind : std::uint8_t {
  unknown,
  text,  ///< to be decided from the whole: text_kind()
  oom_message,
  snapshot_pickle,  ///< torch.cuda.memory._dump_snapshot()
  snapshot_json,
  snapshot_html,  ///< torch.cuda._memory_viz trace_plot
  trace_json,     ///< Kineto, Chrome
  nsys_sqlite,
  nsight_csv,  ///< ncu --csv
  memory_summary,
  memory_stats_json,
  training_log,
  nvidia_smi_csv,
  gzip,         ///< inflate its head and ask again
  packed,       ///< by another packer (packer_of); not read
  zip,          ///< torch.save's container since torch 1.6, or any other; not read
  torch_save,   ///< torch.save's form before that; not read
  nsys_report,  ///< .nsys-rep: to be exported first
};
inline constexpr std::array<std::string_view, 18> evidence_kinds{
    "unknown",     "text",       "oom_message",    "snapshot_pickle",   "snapshot_json", "snapshot_html",  "trace_json",
    "nsys_sqlite", "nsight_csv", "memory_summary", "memory_stats_json", "training_log",  "nvidia_smi_csv", "gzip",
    "packed",      "zip",        "torch_save",     "nsys_report"};
constexpr std::string_view name(EvidenceKind k) { return evidence_kinds[static_cast<std::size_t>(k)]; }

/// `evidence[].kind` of `vlmest diagnose`; empty where the file is none.
constexpr std::string_view evidence_word(EvidenceKind k) {
  switch (k) {
    case EvidenceKind::oom_message: return "oom_message";
    case EvidenceKind::snapshot_pickle:
    case EvidenceKind::snapshot_json:
    case EvidenceKind::snapshot_html: return "snapshot";
    case EvidenceKind::trace_json:
    case EvidenceKind::nsys_sqlite:
    case EvidenceKind::nsight_csv: return "trace";
    case EvidenceKind::memory_summary:
    case EvidenceKind::memory_stats_json: return "memory_summary";
    case EvidenceKind::training_log:
    case EvidenceKind::nvidia_smi_csv: return "training_log";
    default: return "";
  }
}

/// A packer whose files are not read, by their first bytes, and how to undo it; empty where it is none.
struct Packer {
  std::string_view name, undo;
};
constexpr Packer packer_of(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return {"zstd", "zstd -d"};
  if (head.starts_with("\xfd\x37zXZ\0"sv)) return {"xz", "xz -d"};
  if (head.starts_with("BZh"sv)) return {"bzip2", "bunzip2"};
  if (head.starts_with("\x04\x22\x4d\x18"sv)) return {"lz4", "lz4 -d"};
  return {};
}

namespace evidence {

/// Where the first of the words stands, npos where none does.
inline std::size_t first_of(std::string_view head, std::initializer_list<std::string_view> words) {
  auto first = std::string_view::npos;
  for (const auto w : words) first = std::min(first, head.find(w));
  return first;
}

EvidenceKind json_kind(std::string_view head);

}  // namespace evidence

/// The kind of a file by its head; 64 KiB are enough, 16 bytes for the binary kinds. `text` needs text_kind().
EvidenceKind evidence_kind(std::string_view head);

/// The kind of a text by all of it. A log with an out-of-memory message is one, whatever else it holds; the readers of
/// the other kinds may still be asked. One pass.
EvidenceKind text_kind(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/impl/kind.hpp>
#endif
