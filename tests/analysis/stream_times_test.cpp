// SPDX-License-Identifier: Apache-2.0
// Streams: each runs in turn, and waits only where it is told to.
#include <gtest/gtest.h>

#include <vlmest/analysis/streams.hpp>

namespace vlmest::stream_times_test {
namespace {

TEST(StreamTimes, RunSideBySide) {
  Streams s;
  s.run(Stream::compute, {3});
  s.run(Stream::communication, {2});
  s.run(Stream::communication, {2});
  EXPECT_EQ(s.end(Stream::compute), Seconds{3});
  EXPECT_EQ(s.wall(), Seconds{4}) << "what one is given runs in turn";
  EXPECT_EQ(s.end(Stream::host), Seconds{});
}

TEST(StreamTimes, WaitForEachOther) {
  Streams s;
  s.run(Stream::compute, {3});
  s.run(Stream::communication, {1});
  s.wait(Stream::communication, Stream::compute);
  s.wait(Stream::compute, Stream::communication);
  s.run(Stream::communication, {1});
  EXPECT_EQ(s.wall(), Seconds{4});
  EXPECT_EQ(s.end(Stream::compute), Seconds{3}) << "it had ended already";
  s.join();
  s.run(Stream::to_host, {1});
  EXPECT_EQ(s.wall(), Seconds{5});
}

TEST(StreamTimes, KernelsRunBehindTheirLaunches) {
  Streams s;
  s.run(Stream::host, {10});
  EXPECT_TRUE(s.run_launched(Stream::compute, {4}, {1})) << "only the last is still to be run";
  EXPECT_EQ(s.wall(), Seconds{11});
  s.run(Stream::host, {1});
  EXPECT_FALSE(s.run_launched(Stream::compute, {4}, {1}));
  EXPECT_EQ(s.wall(), Seconds{15});
}

TEST(StreamTimes, RepeatWhatWasRun) {
  Streams once;
  once.run(Stream::host, {1});
  const Streams before = once;
  once.run(Stream::compute, {2});
  once.run(Stream::host, {1});
  Streams thrice = once;
  thrice.repeat(before, 3);
  EXPECT_EQ(thrice.end(Stream::compute), Seconds{6});
  EXPECT_EQ(thrice.end(Stream::host), Seconds{4});
}

}  // namespace
}  // namespace vlmest::stream_times_test
