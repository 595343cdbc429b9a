// SPDX-License-Identifier: Apache-2.0
// What an image becomes in the language model, and what padding costs when images differ.
#include <cstdio>
#include <vector>

#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/nn/image_processor/padding.hpp>
#include <vlmest/nn/image_processor/processor.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>

int main() {
  using namespace vlmest;
  const ImageProcessor tiles = image_processor::LlavaNext{};   // fixed tiles, a thumbnail, the padding cut off again
  const ImageProcessor native = image_processor::Qwen2_5Vl{};  // the image's own size, rounded to the patch grid
  const std::vector<ImageSize> images{{336, 336}, {672, 672}, {480, 640}, {1080, 1920}, {300, 1200}, {2000, 500}};

  std::printf("%-12s %20s %20s\n", "pixels", "LLaVA-NeXT", "Qwen2.5-VL");
  std::vector<std::int64_t> lengths;
  for (const ImageSize image : images) {
    const ImageLayout a = layout(tiles, image), b = layout(native, image);
    std::printf("%4ldx%-7ld %6ld in %ld tiles %8ld of %ldx%ld\n", long(image.height), long(image.width),
                long(a.llm_tokens), long(a.tiles), long(b.llm_tokens), long(b.resized.height), long(b.resized.width));
    lengths.push_back(a.llm_tokens + 100);  // each with 100 text tokens
  }

  const BatchPadding p = batch_padding(lengths, 2);
  std::printf(
      "\nLLaVA-NeXT in batches of 2: %ld tokens, %ld positions as given (%.1f %% padding), %ld grouped by length (%.1f "
      "%%)\n",
      long(p.tokens), long(p.padded), 100 * p.wasted(), long(p.grouped), 100 * p.wasted_grouped());
}
