// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/known_keys.hpp>
#include <vlmest/json/kv_layout.hpp>
#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/kv_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE void read_kv(const Reader& document, Vlm& vlm) {
  if (!document.given("kv")) return;
  const Reader r = document.object("kv");
  KvLayout l{.kind = one_of<KvLayout::Kind>(r, "layout", r.string("layout", "dense"))};
  constexpr std::int64_t most = std::int64_t{1} << 31;
  switch (l.kind) {
    case KvLayout::Kind::dense: only_keys(r, {"layout", "dtype"}); break;
    case KvLayout::Kind::paged:
      only_keys(r, {"layout", "dtype", "block_size"});
      l.block = r.integer("block_size", l.block, 1, 65536);
      break;
    case KvLayout::Kind::sliding:
      only_keys(r, {"layout", "dtype", "window"});
      l.window = r.integer_required("window", 2, most);
      break;
    case KvLayout::Kind::mla:
      only_keys(r, {"layout", "dtype", "latent_dim", "rope_dim"});
      l.latent_dim = r.integer_required("latent_dim", 1, 65536);
      l.rope_dim = r.integer_required("rope_dim", 2, 4096);
      if (l.rope_dim % 2 != 0) r.fail("rope_dim", "must be even", "rotary embeddings turn pairs of channels");
      break;
  }
  if (r.given("dtype")) {
    l.dtype = parse_dtype(r.string("dtype", ""));
    check_kv_type(*l.dtype);
  }
  const bool changes_decoder = l.kind == KvLayout::Kind::sliding || l.kind == KvLayout::Kind::mla;
  if (changes_decoder) {
    LlamaConfig* const g = vlm.family.llama();
    if (!g) r.fail("layout", "this family's decoder keeps its own layout", "use dense or paged");
    if (l.kind == KvLayout::Kind::sliding) {
      g->window = l.window;
      g->sliding.assign(static_cast<std::size_t>(g->layers), true);
    } else {
      if (g->qk_norm || g->qkv_bias || g->query_scale || g->packed)
        r.fail("layout",
               "latent attention has no norms, biases or scales of heads, and no linear for q, k and v in one",
               "use a plain Llama decoder");
      g->latent = LatentAttention{l.latent_dim, l.rope_dim};
    }
  }
  vlm.kv = l;
}

}  // namespace vlmest::json
