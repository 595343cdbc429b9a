// SPDX-License-Identifier: Apache-2.0
#include "evidence/nsys_sqlite.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>

namespace vlmest::tool::nsys_sqlite_test {
namespace {

using namespace diagnose;

/// A database made from SQL, gone with the test.
class Database {
 public:
  explicit Database(const std::string& sql)
      : path_(
            (std::filesystem::temp_directory_path() / ("vlmest nsys%test?#" + std::to_string(getpid()) + ".sqlite"))) {
    std::filesystem::remove(path_);
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* fault = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &fault), SQLITE_OK) << (fault != nullptr ? fault : "");
    sqlite3_free(fault);
    sqlite3_close(db);
  }
  ~Database() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string refusal(const std::string& path) {
  try {
    read_nsys_sqlite(path);
  } catch (const Error& e) {
    EXPECT_FALSE(e.hint.empty());
    return e.what_happened;
  }
  return "was read";
}

/// The columns that are looked at, and some others, of a report of Nsight Systems.
const std::string tables = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
  textId INTEGER);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER);
INSERT INTO StringIds VALUES (1, 'nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT'), (2, 'nvjet'),
  (3, 'cudaLaunchKernel_v7000'), (4, 'cudaMemcpyAsync_v3020'), (5, 'ProfilerStep#7'), (6, 'cudaDeviceSynchronize_v3020');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 150109880320, 132);
)";

TEST(NsysSqlite, ReadsTheTablesOfAReport) {
  const Database db(tables + R"(
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 5000, 0, 1, 7, 11, 99, 1, 2, 64), (6000, 6500, 0, 1, 7, 12, 99, 1, 2, 64);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1000, 1800, 0, 1, 7, 10, 99, 4096, 1, 0, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 1900, 0, 4242, 10, 4, 0), (1950, 1990, 0, 4242, 11, 3, 0),
  (5500, 5540, 0, 4242, 12, 3, 0), (5600, 6600, 0, 4242, 13, 6, 0);
INSERT INTO NVTX_EVENTS VALUES (400, 7000, 59, NULL, 4242, 5), (450, NULL, 34, 'a mark', 4242, NULL),
  (460, 480, 60, 'load', 4242, NULL);
)");
  const ProfileTrace t = read_nsys_sqlite(db.path());
  ASSERT_EQ(t.kernels.size(), 2u);
  EXPECT_EQ(t.kernels[0].time, (Interval{2000, 5000}));
  EXPECT_EQ(t.kernels[0].correlation, 11);
  EXPECT_EQ(t.kernels[0].stream, 7);
  EXPECT_EQ(t.names[t.kernels[0].name], "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT");
  ASSERT_EQ(t.copies.size(), 1u);
  EXPECT_EQ(t.copies[0].kind, CopyKind::host_to_device);
  EXPECT_EQ(t.copies[0].bytes, Bytes(4096));
  EXPECT_TRUE(t.copies[0].pageable);
  ASSERT_EQ(t.calls.size(), 4u);
  EXPECT_EQ(t.calls[0].kind, HostCallKind::copy);
  EXPECT_EQ(t.calls[1].kind, HostCallKind::launch);
  EXPECT_EQ(t.calls[3].kind, HostCallKind::synchronise);
  ASSERT_EQ(t.annotations.size(), 2u);
  EXPECT_EQ(t.annotations[0].kind, AnnotationKind::step);
  EXPECT_EQ(t.names[t.annotations[1].name], "load");
  EXPECT_EQ(t.other_events, 1);
  EXPECT_EQ(t.broken, 0);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(t.devices[0].multiprocessors, 132);

  const SlowRun r = slow_run(t);
  EXPECT_EQ(r.gpu.window, (Interval{400, 7000}));
  EXPECT_EQ(r.gpu.busy_time(), 800 + 3000 + 500);
  EXPECT_EQ(r.idle.of(Idle::launch), 600 + 200 + 1000);
  EXPECT_EQ(r.idle.of(Idle::synchronise), 500);
}

