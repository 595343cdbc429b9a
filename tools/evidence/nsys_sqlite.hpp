// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <vlmest/diagnose/evidence/trace/profile_trace.hpp>

namespace vlmest::tool {

/// True of the beginning of a database of SQLite (its file format, section 1.3).
inline bool looks_like_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

/// A trace of Nsight Systems, exported with `nsys export --type sqlite`. Tables are made only where there is something
/// to put in them, and any may be missing; a table without the columns that it needs, and a row without its times, are
/// left out and counted. The file is opened read-only and taken as data alone: views, virtual tables and computed
/// columns are refused, triggers and extensions are off, and the work is bounded by the file's size. Throws Error for a
/// file that is no such database.
///
/// Tables and columns: Nsight Systems User Guide, "SQLite Schema Reference".
diagnose::ProfileTrace read_nsys_sqlite(const std::string& path);

}  // namespace vlmest::tool
