// SPDX-License-Identifier: Apache-2.0
// What `watch` takes for memory in use: figures of tensors and of devices, not what a message says that was asked for,
// and nothing of what is no text.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>

#include "watch/log_readings.hpp"

namespace vlmest::tool::watch_input_test {
namespace {

std::vector<diagnose::MemoryReading> read(std::string_view text) {
  LogReadings log;
  std::vector<diagnose::MemoryReading> r;
  for (std::size_t at = 0; at < text.size();)
    for (auto& reading : log.read(diagnose::next_line(text, at))) r.push_back(std::move(reading));
  return r;
}

TEST(WatchInput, WhatWasAskedForIsNoMemoryInUse) {
  for (const char* line :
       {"Tried to allocate 2.00 GiB", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "failed to allocate CUDA0 buffer of size 19327352832", "Failed to allocate memory: 3 GiB",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 274877906944 bytes.",
        "[metal::malloc] Attempting to allocate 51619840000 bytes which is greater than the maximum "
        "allowed buffer size of 21743271936 bytes.",
        "MemoryError: Unable to allocate 7.45 GiB for an array"})
    EXPECT_TRUE(read(line).empty()) << line;
}

/// Of an out-of-memory message the memory of tensors is a reading, wherever it was found; the request is none.
TEST(WatchInput, NoMessagesRequestIsAReading) {
  int files = 0, readings = 0;
  for (const char* folder : {"oom", "oom_runs", "oom_held_out"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(VLMEST_SOURCE_DIR) + "/tests/data/" + folder)) {
      if (entry.path().extension() != ".txt") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream whole;
      whole << in.rdbuf();
      const std::string text = whole.str();
      ++files;
      for (const auto& r : read(text)) {
        ++readings;
        for (const auto& size : {r.used, r.peak, r.reserved}) {
          if (!size) continue;
          for (const auto& m : diagnose::find_oom_messages(text))
            if (m.requested && m.requested->holds(*size) && !(m.allocated && m.allocated->holds(*size)))
              ADD_FAILURE() << entry.path().filename() << ": " << size->value();
        }
      }
    }
  EXPECT_GT(files, 140);
  EXPECT_GT(readings, 60);  // what messages say that tensors take
}

TEST(WatchInput, FiguresInUseStay) {
  const auto r = read("step 10 gpu mem alloc: 12.5 GB\nstep 20 max memory allocated: 14 GiB\nmemory allocated 3 GiB\n");
  ASSERT_EQ(r.size(), 3u);
  EXPECT_EQ(r[0].used, Bytes(std::int64_t{25} << 29));
  EXPECT_EQ(r[1].peak, Bytes(std::int64_t{14} << 30));
}

TEST(WatchInput, BinaryLinesAreNoText) {
  const std::string line = "step 10 memory allocated: 12 GiB";
  LogReadings log;
  EXPECT_TRUE(log.read(std::string("memory allocated: 12 GiB\0x", 26)).empty());
  EXPECT_EQ(log.content(), LogContent::binary);

  LogReadings damaged;  // a control character in a log, which goes on
  EXPECT_EQ(damaged.read(line).size(), 1u);
  EXPECT_TRUE(damaged.read("memory allocated: \x01 13 GiB").empty());
  EXPECT_EQ(damaged.content(), LogContent::damaged);
  EXPECT_EQ(damaged.read(line).size(), 1u);

  LogReadings hole;  // a log that was truncated while its writer had it open
  EXPECT_EQ(hole.read(std::string(100, '\0') + line).size(), 1u);
  EXPECT_EQ(hole.read("\x1b[32m" + line + "\x0f\x08").size(), 1u);
  EXPECT_EQ(hole.content(), LogContent::text);
}

}  // namespace
}  // namespace vlmest::tool::watch_input_test
