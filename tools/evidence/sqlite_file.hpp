// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vlmest::tool {

/// One row of a query. A value of another type than asked for is none.
class SqliteRow {
 public:
  SqliteRow(void* statement, std::int64_t* text_left) : statement_(statement), text_left_(text_left) {}
  std::optional<std::int64_t> integer(int column) const;
  /// Valid until the next row.
  std::optional<std::string_view> text(int column) const;

 private:
  void* statement_;
  std::int64_t* text_left_;  ///< bytes of text that the file may still give
};

/// A database that nobody vouches for, opened to be read and nothing else.
class SqliteFile {
 public:
  /// Throws Error where the file is no database of SQLite.
  explicit SqliteFile(const std::string& path);
  SqliteFile(SqliteFile&&) noexcept;
  ~SqliteFile();

  bool has(std::string_view table) const;

  /// Runs `row` over a table, column i of a row being the one named i-th; a row has no value for a column that the
  /// table lacks. False where the table is missing, or lacks one of the first `needed` columns. Throws Error for a
  /// table that is none (a view, a virtual table), has computed columns, or is damaged.
  bool each(const std::string& table, std::initializer_list<const char*> columns, int needed,
            const std::function<void(const SqliteRow&)>& row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vlmest::tool
