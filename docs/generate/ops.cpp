// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/ops.md: what each op costs. Comments come out of the headers, numbers out of the cost
// functions, and each formula is evaluated and compared with its cost function on every example.
#include <cstdio>
#include <cstdlib>

#include <vlmest/json/op.hpp>

#include "memory_examples.hpp"

using namespace vlmest;
using reference::Example, reference::example, reference::number;

namespace {

struct Rule {
  const char* quantity;
  const char* formula;
};
struct Section {
  const char* type;
  const char* header;
  const char* names;  ///< what formulas name beside the op's own fields
  std::vector<Rule> rules;
  std::vector<Example> examples;
};

std::vector<Example> list(const auto&... o) { return {example(o)...}; }

/// Ops that a graph holds: those of op/op.hpp.
std::vector<Section> sections() {
  return {
      {"Matmul",
       "matmul.hpp",
       "`bias` is 1 where there is one.",
       {{"FLOPs", "2 * batch * m * n * k"},
        {"read", "(batch * m * k + batch * k * n + bias * n) * size"},
        {"written", "batch * m * n * size"},
        {"workspace", "0"},
        {"kernels", "1"}},
       list(Matmul{.m = 4096, .n = 11008, .k = 4096}, Matmul{.m = 1, .n = 11008, .k = 4096},
            Matmul{.m = 577, .n = 4096, .k = 1024, .bias = true},
            Matmul{.batch = 32, .m = 577, .n = 64, .k = 577, .dtype = DType::fp32})},
      {"StoredMatmul",
       "stored_matmul.hpp",
       "`stored` is the bytes of the weight and of what belongs to it. PyTorch's counter does not know these kernels: "
       "a "
       "counted run shows no FLOPs for them.",
       {{"FLOPs", "2 * m * n * k"}, {"read", "stored + m * k * size"}, {"written", "m * n * size"}},
       list(StoredMatmul{.m = 1, .n = 18944, .k = 3584, .stored = Bytes(35'273'728)},
            StoredMatmul{.m = 512, .n = 18944, .k = 3584, .stored = Bytes(35'273'728)})},
      {"GroupedMatmul",
       "grouped_matmul.hpp",
       "PyTorch's counter has no formula for this op: its FLOPs take time but do not count.",
       {{"FLOPs", "0"},
        {"uncounted FLOPs", "2 * rows * n * k"},
        {"read", "(rows * k + active * n * k) * size"},
        {"written", "rows * n * size"}},
       list(GroupedMatmul{.rows = 32768, .n = 1536, .k = 2048, .groups = 128, .active = 128},
            GroupedMatmul{.rows = 8, .n = 1536, .k = 2048, .groups = 128, .active = 8})},
      {"Attention",
       "attention.hpp",
       "`visible` is the number of (query, key) pairs that the mask leaves: `q_len * (kv_len - q_len) + q_len * (q_len "
       "+ 1) / 2` where causal, else all.",
       {{"FLOPs", "2 * batch * heads * q_len * kv_len * (head_dim + v_dim)"},
        {"causal FLOPs", "2 * batch * heads * visible * (head_dim + v_dim)"},
        {"read", "(batch * heads * q_len * head_dim + batch * kv_heads * kv_len * (head_dim + v_dim)) * size + mask"},
        {"written", "batch * heads * q_len * v_dim * size"},
        {"kernels", "1"}},
       list(Attention{.heads = 32,
                      .kv_heads = 8,
                      .q_len = 4096,
                      .kv_len = 4096,
                      .head_dim = 128,
                      .v_dim = 128,
                      .causal = true},
            Attention{.heads = 32, .kv_heads = 8, .q_len = 1, .kv_len = 4096, .head_dim = 128, .v_dim = 128},
            Attention{
                .batch = 5, .heads = 16, .kv_heads = 16, .q_len = 577, .kv_len = 577, .head_dim = 64, .v_dim = 64})},
      {"AttentionBackward",
       "attention.hpp",
       "`inputs` is what the forward reads.",
       {{"FLOPs", "2 * batch * heads * q_len * kv_len * (3 * head_dim + 2 * v_dim)"},
        {"causal FLOPs", "2 * batch * heads * visible * (3 * head_dim + 2 * v_dim)"},
        {"read", "2 * inputs"},
        {"written", "inputs"}},
       list(AttentionBackward{{.heads = 32,
                               .kv_heads = 32,
                               .q_len = 4096,
                               .kv_len = 4096,
                               .head_dim = 128,
                               .v_dim = 128,
                               .causal = true}})},
      {"Convolution",
       "conv.hpp",
       "`bias` is 1 where there is one; workspace and kernels are the library's choice (`conv_scratch` in "
       "[lib/vlmest/library/convolution.hpp](../../lib/vlmest/library/convolution.hpp)).",
       {{"FLOPs", "2 * batch * out_positions * out_channels * kernel * in_channels / groups"},
        {"read",
         "(batch * in_channels * in_positions + out_channels * kernel * in_channels / groups + bias * out_channels) * "
         "size"},
        {"written", "batch * out_positions * out_channels * size"}},
       list(Convolution{.batch = 5,
                        .in_channels = 3,
                        .out_channels = 1024,
                        .in_positions = 336 * 336,
                        .out_positions = 24 * 24,
                        .kernel = 14 * 14},
            Convolution{.in_channels = 64,
                        .out_channels = 64,
                        .in_positions = 576,
                        .out_positions = 576,
                        .kernel = 9,
                        .groups = 64,
                        .dtype = DType::fp32,
                        .bias = true})},
      {"DepthwiseConvolution",
       "depthwise_conv.hpp",
       "`results` is 1 in the forward, in the backward one for each gradient; `workspace` holds the `copies`.",
       {{"FLOPs", "2 * batch * out_positions * channels * taps * results"},
        {"read", "(batch * channels * in_positions + channels * taps) * size + workspace"},
        {"written", "batch * channels * out_positions * size + workspace"},
        {"workspace", "workspace"},
        {"kernels", "results + copies"}},
       list(DepthwiseConvolution{.channels = 8192, .in_positions = 1024, .out_positions = 1027, .taps = 4},
            DepthwiseConvolution{.channels = 8192,
                                 .in_positions = 1024,
                                 .out_positions = 1027,
                                 .taps = 4,
                                 .forward = false,
                                 .input_gradient = true,
                                 .weight_gradient = true})},
      {"TriangularSolve",
       "triangular_solve.hpp",
       "For matrices that one call takes by lists of their addresses, and that lie as cuBLAS reads them. PyTorch's "
       "counter has no formula for this op: its FLOPs take time but do not count.",
       {{"FLOPs", "0"},
        {"uncounted FLOPs", "batch * rows * rows * columns"},
        {"read", "batch * rows * (2 * columns + rows) * size"},
        {"written", "2 * batch * rows * columns * size"},
        {"workspace", "16 * batch"},
        {"kernels", "4"}},
       list(TriangularSolve{.batch = 512, .rows = 64, .columns = 128})},
      {"DeltaRule",
       "delta_rule.hpp",
       "A kernel of flash-linear-attention's gated delta rule over chunks of 64 tokens. `heads` are those of all "
       "sequences, "
       "`chunks` those of one head; the header says of each kernel its multiply-adds (`macs`) for a chunk, and the "
       "elements and fp32 numbers that it reads and writes for a token, a chunk and a head. PyTorch's counter sees no "
       "kernel of a package: its FLOPs take time but do not count.",
       {{"FLOPs", "0"},
        {"uncounted FLOPs", "2 * heads * chunks * macs"},
        {"read", "heads * ((tokens * token_in + chunks * chunk_in) * size + 4 * tokens * floats_in)"},
        {"written",
         "heads * ((tokens * token_out + chunks * chunk_out) * size + 4 * (tokens * floats_out + head_out))"},
        {"workspace", "0"},
        {"kernels", "1"}},
       {example(DeltaRule{.kind = DeltaRule::Kind::solve, .tokens = 4096, .heads = 32}, "solve"),
        example(DeltaRule{.kind = DeltaRule::Kind::states, .tokens = 4096, .heads = 32}, "states"),
        example(DeltaRule{.kind = DeltaRule::Kind::gradients, .batch = 2, .tokens = 1000, .heads = 16}, "gradients")}},
      {"Norm",
       "norm.hpp",
       "`statistics` is 8 bytes a row for a layer norm, 4 for an RMS norm; `packed` is 1 where the rows must first be "
       "copied.",
       {{"FLOPs", "0"},
        {"read", "((1 + packed) * rows * width + parameters * width) * size"},
        {"written", "(1 + packed) * rows * width * size + rows * statistics"},
        {"workspace", "packed * rows * width * size"},
        {"kernels", "1 + packed"}},
       list(Norm{.rows = 2885, .width = 1024},
            Norm{.kind = Norm::Kind::rms_norm, .rows = 4096, .width = 4096, .parameters = 1},
            Norm{.rows = 576, .width = 1152, .packed = true})},
      {"Softmax",
       "softmax.hpp",
       "`in` and `out` are the bytes of one element before and after; `safe` is 1 for aten _safe_softmax.",
       {{"FLOPs", "0"},
        {"read", "rows * width * in + safe * (rows * width * (in + out + 1) + rows)"},
        {"written", "rows * width * out + safe * (rows * width * (out + 1) + rows)"},
        {"workspace", "safe * (rows * width + rows + out)"},
        {"kernels", "1 + 4 * safe"}},
       list(Softmax{.rows = 32 * 4096, .width = 4096, .in = DType::fp32, .out = DType::fp32},
            Softmax{.rows = 32 * 4096, .width = 4096, .in = DType::fp16, .out = DType::fp32},
            Softmax{.rows = 32 * 4096, .width = 4096, .in = DType::fp32, .out = DType::fp32, .safe = true})},
      {"Fft",
       "fft.hpp",
       "`points` is the batch times all sizes, `axes` the product of the transformed sizes; `factor` is 5 for complex "
       "and 2.5 for real transforms. `in` and `out` are the bytes of the tensors; a half spectrum has `floor(n / 2) + "
       "1` values on its last axis. `clone` is the copy of its input that an inverse real transform makes. The "
       "workspace is that clone and cuFFT's work area.",
       {{"FLOPs", "floor(factor * points * log2(axes) + 0.5)"}, {"read", "in + clone"}, {"written", "out + clone"}},
       list(Fft{.kind = Fft::Kind::r2c, .batch = 1024, .n = {24, 24, 1}},
            Fft{.kind = Fft::Kind::c2r, .batch = 1024, .n = {24, 24, 1}},
            Fft{.kind = Fft::Kind::c2c, .batch = 64, .n = {4099, 1, 1}, .rank = 1})},
      {"MemoryOp",
       "memory.hpp",
       "The op that uses it says how much it moves.",
       {{"FLOPs", "0"}, {"read", "read"}, {"written", "written"}, {"workspace", "workspace"}, {"kernels", "kernels"}},
       list(MemoryOp{.read = Bytes(67108864), .written = Bytes(33554432)})},
      {"HostSync",
       "memory.hpp",
       "",
       {{"FLOPs", "0"}, {"read", "8"}, {"written", "0"}, {"kernels", "0"}},
       {Example{"bytes 8", {}, cost(HostSync{Bytes(8)})}}},
      {"View",
       "memory.hpp",
       "",
       {{"FLOPs", "0"}, {"read", "0"}, {"written", "0"}, {"kernels", "0"}},
       {Example{"any", {}, cost(View{})}}},
      {"CollectiveOp",
       "collective.hpp",
       "",
       {{"FLOPs", "0"}, {"read", "bytes"}, {"written", "bytes"}, {"kernels", "1"}},
       {Example{"all_reduce, bytes 67,108,864, ranks 2",
                {{"bytes", 67108864}},
                cost(CollectiveOp{.ranks = 2, .bytes = Bytes(67108864)})}}},
  };
}

/// Ops that a graph holds as a MemoryOp.
std::vector<Section> memory_sections() {
  using Kind = Elementwise::Kind;
  return {
      {"Elementwise",
       "elementwise.hpp",
       "`operands` are the tensors that a kind reads, `results` those that it writes.",
       {{"read", "operands * elements * size"}, {"written", "results * elements * size"}},
       list(Elementwise{.kind = Kind::add, .elements = 1 << 24},
            Elementwise{.kind = Kind::silu_mul, .elements = 1 << 24},
            Elementwise{.kind = Kind::copy, .elements = 1 << 24, .dtype = DType::fp32},
            Elementwise{.kind = Kind::read, .elements = 1 << 24},
            Elementwise{.kind = Kind::write, .elements = 1 << 24})},
      {"RotaryEmbedding",
       "rope.hpp",
       "`angle` is the bytes of one cosine.",
       {{"read", "batch * rows * (heads + kv_heads) * head_dim * size + 2 * rows * rotary_dim * angle"},
        {"written", "batch * rows * (heads + kv_heads) * head_dim * size"}},
       list(RotaryEmbedding{.rows = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .rotary_dim = 128})},
      {"Gather",
       "gather.hpp",
       "`index` is the bytes of one row number.",
       {{"read", "rows * width * size + rows * index"}, {"written", "rows * width * size"}},
       list(Gather{.rows = 4096, .width = 4096, .table_rows = 32064})},
      {"CrossEntropy",
       "cross_entropy.hpp",
       "",
       {{"read", "rows * vocab * size + rows * (8 + 8 + 4)"}, {"written", "rows * 4 + 4"}, {"kernels", "2"}},
       list(CrossEntropy{.rows = 4096, .vocab = 32064},
            CrossEntropy{.rows = 4096, .vocab = 32064, .dtype = DType::bf16})},
  };
}

double quantity(const Cost& c, const std::string& what) {
  if (what == "FLOPs") return number(c.flops.value());
  if (what == "causal FLOPs") return number(c.flops_causal.value());
  if (what == "uncounted FLOPs") return number(c.uncounted.value());
  if (what == "read") return number(c.read.value());
  if (what == "written") return number(c.written.value());
  if (what == "workspace") return number(c.workspace.value());
  if (what == "kernels") return c.kernels;
  throw std::runtime_error("no quantity " + what);
}

/// A formula that does not give what the code gives ends the program.
void hold(const Section& s, const Rule& r, const Example& e) {
  const double says = reference::Formula(r.formula, e.fields).value(), is = quantity(e.cost, r.quantity);
  if (says != is)
    throw std::runtime_error(std::string(s.type) + ": " + r.quantity + " = " + r.formula + " gives " +
                             std::to_string(says) + ", the code " + std::to_string(is) + " for " + e.call);
}

void print(const Section& s) {
  const std::string path = std::string("lib/vlmest/op/") + s.header;
  const std::string about = reference::comment(path, std::string("struct ") + s.type + " {");
  std::printf("\n## %s\n\n%s\n\nSource: [%s](../../%s)\n\n", s.type, about.c_str(), path.c_str(), path.c_str());
  if (*s.names) std::printf("%s\n\n", s.names);
  std::printf("| quantity | formula |\n|---|---|\n");
  for (const auto& r : s.rules) {
    for (const auto& e : s.examples) hold(s, r, e);
    std::printf("| %s | `%s` |\n", r.quantity, r.formula);
  }
  std::printf(
      "\n| example | FLOPs | read B | written B | workspace B | kernels | FLOPs/B "
      "|\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const auto& e : s.examples)
    std::printf("| %s | %s | %s | %s | %s | %d | %.1f |\n", e.call.c_str(),
                reference::grouped(e.cost.flops.value()).c_str(), reference::grouped(e.cost.read.value()).c_str(),
                reference::grouped(e.cost.written.value()).c_str(),
                reference::grouped(e.cost.workspace.value()).c_str(), e.cost.kernels, intensity(e.cost));
}

void print_backends() {
  std::printf(
      "\n## Which attention runs\n\n%s\n\nSource: "
      "[lib/vlmest/library/attention.hpp](../../lib/vlmest/library/attention.hpp)\n",
      reference::comment("lib/vlmest/library/attention.hpp", "constexpr AttentionBackend choose_backend").c_str());
  std::printf(
      "\n32 query heads, 4,096 tokens; with a causal flag, with an explicit mask, and with 8 key heads and a causal "
      "flag.\n\n"
      "| type | head size | compute capability | causal | masked | grouped, causal |\n|---|---:|---|---|---|---|\n");
  const auto row = [](DType t, std::int64_t d, int sm) {
    Attention o{.heads = 32, .kv_heads = 32, .q_len = 4096, .kv_len = 4096, .head_dim = d, .v_dim = d, .dtype = t};
    const std::string masked(name(choose_backend({.op = o, .gpu = {.sm = sm}, .masked = true})));
    o.causal = true;
    const std::string causal(name(choose_backend({.op = o, .gpu = {.sm = sm}})));
    o.kv_heads = 8;
    return causal + " | " + masked + " | " +
           std::string(name(choose_backend({.op = o, .gpu = {.sm = sm}, .enable_gqa = true})));
  };
  static constexpr std::array capabilities{75, 80, 86, 89, 90, 100, 120};
  for (const DType t : {DType::bf16, DType::fp16, DType::fp32})
    for (const std::int64_t d : {std::int64_t{128}, std::int64_t{160}})
      for (std::size_t i = 0; i < capabilities.size();) {
        const std::string chosen = row(t, d, capabilities[i]);
        std::string which;
        for (; i < capabilities.size() && row(t, d, capabilities[i]) == chosen; ++i)
          which += (which.empty() ? "" : ", ") + std::to_string(capabilities[i] / 10) + "." +
                   std::to_string(capabilities[i] % 10);
        std::printf("| %s | %lld | %s | %s |\n", std::string(name(t)).c_str(), static_cast<long long>(d), which.c_str(),
                    chosen.c_str());
      }
}

}  // namespace

int main() {
  try {
    const auto all = sections();
    if (all.size() != std::variant_size_v<Op>) throw std::runtime_error("an op of op/op.hpp has no section");
    std::printf(
        "# Ops\n\nWhat one execution of each op costs. This page is printed by `docs/generate/ops.cpp`: the comments "
        "stand in the\n"
        "headers, the numbers are what the cost functions return, and every formula has been evaluated and compared "
        "with its\n"
        "cost function on the examples below it. `size` is the bytes of one element of the op's type.\n\n%s\n",
        reference::comment("lib/vlmest/op/cost.hpp", "struct Cost {").c_str());
    for (const auto& s : all) print(s);
    for (const auto& s : memory_sections()) print(s);
    print_backends();
    std::printf("\n## Names that `vlmest op` takes\n\n");
    std::string names;
    for (const auto& e : json::single_op::known) names += (names.empty() ? "`" : ", `") + std::string(e.name) + "`";
    std::printf("%s.\n", names.c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
