// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/image_processor/image.hpp>

/// Mixers that work on the spectrum of the token grid. There is no bf16 transform and fp16 takes powers of two alone,
/// so 16-bit features are cast to fp32 first and back at the end; every profile runs them this way. Features are
/// [tiles, tokens, channels] throughout, so the transforms run over strided axes.
namespace vlmest {

/// A learned filter: transform of the grid, product with one complex weight per frequency and channel, inverse
/// transform (Rao et al., Global Filter Networks for Image Classification, 2021, sections 3.2 and 3.3). The weight is
/// kept in fp32 as [rows, cols / 2 + 1, channels, 2]; in one dimension the tokens are one row,
/// [tokens / 2 + 1, channels, 2].
struct SpectralFilter {
  Grid grid;
  std::int64_t channels = 0;
  bool flat = false;         ///< one transform over the flattened sequence
  bool keeps_steps = false;  ///< each step's result has a name of its own in the module's code, and lives to its end
};

/// Token compression: the features are resampled to a smaller grid by keeping the lowest frequencies of their half
/// spectrum. The forward transform carries the scale (norm "forward"), so that values keep their size. In one dimension
/// the flattened sequence is resampled.
struct SpectralCrop {
  Grid from;
  Grid to;
  bool flat = false;
  bool keeps_steps = false;
};

/// The module of a filter; a crop has no parameters.
struct SpectralFilterModule {
  SpectralFilter config;
  TensorId weight = none;
};

inline SpectralFilterModule make_module(Context& c, const SpectralFilter& g) {
  SpectralFilterModule m{.config = g};
  const Shape shape = g.flat ? Shape{half_spectrum(g.grid.count()), g.channels, 2}
                             : Shape{g.grid.rows, half_spectrum(g.grid.cols), g.channels, 2};
  m.weight = c.b.persistent("complex_weight", Role::weight, DType::fp32, shape);
  return m;
}

/// Throws Error unless x[tiles, tokens, channels] holds the grid, and the channels where they are given.
inline void check_grid(const char* what, const Value& x, Grid grid, std::int64_t channels = 0) {
  const bool batched = x.shape().rank() == 3;
  if (batched && x.size(1) == grid.count() && (channels == 0 || x.size(2) == channels)) return;
  throw Error(what,
              "made for " + std::to_string(grid.rows) + "x" + std::to_string(grid.cols) + " tokens" +
                  (channels > 0 ? " of " + std::to_string(channels) + " channels" : std::string()) +
                  ", but the features are " + to_string(x.shape()),
              "take the grid of patches of one tile, and the width at that point");
}

/// The features as [tiles, rows, cols, channels], or as they are; and the axes to transform.
inline Value as_grid(Value x, Grid grid, bool flat) {
  if (flat) return x;
  const std::int64_t tiles = x.size(0), channels = x.size(2);
  return eager::view(std::move(x), {tiles, grid.rows, grid.cols, channels});
}
constexpr eager::FftAxes grid_axes(bool flat) {
  return flat ? eager::FftAxes{{1, 0, 0}, 1} : eager::FftAxes{{1, 2, 0}, 2};
}

/// The variables of a module's forward: one that each step rebinds, so that what it held goes, or one for each.
class StepResults {
 public:
  explicit StepResults(bool keep) : keep_(keep) {}
  Value operator()(Value v) {
    if (keep_) kept_.push_back(v);
    return v;
  }

 private:
  bool keep_;
  std::vector<Value> kept_;
};

/// GFNet's GlobalFilter.forward, for any grid: each step rebinds x.
inline Value forward(Context& c, const SpectralFilterModule& m, Value arg) {
  using namespace eager;
  const SpectralFilter& g = m.config;
  check_grid("spectral_filter", arg, g.grid, g.channels);
  const DType t = arg.dtype();
  const Shape shape = arg.shape();
  StepResults step(g.keeps_steps);
  Value x = step(to(std::move(arg), DType::fp32));
  x = as_grid(std::move(x), g.grid, g.flat);
  x = step(rfft(x, grid_axes(g.flat), FftNorm::ortho));
  Value weight = view_as_complex(Value(c.b, m.weight));
  x = step(mul(x, std::move(weight)));
  x = step(irfft(x, g.flat ? g.grid.count() : g.grid.cols, grid_axes(g.flat), FftNorm::ortho));
  x = reshape(std::move(x), shape);
  return to(std::move(x), t);
}

/// The lowest `to` of `from` frequencies of an axis that is not halved: non-negative ones from its front, negative ones
/// from its end. Both are views; joining them is a copy.
inline Value keep_low_frequencies(Value x, int dim, std::int64_t to) {
  using namespace eager;
  const std::int64_t from = x.size(dim), front = to - to / 2, back = to / 2;
  if (from == to) return x;
  Value low = slice(x, dim, 0, front);
  if (back == 0) return low;
  Value high = slice(std::move(x), dim, from - back, from);
  return cat(std::move(low), std::move(high), dim);
}

inline Value forward(Context&, const SpectralCrop& g, Value arg) {
  using namespace eager;
  check_grid("spectral_crop", arg, g.from);
  const DType t = arg.dtype();
  const std::int64_t tiles = arg.size(0), channels = arg.size(2);
  const std::int64_t points = g.flat ? g.to.count() : g.to.cols;
  StepResults step(g.keeps_steps);
  Value x = step(to(std::move(arg), DType::fp32));
  x = as_grid(std::move(x), g.from, g.flat);
  x = step(rfft(x, grid_axes(g.flat), FftNorm::forward));
  x = slice(x, g.flat ? 1 : 2, 0, half_spectrum(points));
  if (!g.flat) x = step(keep_low_frequencies(x, 1, g.to.rows));
  x = step(irfft(x, points, grid_axes(g.flat), FftNorm::forward));
  x = reshape(std::move(x), {tiles, g.to.count(), channels});
  return to(std::move(x), t);
}

}  // namespace vlmest
