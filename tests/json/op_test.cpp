// SPDX-License-Identifier: Apache-2.0
// Entries of an op list: what each name reads, and the tensors that come with it.
#include <gtest/gtest.h>

#include <vlmest/json/op.hpp>
#include <vlmest/json/parse.hpp>

namespace vlmest::op_test {
namespace {

json::SingleOp read(const std::string& text) { return json::read_op(json::parse(text, "list"), "list"); }

void expect_op(const std::string& text, std::int64_t read_bytes, std::int64_t written, std::int64_t inputs) {
  SCOPED_TRACE(text);
  const json::SingleOp s = read(text);
  EXPECT_EQ(cost(s.op).read, Bytes(read_bytes));
  EXPECT_EQ(cost(s.op).written, Bytes(written));
  EXPECT_EQ(s.inputs, Bytes(inputs));
  EXPECT_EQ(s.outputs, Bytes(written));
  EXPECT_GE(s.peak, s.inputs + s.outputs);
}

TEST(OpList, ElementwiseOpsAndStreams) {
  expect_op(R"({"op": "add", "elements": 1024, "dtype": "fp32"})", 8192, 4096, 8192);
  expect_op(R"({"op": "silu_mul", "elements": 1024})", 4096, 2048, 4096);
  expect_op(R"({"op": "silu", "elements": 1024})", 2048, 2048, 2048);
  expect_op(R"({"op": "copy", "elements": 1024})", 2048, 2048, 2048);
  expect_op(R"({"op": "read", "elements": 1024})", 2048, 0, 2048);
  expect_op(R"({"op": "write", "elements": 1024, "dtype": "fp32"})", 0, 4096, 0);
}

TEST(OpList, RopeTakesItsDefaultsFromTheQueries) {
  const std::int64_t q = 2 * 64 * 8 * 128;
  expect_op(R"({"op": "rope", "rows": 64, "heads": 8, "head_dim": 128})", 2 * q + 2 * 2 * 64 * 128, 2 * q,
            2 * q + 2 * 2 * 64 * 128);
  expect_op(R"({"op": "rope", "batch": 2, "rows": 64, "heads": 8, "kv_heads": 2, "head_dim": 128, "rotary_dim": 64,
               "angles": "fp32"})",
            2 * q * 10 / 8 + 2 * 4 * 64 * 64, 2 * q * 10 / 8, 2 * q * 10 / 8 + 2 * 4 * 64 * 64);
  EXPECT_THROW(read(R"({"op": "rope", "rows": 64, "heads": 8, "head_dim": 64, "rotary_dim": 128})"), Error);
  try {
    read(R"({"op": "rope", "rows": 64, "heads": 8, "head_dim": 64, "angles": "float33"})");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where, "list.angles");
  }
}

TEST(OpList, AnEmbeddingHoldsItsWholeTableButReadsTheRowsItTakes) {
  expect_op(R"({"op": "embedding", "rows": 10, "width": 64, "vocab": 1000})", 2 * 640 + 80, 2 * 640, 2 * 64000 + 80);
  EXPECT_THROW(read(R"({"op": "embedding", "rows": 10, "width": 64})"), Error);
}

TEST(OpList, CrossEntropyMakesALossForEachRowAndTheMean) {
  expect_op(R"({"op": "cross_entropy", "rows": 10, "vocab": 1000})", 40000 + 160 + 40, 44, 40000 + 80);
  expect_op(R"({"op": "cross_entropy", "rows": 10, "vocab": 1000, "dtype": "bf16"})", 20000 + 160 + 40, 44, 20000 + 80);
}

TEST(OpList, SoftmaxMayWriteAnotherType) {
  expect_op(R"({"op": "softmax", "rows": 4, "width": 8, "dtype": "bf16"})", 64, 64, 64);
  expect_op(R"({"op": "softmax", "rows": 4, "width": 8, "dtype": "bf16", "out": "fp32"})", 64, 128, 64);
}

TEST(OpList, AnUnknownOpIsAnsweredWithTheKnownOnes) {
  try {
    read(R"({"op": "sofmax"})");
    FAIL();
  } catch (const Error& e) {
    for (const char* name : {"rope", "silu_mul", "embedding", "cross_entropy", "read", "write"})
      EXPECT_NE(e.hint.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace vlmest::op_test
