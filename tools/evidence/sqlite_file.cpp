// SPDX-License-Identifier: Apache-2.0
#include "evidence/sqlite_file.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include <sqlite3.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool {
namespace {

sqlite3_stmt* stmt(void* p) { return static_cast<sqlite3_stmt*>(p); }

/// A path as the URI that SQLite takes (sqlite.org/uri.html). Immutable: no locks, no journal is looked for.
std::string uri(const std::string& path) {
  std::string r = "file:";
  const std::string absolute = std::filesystem::absolute(path).string();
  for (const char c : absolute) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || c == '/' ||
                       c == '.' || c == '-' || c == '_';
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", u);
    r += plain ? std::string(1, c) : std::string(code);
  }
  return r + "?mode=ro&immutable=1";
}

std::string identifier(std::string_view name) {
  std::string r = "\"";
  for (const char c : name) r += c == '"' ? std::string("\"\"") : std::string(1, c);
  return r + "\"";
}

}  // namespace

std::optional<std::int64_t> SqliteRow::integer(int column) const {
  if (sqlite3_column_type(stmt(statement_), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(stmt(statement_), column);
}
std::optional<std::string_view> SqliteRow::text(int column) const {
  if (sqlite3_column_type(stmt(statement_), column) != SQLITE_TEXT) return std::nullopt;
  const auto* s = sqlite3_column_text(stmt(statement_), column);
  if (s == nullptr) return std::nullopt;
  const auto n = static_cast<std::size_t>(sqlite3_column_bytes(stmt(statement_), column));
  *text_left_ -= static_cast<std::int64_t>(n);
  return std::string_view(reinterpret_cast<const char*>(s), n);
}

struct SqliteFile::State {
  struct Close {
    void operator()(sqlite3* d) const { sqlite3_close(d); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };

  std::string path;
  std::unique_ptr<sqlite3, Close> db;
  std::map<std::string, bool, std::less<>> tables;  // whether it is a table proper
  std::int64_t bytes = 0;
  std::int64_t steps_left = 0, rows_left = 0, text_left = 0;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path, what, "export it again: nsys export --type sqlite");
  }

  std::unique_ptr<sqlite3_stmt, Close> prepare(const std::string& sql) {
    sqlite3_stmt* s = nullptr;
    const int r = sqlite3_prepare_v2(db.get(), sql.c_str(), static_cast<int>(sql.size()), &s, nullptr);
    std::unique_ptr<sqlite3_stmt, Close> owner(s);
    if (r == SQLITE_NOTADB) fail("is no SQLite database");
    if (r != SQLITE_OK || s == nullptr) fail("is a damaged SQLite database");
    return owner;
  }

  template <class Row>
  void run(const std::string& sql, Row&& row) {
    const auto s = prepare(sql);
    for (int r = sqlite3_step(s.get()); r != SQLITE_DONE; r = sqlite3_step(s.get())) {
      if (r == SQLITE_NOTADB) fail("is no SQLite database");
      // A row takes at least three bytes of its page; pages that refer to each other give rows, and texts, without end.
      if (r != SQLITE_ROW || --rows_left < 0 || text_left < 0) fail("is a damaged SQLite database");
      row(SqliteRow(s.get(), &text_left));
    }
  }
};

SqliteFile::SqliteFile(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  std::error_code fault;
  const auto bytes = std::filesystem::file_size(path, fault);
  if (fault) throw Error(path, "cannot be read", "check the path");
  s.bytes = static_cast<std::int64_t>(std::min<std::uintmax_t>(bytes, std::uintmax_t{1} << 46));
  // Each of a handful of tables is gone through once, some twenty steps of SQLite's machine a row.
  s.rows_left = 4096 + s.bytes / 3;
  s.text_left = (std::int64_t{4} << 20) + 4 * s.bytes;
  s.steps_left = 1'000'000 + s.bytes * 32;

  sqlite3* db = nullptr;
  const int r =
      sqlite3_open_v2(uri(path).c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  s.db.reset(db);
  if (r != SQLITE_OK || db == nullptr) s.fail("cannot be opened");
  const std::pair<int, int> settings[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                          {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                          {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                          {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                          {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}};
  for (const auto& [option, value] : settings) sqlite3_db_config(db, option, value, nullptr);
  const std::pair<int, int> limits[] = {
      {SQLITE_LIMIT_LENGTH, 1 << 20},     {SQLITE_LIMIT_SQL_LENGTH, 1 << 16}, {SQLITE_LIMIT_COLUMN, 256},
      {SQLITE_LIMIT_EXPR_DEPTH, 32},      {SQLITE_LIMIT_COMPOUND_SELECT, 2},  {SQLITE_LIMIT_VDBE_OP, 4096},
      {SQLITE_LIMIT_FUNCTION_ARG, 8},     {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
      {SQLITE_LIMIT_VARIABLE_NUMBER, 16}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},    {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [limit, value] : limits) sqlite3_limit(db, limit, value);
  constexpr int stride = 1000;
  sqlite3_progress_handler(
      db, stride, [](void* state) { return (static_cast<State*>(state)->steps_left -= stride) < 0 ? 1 : 0; },
      state_.get());
  sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-8192; PRAGMA query_only=ON",
               nullptr, nullptr, nullptr);
  s.run("SELECT name, type, rootpage FROM sqlite_master", [&](const SqliteRow& row) {
    const auto name = row.text(0), type = row.text(1);
    // A virtual table has no page of its own.
    if (name && type && (*type == "table" || *type == "view") && s.tables.size() < 4096)
      s.tables.emplace(*name, *type == "table" && row.integer(2).value_or(0) > 0);
  });
}
SqliteFile::SqliteFile(SqliteFile&&) noexcept = default;
SqliteFile::~SqliteFile() = default;

bool SqliteFile::has(std::string_view table) const { return state_->tables.contains(table); }

bool SqliteFile::each(const std::string& table, std::initializer_list<const char*> columns, int needed,
                      const std::function<void(const SqliteRow&)>& row) {
  State& s = *state_;
  const auto known = s.tables.find(table);
  if (known == s.tables.end()) return false;
  if (!known->second) s.fail("has a " + table + " that is no table");
  std::vector<std::string> there;
  s.run("PRAGMA table_xinfo(" + identifier(table) + ")", [&](const SqliteRow& column) {
    if (column.integer(6).value_or(0) != 0) s.fail("has a table " + table + " with computed columns");
    if (const auto name = column.text(1)) there.emplace_back(*name);
  });
  // A quoted name that is no column would be taken for a text: only those that are there are named.
  std::string sql;
  int i = 0;
  for (const char* c : columns) {
    const bool present = std::find(there.begin(), there.end(), c) != there.end();
    if (!present && i < needed) return false;
    sql += (i++ == 0 ? "SELECT " : ", ") + (present ? identifier(c) : std::string("NULL"));
  }
  s.run(sql + " FROM " + identifier(table) + " NOT INDEXED", row);
  return true;
}

}  // namespace vlmest::tool
