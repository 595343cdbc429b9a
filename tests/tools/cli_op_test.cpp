// SPDX-License-Identifier: Apache-2.0
// vlmest op: a list of operations in, the same list with costs out.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_op_test {
namespace {

const std::string operations = R"([
  {"op": "linear", "m": 4096, "n": 11008, "k": 4096, "dtype": "bf16"},
  {"op": "sdpa", "batch": 1, "heads": 32, "kv_heads": 8, "q_len": 4096, "kv_len": 4096, "head_dim": 128, "causal": true, "dtype": "bf16"},
  {"op": "fft2", "batch": 2, "channels": 4, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "ifft2", "batch": 2, "channels": 4, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "rfft2", "batch": 8, "channels": 1024, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "irfft2", "batch": 8, "channels": 1024, "height": 24, "width": 24, "dtype": "fp32"},
  {"op": "add", "elements": 16777216, "dtype": "bf16"},
  {"op": "silu", "elements": 16777216, "dtype": "bf16"},
  {"op": "copy", "elements": 16777216, "dtype": "fp32"},
  {"op": "softmax", "elements": 16777216, "dtype": "bf16"},
  {"op": "layernorm", "elements": 16777216, "dtype": "bf16"},
  {"op": "rmsnorm", "elements": 16777216, "width": 8192, "dtype": "bf16"}])";

TEST(Op, ListInSameListOut) {
  const Json in = Json::parse(operations), out = Json::parse(good("op -", operations));
  ASSERT_EQ(out.size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE(in[i].dump());
    for (const auto& [key, value] : in[i].items()) EXPECT_EQ(out[i][key], value);
    has(out[i],
        "/time_us:number /flops:int /bytes_read:int /bytes_written:int /dram_read_bytes:int "
        "/dram_written_bytes:int /output_bytes:int /workspace_bytes:int /peak_bytes:int "
        "/intensity:number /bound:string");
    EXPECT_GT(out[i]["time_us"], 0);
    EXPECT_GE(out[i]["peak_bytes"],
              out[i]["output_bytes"].get<std::int64_t>() + out[i]["workspace_bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(out[0]["flops"], 2ll * 4096 * 11008 * 4096);
  EXPECT_EQ(out[0]["output_bytes"], 2ll * 4096 * 11008);
  EXPECT_EQ(out[0]["bound"], "compute");
  EXPECT_EQ(out[4]["output_bytes"], 8ll * 1024 * 24 * 13 * 8);
  EXPECT_EQ(out[6]["bytes_read"], 2 * out[7]["bytes_read"].get<std::int64_t>());
  EXPECT_EQ(out[7]["bytes_written"], 2ll * 16777216);
  EXPECT_EQ(out[8]["bound"], "memory");
  const Folder f;
  EXPECT_EQ(good("op '" + f.write("ops.json", operations) + "'"), good("op", operations));
  EXPECT_EQ(good("op --json", operations), good("op --format text", operations));
  EXPECT_NE(good("op --format csv", operations).find("\nrmsnorm,"), std::string::npos);
  EXPECT_NE(good("op --format markdown", operations).find("| sdpa |"), std::string::npos);
  EXPECT_GT(Json::parse(good("op --device t4", operations))[8]["time_us"], out[8]["time_us"]);
  EXPECT_EQ(Json::parse(good("op", "[]")), Json::array());
}

TEST(Op, RefusesWhatItCannotCost) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[{\"op\": \"sofmax\", \"elements\": 8}]", "error: standard input[0].op: unknown op 'sofmax'\n"},
      {"[{\"op\": \"add\", \"elements\": 8}, {}]", "error: standard input[1].op: missing\n"},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8}]", "error: standard input[0].k: missing\n"},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8, \"k\": 0}]", "error: standard input[0].k: "},
      {"[{\"op\": \"linear\", \"m\": 8, \"n\": 8, \"k\": \"8\"}]", "error: standard input[0].k: expected an integer\n"},
      {"[{\"op\": \"silu\", \"elements\": 8, \"dtype\": \"bf17\"}]", "error: standard input[0].dtype: "},
      {"[{\"op\": \"softmax\", \"elements\": 8}]",
       "error: standard input[0].elements: is no multiple of the width 4096\n"},
      {"[{\"op\": \"sdpa\", \"heads\": 3, \"kv_heads\": 2, \"q_len\": 4, \"head_dim\": 8}]",
       "error: standard input[0].kv_heads: "},
      {"[3]", "error: standard input[0]: expected an object\n"},
      {"", "error: standard input: the file is empty\n"},
      {"[{]", "error: standard input: not JSON at line 1, column "}};
  for (const auto& [input, error] : cases) {
    const Called r = run("op", input);
    EXPECT_EQ(r.code, 3) << input;
    EXPECT_EQ(r.out, "") << input;
    EXPECT_EQ(r.err.rfind(error, 0), 0u) << input << "\n" << r.err;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << input << "\n" << r.err;
  }
}

}  // namespace
}  // namespace cli::cli_op_test
#endif
