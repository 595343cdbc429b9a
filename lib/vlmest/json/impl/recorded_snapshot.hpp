// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/recorded_snapshot.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE diagnose::RecordedSnapshot read_recorded_snapshot(std::string_view text, const std::string& where) {
  const std::string hint = "write torch.cuda.memory._snapshot() with json.dump, or use _dump_snapshot()";
  diagnose::SnapshotBuilder build;
  SnapshotSax sax{build};
  try {
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &sax))
      throw Error(where, "not JSON at byte " + std::to_string(sax.wrong_at), hint);
    build.stop();
    return diagnose::finish_snapshot(std::move(build));
  } catch (const diagnose::plain::Malformed& e) {
    throw Error(where, "is not a memory snapshot: " + e.what, hint);
  }
}

}  // namespace vlmest::json
