// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/json/kineto.hpp>

namespace vlmest::kineto_test {
namespace {

using namespace diagnose;

std::string text_of(const std::string& name) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/data/traces_profiler/" + name, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

ProfileTrace read(const std::string& text) { return json::read_kineto(text, "trace"); }

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "trace");
    EXPECT_FALSE(e.hint.empty());
    return e.what_happened;
  }
  return "was read";
}

std::string event(const std::string& category, const std::string& times, const std::string& args = "") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": "n", "pid": 1, "tid": 2, )" + times + R"(, "args": {)" +
         args + "}}";
}

TEST(Kineto, ReadsEveryKindOfEvent) {
  const ProfileTrace t = read(text_of("relative.json"));
  EXPECT_EQ(t.base, 1760000000000000000);
  EXPECT_EQ(t.rank, 1);
  EXPECT_EQ(t.ranks, 4);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(t.devices[0].sm, 90);
  EXPECT_EQ(t.devices[0].multiprocessors, 132);
  EXPECT_EQ(t.devices[0].memory, Bytes(150109880320));

  ASSERT_EQ(t.kernels.size(), 2u);
  const KernelEvent& k = t.kernels[0];
  EXPECT_EQ(k.time, (Interval{1'130'000, 1'430'000}));
  EXPECT_EQ(k.correlation, 1);
  EXPECT_EQ(k.op, 11);
  EXPECT_EQ(k.stream, 7);
  EXPECT_EQ(t.names[k.name], "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT");
  EXPECT_EQ(t.kernels[1].name, k.name);

  ASSERT_EQ(t.copies.size(), 2u);
  EXPECT_EQ(t.copies[0].kind, CopyKind::host_to_device);
  EXPECT_TRUE(t.copies[0].pageable);
  EXPECT_EQ(t.copies[0].bytes, Bytes(1 << 20));
  ASSERT_EQ(t.calls.size(), 6u);
  EXPECT_EQ(t.calls[0].kind, HostCallKind::launch);
  EXPECT_EQ(t.calls[1].kind, HostCallKind::copy);
  EXPECT_EQ(t.calls[2].kind, HostCallKind::synchronise);
  ASSERT_EQ(t.annotations.size(), 2u);
  EXPECT_EQ(t.annotations[0].kind, AnnotationKind::step);

  ASSERT_EQ(t.ops.size(), 4u);
  EXPECT_EQ(t.ops[0].inputs, 0);
  EXPECT_EQ(t.ops[1].inputs, t.ops[3].inputs);
  const auto& inputs = t.signatures[static_cast<std::size_t>(t.ops[1].inputs)];
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].sizes, (std::vector<std::int64_t>{2048, 4096}));
  EXPECT_EQ(inputs[1].strides, (std::vector<std::int64_t>{1, 4096}));
  EXPECT_EQ(t.names[inputs[1].type], "c10::BFloat16");

  ASSERT_EQ(t.memory.size(), 2u);
  EXPECT_EQ(t.memory[0].allocated, Bytes(1024));
  EXPECT_FALSE(t.memory[0].failed);
  EXPECT_TRUE(t.memory[1].failed);
  EXPECT_EQ(t.memory[1].bytes, std::int64_t{8} << 30);
  EXPECT_EQ(t.memory[1].device, 0);
  EXPECT_TRUE(t.with_shapes);
  EXPECT_FALSE(t.truncated);
  EXPECT_EQ(t.broken, 0);
}

TEST(Kineto, AbsoluteMicrosecondsAndOldNames) {
  const ProfileTrace a = read(text_of("absolute.json")), r = read(text_of("relative.json"));
  EXPECT_EQ(a.base, 0);
  ASSERT_EQ(a.kernels.size(), r.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    EXPECT_EQ(a.kernels[i].time.begin - r.kernels[i].time.begin, r.base);
    EXPECT_EQ(a.kernels[i].op, r.kernels[i].op);
  }
  EXPECT_EQ(a.copies.size(), r.copies.size());
  EXPECT_EQ(a.calls.size(), r.calls.size());
  EXPECT_EQ(a.ops.size(), r.ops.size());
}

TEST(Kineto, ABareListIsATrace) {
  const ProfileTrace t = read(text_of("bare_list.json"));
  EXPECT_EQ(t.kernels.size(), 2u);
  EXPECT_FALSE(t.truncated);
}

TEST(Kineto, PiecesOfAnySizeGiveTheSame) {
  const std::string text = text_of("broken_quotes.json");
  for (const std::size_t size : {1u, 2u, 7u, 64u, 4096u}) {
    std::size_t at = 0;
    const ProfileTrace t = json::read_kineto(
        [&]() -> std::string_view {
          const std::string_view piece = std::string_view(text).substr(std::min(at, text.size()), size);
          at += piece.size();
          return piece;
        },
        "trace");
    EXPECT_EQ(t.kernels.size(), 2u);
    EXPECT_EQ(t.ops.size(), 4u);
    EXPECT_EQ(t.broken, 2);
  }
}

