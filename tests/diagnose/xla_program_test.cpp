// SPDX-License-Identifier: Apache-2.0
// Programs that XLA compiled and that do not fit: its tables, and what they tell.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/xla_program.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_program.hpp>

namespace vlmest::diagnose::xla_program_test {
namespace {

const std::string on_tpu =
    "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.\n"
    "Total hbm usage >= 9.86G:\n    reserved        530.00M \n    program           9.35G \n    arguments            "
    "0B \n"
    "Program hbm requirement 9.35G:\n    HLO temp          9.35G (3.1% utilization: 0.0% fragmentation (30.0K))\n"
    "  Largest program allocations in hbm:\n\n  1. Size: 9.20G\n"
    "     Operator: op_name=\"jit(_normal)/jit(main)/erf_inv\" source_file=\"scope.py\" source_line=979\n"
    "     Shape: f32[19298688,2]{1,0:T(8,128)}\n     Unpadded size: 147.24M\n"
    "     Extra memory due to padding: 9.06G (64.0x expansion)\n     XLA label: copy.1 = copy(fusion.7)\n"
    "     ==========================\n\n  2. Size: 147.38M\n     Shape: f32[768,50257]{1,0:T(8,128)}\n";

Failure failure_in(const std::string& text) {
  Failure f = failure_of(find_oom_messages(text).front());
  f.compiled = find_xla_program(text);
  return f;
}

TEST(XlaProgram, IsReadFromTheTableOfATpu) {
  const auto p = find_xla_program(on_tpu);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->arguments->value, Bytes{});
  EXPECT_NEAR(static_cast<double>(p->temporaries->value.value()), 9.35 * (1 << 30), 1);
  ASSERT_EQ(p->buffers.size(), 2u);
  EXPECT_EQ(p->buffers[0].op, "jit(_normal)/jit(main)/erf_inv");
  EXPECT_EQ(p->buffers[0].shape, (Shape{19298688, 2}));
  EXPECT_EQ(p->buffers[0].dtype, "fp32");
  EXPECT_NEAR(p->buffers[0].padding, 64, 0.1);
  EXPECT_EQ(p->buffers[1].op, "");
}

TEST(XlaProgram, IsReadFromTheTableOfAGpu) {
  const auto p = find_xla_program(
      "BufferAssignment stats:\n             parameter allocation:    6.39GiB\n     preallocated temp allocation:  "
      "397.80GiB\n"
      "Peak buffers:\n\tBuffer 1:\n\t\tSize: 1.69GiB\n\t\tOperator: op_name=\"pmap(train_step)/visual/mlp/mul\"\n"
      "\t\tXLA Label: fusion\n\t\tShape: f32[1,256,3072,577]\n\t\t==========================\n");
  ASSERT_TRUE(p);
  EXPECT_NEAR(static_cast<double>(p->arguments->value.value()), 6.39 * (1 << 30), 1);
  ASSERT_EQ(p->buffers.size(), 1u);
  EXPECT_EQ(p->buffers[0].label, "fusion");
  EXPECT_EQ(p->buffers[0].shape, (Shape{1, 256, 3072, 577}));
}

TEST(XlaProgram, OfOtherTextsIsNone) {
  for (const char* none : {"", "Size: 9.20G", "arguments 0B program 9.35G", "Total hbm usage >= 9.86G:",
                           "Peak buffers:", "Operator: op_name=", "Peak buffers:\nSize: x\nShape: f32[1,,2]"})
    EXPECT_FALSE(find_xla_program(none)) << none;
  // A shape that no tensor has leaves the buffer without one.
  for (const char* odd :
       {"f32[]", "f32[1,2,3,4,5,6,7]", "f32[-1,2]", "f32[99999999999999999999]", "(f32[2], f32[3])", "f32"}) {
    const auto p = find_xla_program("Peak buffers:\nSize: 1.69GiB\nShape: " + std::string(odd) + "\n");
    ASSERT_TRUE(p) << odd;
    EXPECT_LE(p->buffers[0].shape.rank(), 1) << odd;
  }
}

TEST(XlaProgram, IsJudgedByItsLargestBuffer) {
  const Verdict v = judge(failure_in(on_tpu));
  EXPECT_EQ(v.cause, Cause::weights);
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->shape, (Shape{19298688, 2}));
  EXPECT_EQ(v.tensor->scope, "jit(_normal)/jit(main)/erf_inv");
  EXPECT_NE(v.why.find("64 times what its elements take"), std::string::npos) << v.why;
}

TEST(XlaProgram, IsJudgedByItsArgumentsWhereTheyAreMore) {
  const std::string table =
      "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.\nTotal hbm usage >= 30.73G:\n"
      "    program          14.31G \n    arguments        15.90G \n";
  EXPECT_EQ(judge(failure_in(table)).cause, Cause::weights);
  EXPECT_EQ(judge(failure_in(table +
                             "  1. Size: 1.46G\n     Operator: op_name=\"jit(train_step)/transpose(jvp(Model))/a\"\n"))
                .cause,
            Cause::optimizer_state);
}

TEST(XlaProgram, HasBuffersOfKinds) {
  const auto cause = [](const char* op, const Shape& shape, bool trains = false, const char* label = "") {
    return cause_of({.size = {}, .op = op, .label = label, .shape = shape, .dtype = {}}, trains);
  };
  EXPECT_EQ(cause("jit(generate)/layers/26/attn/dot_general", {1, 16, 8192, 8192}), Cause::attention_scores);
  EXPECT_EQ(cause("jit(f)/decode/dot_general", {8, 2048, 256000}), Cause::logits);
  EXPECT_EQ(cause("jit(f)/log_softmax/sub", {16384, 256000}), Cause::logits);
  EXPECT_EQ(cause("jit(generate)/embed/convert_element_type", {256000, 3072}, false, "convert.1 = convert(param.72)"),
            Cause::weights);
  EXPECT_EQ(cause("jit(f)/img/vision/encoder/mlp", {8, 4096, 4304}), Cause::vision_tiles);
  EXPECT_EQ(cause("jit(f)/img/vision/encoder/mlp", {8, 4096, 4304}, true), Cause::activations);
  EXPECT_EQ(cause("jit(f)/kv_cache/dynamic_update_slice", {8, 4096, 8, 128}), Cause::kv_cache);
}

TEST(XlaMessage, HasItsFigureInBytes) {
  const auto all = find_oom_messages(
      "RESOURCE_EXHAUSTED: Failed to allocate request for 625.00MiB (655360000B) on device ordinal 7\n");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(all[0].requested);
  EXPECT_EQ(*all[0].requested, PrintedSize::exactly(Bytes(655360000)));
}

}  // namespace
}  // namespace vlmest::diagnose::xla_program_test
