// SPDX-License-Identifier: Apache-2.0
// Spectral blocks: their transforms against recorded calls of torch, their buffers against products worked out by hand,
// and the tokens that are left.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/analysis/params.hpp>
#include <vlmest/family/llava/family.hpp>
#include <vlmest/family/llava_next/family.hpp>
#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::spectral_test {
namespace {

std::vector<std::vector<std::string>> rows(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/tests/data/fft/" + name);
  std::vector<std::vector<std::string>> r;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string f; std::getline(fields, f, '\t');) row.push_back(f);
    r.push_back(row);
  }
  return r;
}

std::int64_t scratch(const Graph& g) {
  std::int64_t n = 0;
  for (const Bytes b : g.scratch_of(g.nodes.back())) n += b.value();
  return n;
}

// torch.fft calls on channels-last grids and sequences as recorded: bytes of the result, and the peak of the call.
TEST(EagerTransforms, TakeWhatTorchTakes) {
  int calls = 0;
  for (const auto& r : rows("torch_layout.tsv")) {
    if (r[2] != "float32" && r[2] != "complex64") continue;
    if (r[7] == "slice") continue;
    Shape shape;
    std::istringstream sizes(r[1]);
    for (std::string n; std::getline(sizes, n, 'x');) shape.push_back(std::stoll(n));
    eager::FftAxes axes{{1, 2, 0}, 2};
    if (r[3] == "1") axes = {{1, 0, 0}, 1};
    if (r[3] == "-2,-1") axes = {{-2, -1, 0}, 2};
    Builder b;
    Value y;
    if (r[0][0] == 'r') {
      y = eager::rfft(b.existing("x", Role::input, DType::fp32, shape), axes, eager::FftNorm::ortho);
    } else {
      const std::int64_t last = std::stoll(r[4]);
      Value z = b.existing("z", Role::input, DType::complex64, shape);
      if (r[7] == "result") {  // as an earlier transform leaves it
        Shape real = shape;
        real[axes.count == 1 ? 1 : 2] = last;
        z = eager::rfft(b.existing("x", Role::input, DType::fp32, real), axes);
      }
      y = eager::irfft(std::move(z), last, axes, eager::FftNorm::ortho);
    }
    ++calls;
    const std::int64_t out = requested_bytes(b.graph.tensor(b.graph.owner(y.id()))).value();
    EXPECT_EQ(out, std::stoll(r[5])) << r[0] << ' ' << r[1];
    EXPECT_EQ(out + scratch(b.graph), std::stoll(r[6])) << r[0] << ' ' << r[1] << ' ' << r[7];
  }
  EXPECT_EQ(calls, 54);
}

const ClipVision clip{.hidden = 32, .intermediate = 64, .layers = 3, .heads = 2, .image_size = 84, .patch_size = 14};
const LlamaConfig llama{
    .vocab = 100, .hidden = 48, .intermediate = 96, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 12};

Vlm llava(std::vector<BlockConfig> blocks, Grid features = {}) {
  Vlm m;
  m.family = LlavaFamily{.vision = clip, .projector = {.in = 32, .out = 48}, .language = llama};
  m.image_processor = image_processor::Llava{.image_size = 84, .patch_size = 14, .features = features};
  m.native = {84, 84};
  m.blocks = std::move(blocks);
  return m;
}
Vlm llava_next(std::vector<BlockConfig> blocks, Grid features = {}) {
  Vlm m;
  m.family = LlavaNextFamily{.vision = clip, .projector = {.in = 32, .out = 48}, .language = llama};
  m.image_processor = image_processor::LlavaNext{
      .image_size = 84, .patch_size = 14, .pinpoints = {{84, 168}, {168, 84}, {168, 168}}, .features = features};
  m.native = {168, 168};
  m.blocks = std::move(blocks);
  return m;
}

Graph built(const Vlm& m, const Plan& plan, std::int64_t decode = 0) {
  Builder b;
  {
    Context c{b, plan, stack_of(plan)};
    const Sequences s = make_sequences(m, plan);
    build_inference(c, m, s, decode == 0 ? 0 : s.seq + decode);
  }
  return std::move(b.graph);
}

