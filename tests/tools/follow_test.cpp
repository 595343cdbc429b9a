// SPDX-License-Identifier: Apache-2.0
// Files that grow, are rotated, truncated, removed: which lines come out, and what is said of it.
#include "watch/follow.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::tool::follow_test {
namespace {
namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

Lines split(const std::vector<std::string>& pieces) {
  LineSplitter s;
  Lines r;
  const auto keep = [&r](std::string_view line) { r.emplace_back(line); };
  for (const auto& p : pieces) s.feed(p, keep);
  s.finish(keep);
  return r;
}

TEST(LineSplitter, EndsLinesAsLogsAndProgressBarsDo) {
  EXPECT_EQ(split({"a\nb\r\nc\rd\n\n\re"}), (Lines{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(split({}), Lines{});
}

TEST(LineSplitter, PutsPiecesTogether) {
  EXPECT_EQ(split({"st", "ep 1\nst", "", "ep", " 2"}), (Lines{"step 1", "step 2"}));
  const std::string text = "one\ntwo\r\nthree";
  for (std::size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(split({text.substr(0, i), text.substr(i)}), (Lines{"one", "two", "three"})) << i;
}

TEST(LineSplitter, LeavesOutLinesOfMoreThanAMiB) {
  const std::string fits(LineSplitter::longest, 'x');
  EXPECT_EQ(split({"a\n" + fits + "\nb"}), (Lines{"a", fits, "b"}));
  EXPECT_EQ(split({"a\n" + fits + "x\nb"}), (Lines{"a", "b"}));
  EXPECT_EQ(split({"a\n" + fits, fits, fits, "\nb"}), (Lines{"a", "b"}));
  EXPECT_EQ(split({fits, "x"}), Lines{});
}

/// A file of this test, followed; what came out of it since the last look.
class Follow : public testing::Test {
 protected:
  Follow() { fs::create_directories(folder_); }
  ~Follow() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app | std::ios::binary) << text; }

  Lines read(std::size_t most = 1 << 20) {
    lines_.clear();
    notes_.clear();
    while (file_.read({.line = [this](std::string_view line) { lines_.emplace_back(line); },
                       .restarted = [this] { lines_.emplace_back("<restarted>"); },
                       .noticed = [this](const std::string& what) { notes_ += what.substr(path_.size()) + ";"; }},
                      most)) {
    }
    return lines_;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("vlmest-follow-" + std::to_string(getpid()));
  const std::string path_ = (folder_ / "log").string();
  FollowedFile file_{path_};
  Lines lines_;
  std::string notes_;
};

TEST_F(Follow, GivesEachLineOnceItHasEnded) {
  append("one\ntw");
  EXPECT_EQ(read(), Lines{"one"});
  EXPECT_EQ(read(), Lines{});
  append("o\nthree\n");
  EXPECT_EQ(read(), (Lines{"two", "three"}));
  EXPECT_EQ(notes_, "");
}

TEST_F(Follow, WaitsForAFileAndSaysSoOnce) {
  EXPECT_EQ(read(), Lines{});
  EXPECT_EQ(notes_, " is not there yet, waiting for it;");
  EXPECT_EQ(read(), Lines{});
  EXPECT_EQ(notes_, "");
  append("one\n");
  EXPECT_EQ(read(), Lines{"one"});
}

TEST_F(Follow, ReadsARotatedFileToItsEndAndThenTheNewOne) {
  append("one\n");
  read();
  append("two\nlast of the old");
  fs::rename(path_, path_ + ".1");
  append("first of the new\n");
  EXPECT_EQ(read(), (Lines{"two", "last of the old", "<restarted>", "first of the new"}));
  EXPECT_EQ(notes_, " was replaced, reading the new file;");
  append("more\n");
  EXPECT_EQ(read(), Lines{"more"});
}

TEST_F(Follow, ReadsATruncatedFileFromItsBeginning) {
  append("one\ntwo\nthr");
  EXPECT_EQ(read(), (Lines{"one", "two"}));
  fs::resize_file(path_, 0);
  append("new\n");
  EXPECT_EQ(read(), (Lines{"thr", "<restarted>", "new"}));
  EXPECT_EQ(notes_, " was truncated, reading it from its beginning;");
}

TEST_F(Follow, WaitsForAFileThatWasRemoved) {
  append("one\n");
  read();
  append("two\n");
  fs::remove(path_);
  EXPECT_EQ(read(), Lines{"two"});
  EXPECT_EQ(read(), Lines{});
  EXPECT_EQ(notes_, " has gone, waiting for it to come back;");
  append("three\n");
  EXPECT_EQ(read(), (Lines{"<restarted>", "three"}));
}

TEST_F(Follow, ReadsALongFileInPiecesAndNoLineTwice) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "line " + std::to_string(i) + "\n";
  append(text);
  std::string got;
  int calls = 0;
  const FollowSinks sinks{.line = [&got](std::string_view line) { got += std::string(line) + "\n"; },
                          .restarted = [] { FAIL(); },
                          .noticed = [](const std::string& what) { FAIL() << what; }};
  while (file_.read(sinks, 1)) ++calls;
  EXPECT_GT(calls, 10);
  EXPECT_EQ(got, text);
}

TEST_F(Follow, SaysWhyAFileCannotBeRead) {
  fs::create_directory(path_);
  try {
    read();
    FAIL();
  } catch (const vlmest::Error& e) {
    EXPECT_EQ(e.where, path_);
    EXPECT_EQ(e.what_happened, "cannot be read: Is a directory");
  }
}

TEST_F(Follow, DoesNotWaitForTheWriterOfAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(is_stream(path_));
  EXPECT_EQ(read(), Lines{});
  EXPECT_TRUE(is_stream("-"));
  EXPECT_FALSE(is_stream(folder_.string()));
  EXPECT_FALSE(is_stream(path_ + "-that-is-not-there"));
}

}  // namespace
}  // namespace vlmest::tool::follow_test
