// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/llama.hpp>
#include <vlmest/nn/moe.hpp>

namespace vlmest {

/// A layer of Llama's shape whose MLP may be a mixture of experts.
struct MoeLayer {
  LlamaLayer base;
  bool sparse = false;
  Moe moe;
};

/// In the order of Qwen3VLMoeTextDecoderLayer.__init__ and Qwen3MoeDecoderLayer.__init__. `sparse`: per layer, empty:
/// none.
inline MoeLayer make_moe_layer(Context& c, const LlamaConfig& g, const MoeConfig& moe, const std::vector<bool>& sparse,
                               std::int32_t index) {
  MoeLayer l;
  l.sparse = !sparse.empty() && sparse[static_cast<std::size_t>(index)];
  if (!l.sparse) {
    l.base = make_llama_layer(c, g, index);
    return l;
  }
  Module m(c, "layers", index);
  l.base.scope = m.scope;
  make_llama_attention(c, g, l.base);
  l.moe = make_moe(c, "mlp", moe);
  make_llama_norms(c, g, l.base);
  return l;
}

/// One layer through the stack, whose kind tells sliding and sparse layers apart.
inline Value forward(Context& c, DecoderStack& stack, const LlamaConfig& g, const MoeLayer& l, const Value& x,
                     const Value& mask, const CosSin& positions, CacheLayer& entry) {
  const auto feed_forward = [&](const Value& h) { return l.sparse ? forward(c, l.moe, h) : forward(c, l.base.mlp, h); };
  const int kind = (l.sparse ? 1 : 0) + (entry.window ? 2 : 0);
  return stack({kind, l.base.scope, l.base.attention.first()}, x, entry,
               [&](const Value& h) { return llama_layer(c, g, l.base, h, mask, positions, entry, feed_forward); });
}

}  // namespace vlmest