const BlockPoint after_tower{BlockPoint::At::tower};
const BlockConfig filter{after_tower, SpectralFilter{{6, 6}, 32}, {}, false};

/// What each node of a scope makes and takes besides.
struct Step {
  std::string op;
  std::int64_t made, scratch;
  bool operator==(const Step&) const = default;
};
std::vector<Step> steps(const Graph& g, const std::string& scope) {
  std::vector<Step> r;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (path(g, n.scope) != scope) continue;
    Step s{n.name, 0, 0};
    for (const TensorId t : g.outputs(n))
      if (g.tensor(t).born == static_cast<NodeId>(i)) s.made += requested_bytes(g.tensor(t)).value();
    for (const Bytes b : g.scratch_of(n)) s.scratch += b.value();
    r.push_back(s);
  }
  return r;
}
void PrintTo(const Step& s, std::ostream* o) { *o << s.op << ' ' << s.made << ' ' << s.scratch; }

// One image of 6 x 6 tokens with 32 channels in bf16: an fp32 copy, the half spectrum of 6 x 4, the product, the clone
// that an inverse transform takes, the result, the cast. The inverse has no real kernel for six points that do not lie
// next to each other: it goes through complex transforms of three points.
TEST(SpectralFilter, BuffersOfOneImage) {
  constexpr std::int64_t real = 4 * 36 * 32, half = 8 * 6 * 4 * 32, work = 8 * 3 * 6 * 32;
  const Graph g = built(llava({filter}), {.text = 5});
  EXPECT_EQ(steps(g, "blocks.0"), (std::vector<Step>{{"_to_copy", real, 0},
                                                     {"_fft_r2c", half, 0},
                                                     {"mul.Tensor", half, 0},
                                                     {"_fft_c2r", real, half + work},
                                                     {"_to_copy", real / 2, 0}}));
  const auto buffers = fft_buffers(g);
  ASSERT_EQ(buffers.size(), 1U);
  EXPECT_EQ(buffers[0].bytes, Bytes(half + real + half + work));  // product, result and clone are alive together
}

// A module that names each step's result holds the copy, the spectrum, the product and the result until it returns,
// with the clone and the work area of the inverse transform on top.
TEST(SpectralFilter, AModuleThatKeepsItsSteps) {
  constexpr std::int64_t real = 4 * 36 * 32, half = 8 * 6 * 4 * 32, work = 8 * 3 * 6 * 32;
  BlockConfig kept = filter;
  std::get<SpectralFilter>(kept.op).keeps_steps = true;
  const Graph g = built(llava({kept}), {.text = 5});
  EXPECT_EQ(steps(g, "blocks.0"), steps(built(llava({filter}), {.text = 5}), "blocks.0")) << "the same ops";
  const auto buffers = fft_buffers(g);
  ASSERT_EQ(buffers.size(), 1U);
  EXPECT_EQ(buffers[0].bytes, Bytes(real + half + half + real + half + work));
}

// With two images the channels-last grid does not collapse: both transforms copy their input once more.
TEST(SpectralFilter, TwoImagesAreMadeContiguous) {
  constexpr std::int64_t real = 2 * 4 * 36 * 32, half = 2 * 8 * 6 * 4 * 32;
  const Graph g = built(llava({filter}), {.batch = 2, .text = 5});
  EXPECT_EQ(steps(g, "blocks.0"), (std::vector<Step>{{"_to_copy", real, 0},
                                                     {"_fft_r2c", half, real},
                                                     {"mul.Tensor", half, 0},
                                                     {"_fft_c2r", real, 2 * half},
                                                     {"_to_copy", real / 2, 0}}));
}