TEST(NsysSqlite, RanksInOneReportAreKeptApart) {
  // CUPTI counts from 1 in each process: both have a call 11. 24 bits of a process lie above 24 of a thread.
  const auto sql = [](const char* second) {
    return tables +
           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 5000, 0, 1, 7, 11, 7 << 24, 1, 2, 64), "
           "(2000, 2500, 1, 1, 7, 11, " +
           second +
           ", 1, 2, 64);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1950, 1990, 0, (7 << 24) + 1, 11, 3, 0), "
           "(1000, 1100, 0, (8 << 24) + 2, 11, 3, 0), (1200, 4900, 0, (8 << 24) + 2, 12, 6, 0);";
  };
  const Database two(sql("8 << 24"));
  const ProfileTrace t = read_nsys_sqlite(two.path());
  ASSERT_EQ(t.kernels.size(), 2u);
  EXPECT_NE(t.kernels[0].correlation, t.kernels[1].correlation);
  EXPECT_EQ(t.kernels[0].correlation, t.calls[0].correlation);
  EXPECT_EQ(t.kernels[1].correlation, t.calls[1].correlation);
  EXPECT_EQ(t.calls[0].process, 7);
  const SlowRun r = slow_run(t);
  EXPECT_EQ(r.gpu.device, 0);
  EXPECT_EQ(r.gpu.hosts, std::vector<std::int64_t>{7});
  EXPECT_EQ(r.idle.synchronisations.count, 0);

  const Database unknown(sql("NULL"));  // where a row does not tell its process, none is used
  const ProfileTrace u = read_nsys_sqlite(unknown.path());
  EXPECT_EQ(u.kernels[1].correlation, 11);
  EXPECT_EQ(u.calls[0].process, 0);
}

TEST(NsysSqlite, TablesMayBeMissing) {
  const Database kernels_alone(R"(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2), (3, 5);)");
  const ProfileTrace t = read_nsys_sqlite(kernels_alone.path());
  EXPECT_EQ(t.kernels.size(), 2u);
  EXPECT_EQ(t.names[t.kernels[0].name], "");
}

TEST(NsysSqlite, ATableWithoutItsColumnsIsLeftOut) {
  // "end" would otherwise be taken for a text by SQLite.
  const Database db(R"(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, deviceId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 20, 0);)");
  const ProfileTrace t = read_nsys_sqlite(db.path());
  ASSERT_EQ(t.kernels.size(), 1u);
  EXPECT_EQ(t.names[t.kernels[0].name], "CUDA graph");
}

TEST(NsysSqlite, RowsOfOtherTypesAreCountedAndLeftOut) {
  const Database db(R"(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, correlationId, demangledName);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('a', 2, 0, 0, 0), (1, NULL, 0, 0, 0), (x'00', 2, 0, 0, 0), (5, 1, 0, 0, 0),
  (-9223372036854775808, 9223372036854775807, 0, 0, 0), (1.5, 2.5, 0, 0, 0), (1, 2, 'x', 'y', 9223372036854775807);)");
  const ProfileTrace t = read_nsys_sqlite(db.path());
  EXPECT_EQ(t.kernels.size(), 1u);
  EXPECT_EQ(t.broken, 6);
}

TEST(NsysSqlite, RefusesWhatCouldRunCode) {
  const std::string columns = "(start INTEGER, end INTEGER)";
  EXPECT_EQ(
      refusal(Database("CREATE TABLE a" + columns +
                       "; CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL "
                       "SELECT start + 1 FROM c) SELECT start, start AS end FROM c;")
                  .path()),
      "has a CUPTI_ACTIVITY_KIND_KERNEL that is no table");
  EXPECT_EQ(
      refusal(Database("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end AS (length(zeroblob(1000000)) + "
                       "start)); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start) VALUES (1);")
                  .path()),
      "has a table CUPTI_ACTIVITY_KIND_KERNEL with computed columns");
}

TEST(NsysSqlite, RefusesWhatIsNoDatabase) {
  EXPECT_EQ(refusal("/nowhere/at/all.sqlite"), "cannot be read");
  EXPECT_EQ(refusal(Database("CREATE TABLE a (b);").path()), "holds no table of Nsight Systems");
  const auto junk = std::filesystem::temp_directory_path() / ("vlmest_junk" + std::to_string(getpid()));
  std::ofstream(junk) << std::string(10000, 'x');
  EXPECT_EQ(refusal(junk.string()), "is no SQLite database");
  std::filesystem::remove(junk);
}

TEST(NsysSqlite, ADamagedFileEndsInAnError) {
  const Database db(tables + R"(
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000)
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 10, i * 10 + 5, 0, 1, 7, i, 1, 1, 2, 3 FROM c;)");
  std::string bytes;
  {
    std::ifstream in(db.path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_EQ(read_nsys_sqlite(db.path()).kernels.size(), 5000u);
  const auto copy = std::filesystem::temp_directory_path() / ("vlmest_damaged" + std::to_string(getpid()));
  int refused = 0;
  unsigned random = 1;
  for (int i = 0; i < 300; ++i) {
    std::string bad = bytes;
    for (int n = 0; n < 1 + i / 4; ++n) {
      random = random * 1664525 + 1013904223;
      bad[(random >> 4) % bad.size()] = static_cast<char>(random >> 24);
    }
    if (i % 7 == 0) bad.resize(bad.size() / 2);
    std::ofstream(copy, std::ios::binary | std::ios::trunc) << bad;
    try {
      slow_run(read_nsys_sqlite(copy.string()));
    } catch (const Error&) {
      ++refused;
    }
  }
  std::filesystem::remove(copy);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace vlmest::tool::nsys_sqlite_test
