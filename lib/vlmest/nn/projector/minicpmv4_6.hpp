// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// One square of patches becomes a row: a norm, two linear layers.
struct SquareMlp {
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear fc1, fc2;
};

/// merger_times rounds of them (MiniCPMV4_6Merger).
struct MiniCpmMerger {
  ScopeId scope = 0;
  std::int64_t merge = 2;  ///< merge_kernel_size
  std::vector<SquareMlp> rounds;
};

/// modeling_minicpmv4_6.py, MiniCPMV4_6Merger.__init__: every round but the last ends in the tower's width.
inline MiniCpmMerger make_merger(Context& c, std::int64_t merge, std::int64_t rounds, std::int64_t in,
                                 std::int64_t out) {
  MiniCpmMerger m{.scope = c.b.scope(), .merge = merge};
  m.rounds = make_layers(rounds, [&](std::int32_t i) {
    Module mlp(c, "mlp", i);
    const std::int64_t square = checked_mul(in, 4);
    SquareMlp r{.scope = mlp.scope};
    r.norm = make_layer_norm(c, "pre_norm", square);
    r.fc1 = make_linear(c, "linear_1", square, square, true);
    r.activation_scope = c.b.child("act");
    r.fc2 = make_linear(c, "linear_2", square, i + 1 < rounds ? in : out, true);
    return r;
  });
  return m;
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6DownsampleMLP.forward.
inline Value forward(Context& c, const SquareMlp& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  const std::int64_t square = Value(c.b, m.norm.weight).size(0);
  x = view(forward(c, m.norm, x), {-1, square});
  x = forward(c, m.fc1, x);
  {
    InScope a(c.b, m.activation_scope);
    x = unary(functions::gelu, x);
  }
  x = forward(c, m.fc2, x);
  return x;
}

/// rows * columns patches[…, width] as merge x merge squares of them. The sides are numbers on the GPU, which the host
/// reads as the view takes them.
inline Value squares(const Value& x, const Value& rows, const Value& cols, Grid merged, std::int64_t merge) {
  using namespace eager;
  const std::int64_t width = x.size(-1);
  item(rows);
  item(cols);
  Value cells = permute(view(x, {merged.rows, merge, merged.cols, merge, width}), {0, 2, 1, 3, 4});
  const Value count = mul(rows, cols);  // an argument of reshape: alive as long
  item(count);
  return reshape(std::move(cells), {merged.count(), checked_mul(checked_mul(merge, merge), width)});
}

/// merged_h, merged_w = height // merge, width // merge: both are there before either name is bound again.
inline void halve_sides(const Value& height, const Value& width, Value& rows, Value& cols) {
  Value new_rows = eager::floor_divide(height), new_cols = eager::floor_divide(width);
  rows = std::move(new_rows);
  cols = std::move(new_cols);
}
/// Sides that a round does not divide: the class's view fails on them.
inline void check_squares(Grid g, std::int64_t merge) {
  if (g.rows % merge != 0 || g.cols % merge != 0)
    throw Error("plan.images",
                std::to_string(g.rows) + "x" + std::to_string(g.cols) + " patches are no whole squares of " +
                    std::to_string(merge) + "x" + std::to_string(merge),
                "the merger works in merger_times rounds: give pictures whose sides it divides");
}

/// modeling_minicpmv4_6.py, MiniCPMV4_6Merger.forward: a list with the features of each piece.
inline std::vector<Value> merge_pieces(Context& c, const MiniCpmMerger& m, const Value& hidden, const Value& sizes,
                                       std::span<const Grid> pieces) {
  using namespace eager;
  const std::int64_t merge = m.merge;
  InScope in(c.b, m.scope);
  std::vector<Value> all;
  Value start, height, width, count, rows, cols, x;  // variables of the loop: each lives until it is bound again
  std::int64_t at = 0;
  for (const Grid& piece : pieces) {
    {
      const Value row = select(sizes, 0, static_cast<std::int64_t>(all.size()));
      height = select(row, 0, 0);
      width = select(row, 0, 1);
    }
    count = mul(height, width);
    halve_sides(height, width, rows, cols);
    Grid left = piece;
    {
      check_squares(left, merge);
      const Value whole = select(hidden, 0, 0);
      Value end = start ? add(start, count) : add_scalar(count);
      if (start) item(start);
      item(end);
      end.reset();
      left = {left.rows / merge, left.cols / merge};
      x = squares(slice(whole, 0, at, at + piece.count()), rows, cols, left, merge);
    }
    x = forward(c, m.rounds[0], x);
    for (std::size_t i = 1; i < m.rounds.size(); ++i) {
      for (const Value* side : {&height, &width}) item(compare_scalar("ne.Scalar", unary("remainder.Scalar", *side)));
      height = floor_divide(height);
      width = floor_divide(width);
      halve_sides(height, width, rows, cols);
      check_squares(left, merge);
      left = {left.rows / merge, left.cols / merge};
      x = squares(x, rows, cols, left, merge);
      x = forward(c, m.rounds[i], x);
    }
    start = start ? add_(std::move(start), count) : add_scalar(count);
    at += piece.count();
    all.push_back(x);
  }
  return all;
}

}  // namespace vlmest