// An fp32 model needs no casts; in one dimension the 36 tokens have 19 frequencies.
TEST(SpectralFilter, OneDimensionInFp32) {
  constexpr std::int64_t real = 4 * 36 * 32, half = 8 * 19 * 32;
  BlockConfig flat = filter;
  std::get<SpectralFilter>(flat.op).flat = true;
  const Graph g = built(llava({flat}), {.text = 5, .dtype = DType::fp32});
  EXPECT_EQ(steps(g, "blocks.0"),
            (std::vector<Step>{{"_fft_r2c", half, 0}, {"mul.Tensor", half, 0}, {"_fft_c2r", real, half}}));
  EXPECT_EQ(parameters(g).projector - parameters(built(llava({}), {.text = 5, .dtype = DType::fp32})).projector,
            Elements(19 * 32 * 2));
}

// A filter of 6 x 4 complex weights per channel; norms and filters outside the tower belong to the projector.
TEST(SpectralFilter, ParametersOfItsPart) {
  BlockConfig normed = filter;
  normed.norm = NormBlock{NormBlock::Kind::layer_norm, 32};
  normed.residual = true;
  BlockConfig inside = filter;
  inside.after = {BlockPoint::At::tower_layer, 0};
  const Parameters plain = parameters(built(llava({}), {.text = 5}));
  const Parameters more = parameters(built(llava({normed, inside}), {.text = 5}));
  EXPECT_EQ(more.projector - plain.projector, Elements(6 * 4 * 32 * 2 + 2 * 32));
  EXPECT_EQ(more.vision - plain.vision, Elements(6 * 4 * 32 * 2));
  EXPECT_EQ(more.language, plain.language);
  const auto s = steps(built(llava({normed, inside}), {.text = 5}), "blocks.0");
  ASSERT_EQ(s.size(), 6U);
  EXPECT_EQ(s.back(), (Step{"add.Tensor", 2 * 36 * 32, 0}));
}

// Inside the tower the class token passes the block by and is put back in front: one copy of 37 rows.
TEST(SpectralFilter, InsideTheTower) {
  BlockConfig inside = filter;
  inside.after = {BlockPoint::At::tower_layer, 1};
  const Graph g = built(llava({inside}), {.text = 5});
  EXPECT_EQ(steps(g, "blocks.0").size(), 5U);
  bool joined = false;
  for (const auto& n : g.nodes)
    joined = joined || (std::string_view(n.name) == "cat" && g.tensor(g.outputs(n)[0]).shape == Shape{1, 37, 32});
  EXPECT_TRUE(joined);
  inside.after.layer = 3;
  EXPECT_THROW(built(llava({inside}), {.text = 5}), Error);  // the tower has layers 0, 1 and 2
}

// 6 x 6 features become 3 x 4: rows are joined from both ends of the spectrum, columns are cut.
TEST(SpectralCrop, KeepsTheLowestFrequencies) {
  const BlockConfig crop{after_tower, SpectralCrop{{6, 6}, {3, 4}}, {}, false};
  constexpr std::int64_t real = 4 * 36 * 32, half = 8 * 6 * 4 * 32, low = 8 * 3 * 3 * 32, small = 4 * 12 * 32;
  const Graph g = built(llava({crop}, {3, 4}), {.text = 5});
  EXPECT_EQ(steps(g, "blocks.0"), (std::vector<Step>{{"_to_copy", real, 0},
                                                     {"_fft_r2c", half, 0},
                                                     {"cat", low, 0},
                                                     {"_fft_c2r", small, low},
                                                     {"_to_copy", small / 2, 0}}));
  const BlockConfig flat{after_tower, SpectralCrop{{6, 6}, {3, 4}, true}, {}, false};
  const auto s = steps(built(llava({flat}, {3, 4}), {.text = 5}), "blocks.0");
  EXPECT_EQ(s, (std::vector<Step>{{"_to_copy", real, 0},
                                  {"_fft_r2c", 8 * 19 * 32, 0},
                                  {"_fft_c2r", small, 8 * 7 * 32 + 8 * 6 * 32},
                                  {"_to_copy", small / 2, 0}}));
}

