// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>

namespace vlmest::image_processor_windows_test {
namespace {

using namespace image_processor;

// Window lengths must cover every patch once; the counts come from walking the padded grid cell by cell.
TEST(TokenWindows, CoverEveryPatchOnce) {
  for (const ImageSize s : {ImageSize{672, 1008}, {644, 952}, {28, 28}, {476, 644}, {532, 420}, {1092, 112}}) {
    const auto l = layout(Qwen2_5Vl{}, s);
    const auto w = windows(Qwen2_5Vl{}, l);
    std::vector<std::int64_t> cells(static_cast<std::size_t>(w.count()));
    for (std::int64_t y = 0; y < l.patches.rows; ++y)
      for (std::int64_t x = 0; x < l.patches.cols; ++x)
        ++cells[static_cast<std::size_t>(y / 8 * w.windows.cols + x / 8)];
    std::size_t i = 0;
    for (std::int64_t row = 0; row < w.windows.rows; ++row)
      for (std::int64_t col = 0; col < w.windows.cols; ++col) EXPECT_EQ(w.length(row, col), cells[i++]);
    EXPECT_EQ(i, cells.size());
  }
  const auto ragged = windows(Qwen2_5Vl{}, layout(Qwen2_5Vl{}, {476, 644}));
  EXPECT_EQ(ragged.windows, (Grid{5, 6}));
  EXPECT_EQ(ragged.length(4, 5), 12);
  EXPECT_EQ(ragged.longest(), 64);
  EXPECT_EQ(windows(Qwen2_5Vl{}, layout(Qwen2_5Vl{}, {672, 1008})).count(), 54);
  EXPECT_THROW(windows(Qwen2_5Vl{.window_size = 27}, layout(Qwen2_5Vl{}, {56, 56})), Error);
}

}  // namespace
}  // namespace vlmest::image_processor_windows_test
