// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/diagnose/oom/oom_reader.hpp>
#include <vlmest/diagnose/text/encoding.hpp>
#include <vlmest/diagnose/text/log_text.hpp>
#include <vlmest/diagnose/text/nvidia_smi.hpp>

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

inline EvidenceKind json_kind(std::string_view head) {
  const auto trace = first_of(head, {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"ph\"",
                                     "\"displayTimeUnit\"", "\"baseTimeNanoseconds\""});
  const auto snapshot = first_of(head, {"\"device_traces\"", "\"segments\"", "\"segment_type\"",
                                        "\"allocator_settings\"", "\"external_annotations\""});
  const auto stats = first_of(head, {"\"allocated_bytes.all.current\"", "\"allocated_bytes\"", "\"num_alloc_retries\"",
                                     "\"active.all.allocated\"", "\"allocation.all.current\""});
  const auto first = std::min({trace, snapshot, stats});
  if (first == std::string_view::npos) return EvidenceKind::text;  // JSON lines, or a message in a string
  return first == trace      ? EvidenceKind::trace_json
         : first == snapshot ? EvidenceKind::snapshot_json
                             : EvidenceKind::memory_stats_json;
}

}  // namespace evidence

/// The kind of a file by its head; 64 KiB are enough, 16 bytes for the binary kinds. `text` needs text_kind().
inline EvidenceKind evidence_kind(std::string_view head) {
  using namespace evidence;
  head = head.substr(0, 64 << 10);
  const auto encoding = encoding_of(head);
  if (encoding == TextEncoding::utf16_little || encoding == TextEncoding::utf16_big) return EvidenceKind::text;
  if (encoding == TextEncoding::utf8_mark) head.remove_prefix(3);
  if (head.size() >= 2 && head[0] == '\x1f' && head[1] == '\x8b') return EvidenceKind::gzip;
  if (!packer_of(head).name.empty()) return EvidenceKind::packed;
  // The number that torch.save begins with (torch/serialization.py, MAGIC_NUMBER), as a pickle of protocol 2.
  if (head.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")) return EvidenceKind::torch_save;
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return EvidenceKind::snapshot_pickle;
  if (head.starts_with("SQLite format 3")) return EvidenceKind::nsys_sqlite;
  if (head.starts_with("PK\x03\x04")) return EvidenceKind::zip;
  if (head.starts_with("NSIGHT") || head.starts_with("\xde\xad\xbe\xef")) return EvidenceKind::nsys_report;
  const auto begin = std::find_if(head.begin(), head.end(), [](char c) { return !is_blank(c) && c != '\n'; });
  if (begin == head.end()) return EvidenceKind::unknown;
  // Bytes that no text has, but for UTF-16, which must have its mark.
  if (std::any_of(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(head.size(), 512)),
                  [](char c) { return c == '\0'; }))
    return EvidenceKind::unknown;
  if (*begin == '{' || *begin == '[') {
    const auto json = json_kind(head);
    if (json != EvidenceKind::text) return json;
  }
  // The page loads the viewer (torch/cuda/_memory_viz.py, _memory_viz_template); its data follows.
  if (*begin == '<' && first_of(head, {"MemoryViz.js", "memory_viz"}) != std::string_view::npos)
    return EvidenceKind::snapshot_html;
  if (head.find("\"Kernel Name\"") != std::string_view::npos && head.find("\"ID\"") != std::string_view::npos)
    return EvidenceKind::nsight_csv;
  return EvidenceKind::text;
}

/// The kind of a text by all of it. A log with an out-of-memory message is one, whatever else it holds; the readers of
/// the other kinds may still be asked. One pass.
inline EvidenceKind text_kind(std::string_view text) {
  std::size_t at = 0;
  for (int lines = 0; lines < 3 && at < text.size(); ++lines) {
    const auto line = next_line(text, at);
    if (smi_heading(line) || smi_columns_of(line)) return EvidenceKind::nvidia_smi_csv;
  }
  if (!find_oom_messages(text).empty()) return EvidenceKind::oom_message;
  if (text.find("Cur Usage") != std::string_view::npos) return EvidenceKind::memory_summary;
  return EvidenceKind::training_log;
}

}  // namespace vlmest::diagnose