TEST(Kineto, EventsWithUnescapedQuotesAreLeftOut) {
  const ProfileTrace t = read(text_of("broken_quotes.json")), whole = read(text_of("relative.json"));
  EXPECT_EQ(t.broken, 2);  // one with two quotes too many, one with one
  EXPECT_EQ(t.ops.size(), whole.ops.size());
  EXPECT_EQ(t.calls.size(), whole.calls.size());
  EXPECT_EQ(t.kernels.size(), whole.kernels.size());
  EXPECT_EQ(t.annotations.size(), whole.annotations.size());
}

TEST(Kineto, ABrokenMemberBeforeTheEventsIsPassedOver) {
  const std::string list = R"("traceEvents": [)" + event("kernel", R"("ts": 1, "dur": 2)") + "]}";
  for (const std::string member :
       {R"("a": "b "c" d", )", R"("a": "b "c d", )", R"("a": nonsense, )", R"("a" 1, )", R"("a": }, )"})
    EXPECT_EQ(read("{" + member + list).kernels.size(), 1u) << member;
}

TEST(Kineto, AFileThatEndsEarlyIsReadToItsEnd) {
  const std::string whole = text_of("relative.json");
  const ProfileTrace t = read(text_of("cut.json"));
  EXPECT_TRUE(t.truncated);
  EXPECT_EQ(t.kernels.size(), 1u);
  const auto list = whole.find("\"traceEvents\"");
  int read_ones = 0;
  for (std::size_t n = 0; n < whole.size(); n += 13) {
    try {
      const ProfileTrace part = read(whole.substr(0, n));
      EXPECT_TRUE(part.truncated || part.memory.size() == 2) << n;
      ++read_ones;
    } catch (const Error& e) {
      EXPECT_LT(n, list + 450) << e.what();
    }
  }
  EXPECT_GT(read_ones, 200);
}

TEST(Kineto, RefusesWhatIsNoTrace) {
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal(" \n"), "is empty");
  EXPECT_EQ(refusal("hello"), "is no JSON trace");
  EXPECT_EQ(refusal("{}"), "has no traceEvents");
  EXPECT_EQ(refusal(R"({"traceEvents": 5})"), "has no traceEvents");
  EXPECT_EQ(refusal("{\"model_type\": \"llava\", \"text_config\": {}}"), "has no traceEvents");
  EXPECT_EQ(refusal("[1, 2, 3]"), "has no event that can be read");
  EXPECT_EQ(refusal("[" + std::string(100000, '{')), "has no event that can be read");
  EXPECT_EQ(refusal(std::string(100000, '[')), "has no event that can be read");
  EXPECT_EQ(refusal("[{\"op\": \"linear\", \"m\": 1}]"), "has no event that can be read");
}

TEST(Kineto, AnEmptyListIsATraceOfNothing) { EXPECT_TRUE(read(R"({"traceEvents": []})").empty()); }

TEST(Kineto, TimesAreExactToTheNanosecond) {
  const auto begin = [](const std::string& ts) {
    const ProfileTrace t = read("[" + event("kernel", "\"ts\": " + ts + ", \"dur\": 0.001") + "]");
    return t.kernels.empty() ? Ns{-1} : t.kernels[0].time.begin;
  };
  EXPECT_EQ(begin("1760000000123456.789"), 1760000000123456789);
  EXPECT_EQ(begin("1760000000123456"), 1760000000123456000);
  EXPECT_EQ(begin("0.1"), 100);
  EXPECT_EQ(begin("12.3456"), 12345);
  EXPECT_EQ(begin("1.5e3"), 1'500'000);
  EXPECT_EQ(begin("-0.5"), -500);
}

TEST(Kineto, NumbersBeyondAnyClockAreBroken) {
  for (const std::string times :
       {R"("ts": 1e300, "dur": 1)", R"("ts": 9223372036854775807, "dur": 1)", R"("ts": 18446744073709551615, "dur": 1)",
        R"("ts": 1, "dur": -5)", R"("ts": 1, "dur": 9e15)", R"("ts": -1e300, "dur": 1)"}) {
    const ProfileTrace t = read("[" + event("kernel", times) + "," + event("kernel", R"("ts": 1, "dur": 1)") + "]");
    EXPECT_EQ(t.broken, 1) << times;
    EXPECT_EQ(t.kernels.size(), 1u) << times;
  }
}

TEST(Kineto, ArgumentsOfEveryForm) {
  const ProfileTrace t = read(
      "[" +
      event(
          "cpu_op", R"("ts": 1, "dur": 1)",
          R"("Input Dims": [[[1, 2], [3, 4]], [], [5, 6], null, {"a": [1]}], "Input type": ["TensorList", "", "float"],
               "Concrete Inputs": ["", "3"], "Input Strides": [[[2, 1], [4, 1]], [], [6, 1]], "x": {"Input Dims": [[9]]})") +
      "]");
  ASSERT_EQ(t.signatures.size(), 2u);
  const auto& in = t.signatures[1];
  ASSERT_GE(in.size(), 3u);
  EXPECT_TRUE(in[0].sizes.empty());  // a list of tensors is none
  EXPECT_EQ(in[2].sizes, (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(in[2].strides, (std::vector<std::int64_t>{6, 1}));
  EXPECT_EQ(t.names[in[2].type], "float");
  EXPECT_EQ(t.names[in[1].value], "3");
}

}  // namespace
}  // namespace vlmest::kineto_test
