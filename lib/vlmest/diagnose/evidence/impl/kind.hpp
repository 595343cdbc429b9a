// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/kind.hpp>
#include <vlmest/diagnose/evidence/text/nvidia_smi.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace evidence {

VLMEST_INLINE EvidenceKind json_kind(std::string_view head) {
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

VLMEST_INLINE EvidenceKind evidence_kind(std::string_view head) {
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

VLMEST_INLINE EvidenceKind text_kind(std::string_view text) {
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
