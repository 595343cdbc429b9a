// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cross_entropy.hpp>
#include <vlmest/op/elementwise.hpp>
#include <vlmest/op/gather.hpp>
#include <vlmest/op/rope.hpp>

#include "op_examples.hpp"

/// Ops that a graph holds as the bytes they move.
namespace reference {

inline Example example(const Elementwise& o) {
  return {std::string(name(o.kind)) + ", " + call({{"elements", o.elements}}, std::string(name(o.dtype))),
          {{"elements", number(o.elements)},
           {"operands", number(info(o.kind).read)},
           {"results", number(info(o.kind).written)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const RotaryEmbedding& o) {
  return {call({{"batch", o.batch},
                {"rows", o.rows},
                {"heads", o.heads},
                {"kv_heads", o.kv_heads},
                {"head_dim", o.head_dim},
                {"rotary_dim", o.rotary_dim}},
               std::string(name(o.dtype)) + ", angles " + std::string(name(o.angles))),
          {{"batch", number(o.batch)},
           {"rows", number(o.rows)},
           {"heads", number(o.heads)},
           {"kv_heads", number(o.kv_heads)},
           {"head_dim", number(o.head_dim)},
           {"rotary_dim", number(o.rotary_dim)},
           {"angle", bytes_of(o.angles)},
           {"size", bytes_of(o.dtype)}},
          cost(o)};
}
inline Example example(const Gather& o) {
  return {
      call({{"rows", o.rows}, {"width", o.width}, {"table_rows", o.table_rows}}, std::string(name(o.dtype))),
      {{"rows", number(o.rows)}, {"width", number(o.width)}, {"index", bytes_of(o.index)}, {"size", bytes_of(o.dtype)}},
      cost(o)};
}
inline Example example(const CrossEntropy& o) {
  return {call({{"rows", o.rows}, {"vocab", o.vocab}}, std::string(name(o.dtype))),
          {{"rows", number(o.rows)}, {"vocab", number(o.vocab)}, {"size", bytes_of(o.dtype)}},
          cost(o)};
}

}  // namespace reference
