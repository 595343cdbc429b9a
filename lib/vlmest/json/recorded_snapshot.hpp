// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::json {

/// What nlohmann's parser meets, as the operations of the machine that also puts pickles together.
struct SnapshotSax {
  diagnose::SnapshotBuilder& build;
  std::size_t wrong_at = 0;  ///< the byte where the text stops being JSON; 0 where it is

  bool null() { return build.none(), true; }
  bool boolean(bool b) { return build.boolean(b), true; }
  bool number_integer(std::int64_t n) { return build.integer(n), true; }
  bool number_unsigned(std::uint64_t n) { return build.natural(n), true; }
  bool number_float(double x, const std::string&) { return build.real(x), true; }
  bool string(const std::string& s) { return build.text(s), true; }
  bool key(const std::string& s) { return build.text(s), true; }
  bool binary(const nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return build.new_dict(), build.mark(), true; }
  bool end_object() { return build.set_items(), true; }
  bool start_array(std::size_t) { return build.new_list(), build.mark(), true; }
  bool end_array() { return build.append_items(), true; }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) {
    wrong_at = at == 0 ? 1 : at;
    return false;
  }
};

/// torch.cuda.memory._snapshot() written by json.dump, with all that the pickle holds. Throws Error.
diagnose::RecordedSnapshot read_recorded_snapshot(std::string_view text, const std::string& where);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/recorded_snapshot.hpp>
#endif