// The language model sees fewer features: LLaVA 12 of 36; LLaVA-NeXT the base tile, a canvas of 2 x 2 tiles and its
// newlines.
TEST(SpectralCrop, ChangesTheTokens) {
  const BlockConfig crop{after_tower, SpectralCrop{{6, 6}, {3, 3}}, {}, false};
  EXPECT_EQ(make_sequences(llava({}), {}).image_tokens, 36);
  EXPECT_EQ(make_sequences(llava({crop}, {3, 3}), {}).image_tokens, 9);
  EXPECT_EQ(make_sequences(llava_next({}), {}).image_tokens, 36 + 12 * 12 + 12);
  EXPECT_EQ(make_sequences(llava_next({crop}, {3, 3}), {}).image_tokens, 9 + 6 * 6 + 6);
  Plan wide{.text = 5};
  wide.image_height = 100;
  wide.image_width = 168;  // on 168 x 168: of 6 rows 4 show the picture (12 rows: 8)
  EXPECT_EQ(make_sequences(llava_next({}), wide).image_tokens, 36 + 8 * 12 + 8);
  EXPECT_EQ(make_sequences(llava_next({crop}, {3, 3}), wide).image_tokens, 9 + 4 * 6 + 4);
  const Graph g = built(llava_next({crop}, {3, 3}), wide, 3);
  bool packed = false;
  for (const auto& n : g.nodes)
    packed = packed || (std::string_view(n.name) == "cat" && g.tensor(g.outputs(n)[0]).shape == Shape{9 + 4 * 7, 48});
  EXPECT_TRUE(packed);
}

// Inside the tower later layers see fewer tokens; behind the layer whose features are used (the last but one) a crop
// would change nothing.
TEST(SpectralCrop, InsideTheTower) {
  BlockConfig crop{{BlockPoint::At::tower_layer, 0}, SpectralCrop{{6, 6}, {3, 3}}, {}, false};
  const Graph g = built(llava({crop}, {3, 3}), {.text = 5});
  int small = 0;
  for (const auto& n : g.nodes) {
    const Attention* a = std::get_if<Attention>(&g.op(n));
    small += a && a->q_len == 10 && a->kv_len == 10;
  }
  EXPECT_EQ(small, 2);
  crop.after.layer = 2;
  EXPECT_THROW(built(llava({crop}, {3, 3}), {.text = 5}), Error);
}

TEST(Blocks, OfOtherKinds) {
  const BlockPoint after_projector{BlockPoint::At::projector};
  const std::vector<BlockConfig> blocks{
      {after_tower, MlpBlock{32, 64}, NormBlock{NormBlock::Kind::rms_norm, 32}, true},
      {after_tower, AttentionBlock{32, 4}, {}, true},
      {after_projector, LinearBlock{48, 48, false}, {}, false},
      {after_projector, NormBlock{NormBlock::Kind::layer_norm, 48}, {}, false},
  };
  const Parameters plain = parameters(built(llava({}), {.text = 5}));
  for (const Runtime runtime : runtimes) {
    const Parameters more = parameters(built(llava(blocks), {.text = 5, .runtime = runtime}));
    EXPECT_EQ(more.projector - plain.projector,
              Elements((32 + 2 * 32 * 64 + 64 + 32) + 4 * (32 * 32 + 32) + 48 * 48 + 2 * 48));
  }
}

TEST(Blocks, RefuseWhatDoesNotFit) {
  BlockConfig wrong = filter;
  std::get<SpectralFilter>(wrong.op).channels = 31;
  EXPECT_THROW(built(llava({wrong}), {.text = 5}), Error);
  std::get<SpectralFilter>(wrong.op) = {{5, 6}, 32};
  EXPECT_THROW(built(llava({wrong}), {.text = 5}), Error);
  EXPECT_THROW(built(llava({{after_tower, LinearBlock{33, 32}, {}, false}}), {.text = 5}), Error);
  EXPECT_THROW(built(llava({{after_tower, AttentionBlock{32, 5}, {}, false}}), {.text = 5}), Error);
}

}  // namespace
}  // namespace vlmest::spectral_test
