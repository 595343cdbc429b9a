// SPDX-License-Identifier: Apache-2.0
// Moondream 2 as a whole against runs of its own code, and what that code does not do.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/family/moondream/family.hpp>
#include <vlmest/family/moondream/rule.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::moondream_family_test {
namespace {

Vlm moondream() {
  Vlm m{.type = "moondream1"};
  m.image_processor = image_processor::Moondream{};
  m.native = {378, 378};
  m.family = MoondreamFamily{};
  return m;
}
Plan plan_of(std::int64_t text, std::int64_t images = 1) {
  Plan p;
  p.dtype = DType::bf16;
  p.text = text;
  p.images = images;
  p.new_tokens = 1;
  return p;
}
InferenceCaches built(Builder& b, const Plan& p) {
  const Vlm m = moondream();
  Context c{b, p, stack_of(p)};
  const Sequences s = make_sequences(m, p);
  return build_inference(c, m, s, s.seq + 1);
}
std::string refused_at(const Plan& p) {
  try {
    Builder b;
    built(b, p);
  } catch (const Error& e) {
    return e.where;
  }
  return "accepted";
}

// 24 layers, keys and values, 32 heads of 64 channels, 2048 positions of bf16, as the recorded process held them.
TEST(MoondreamFamily, CachesAreOfTheWholeContextWhateverTheLength) {
  for (const std::int64_t text : {1, 500}) {
    Builder b;
    const InferenceCaches k = built(b, plan_of(text));
    Bytes all{};
    for (const CacheEntry& e : k.decode) all += e.bytes;
    EXPECT_EQ(all, Bytes(4342175232 - 3939522048));
  }
}

TEST(MoondreamFamily, APictureIs729TokensBehindTheFirstOne) {
  const Sequences s = make_sequences(moondream(), plan_of(20));
  EXPECT_EQ(s.seq, 750);
}

TEST(MoondreamFamily, RefusesWhatItsCodeDoesNot) {
  EXPECT_EQ(refused_at(plan_of(20)), "accepted");
  EXPECT_EQ(refused_at(plan_of(20, 0)), "accepted");
  EXPECT_EQ(refused_at(plan_of(20, 2)), "plan.images");
  EXPECT_EQ(refused_at(plan_of(0)), "plan.text");
  EXPECT_EQ(refused_at(plan_of(1318)), "plan.new_tokens");  // 2048, and one to come
  EXPECT_EQ(refused_at(plan_of(1319)), "plan.seq");
  Plan p = plan_of(20);
  p.batch = 2;
  EXPECT_EQ(refused_at(p), "plan.batch");
  p = plan_of(20);
  p.attention = AttentionKind::eager;
  EXPECT_EQ(refused_at(p), "plan.attention");
  p = plan_of(20);
  p.dtype = DType::fp32;
  EXPECT_EQ(refused_at(p), "plan.dtype");
}

}  // namespace
}  // namespace vlmest::moondream_family_test
