// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/family/qwen_vl.hpp>
#include <vlmest/nn/vision/video_llama_3.hpp>

namespace vlmest {

/// Two linear layers of the language model's width (transformers models/video_llama_3, VideoLlama3Projector).
struct VideoLlama3Projector {
  std::int64_t in = 1152, out = 1536;
};
struct VideoLlama3Readout {
  ScopeId scope = 0, activation_scope = 0;
  Linear first, second;
};
inline VideoLlama3Readout make_projector(Context& c, const VideoLlama3Projector& g) {
  VideoLlama3Readout p{.scope = c.b.scope()};
  p.first = make_linear(c, "readout", g.in, g.out, true, 0);
  p.activation_scope = c.b.child("readout", 1);
  p.second = make_linear(c, "readout", g.out, g.out, true, 2);
  return p;
}

/// VideoLLaMA 3 (transformers models/video_llama_3): SigLIP over packed patches, two linear layers, a decoder under
/// positions of one axis. Pictures keep their patches, frames are shrunk by two. Its forward computes the logits of
/// every position.
struct VideoLlama3Family {
  VideoLlama3Vision vision;
  VideoLlama3Projector projector;
  DecoderConfig language;
  std::int64_t merge = 1, video_merge = 2;  ///< merge_size of the image and of the video processor
  bool tied = false;

  static constexpr AssemblyTraits assembly{.vision = "vision_model", .projector = "projector"};
};

/// As feature_calls::packed, with the sizes of the blocks beside the grid.
inline std::string video_llama_3_line(const std::string&, std::int64_t n) {
  return feature_calls::image_features("pixel_values, grid, merges",
                                       "[y for p, g, m in zip(pixel_values.split([int(g.prod(-1).sum()) for g in " +
                                           feature_calls::split("grid", n) + "]), " + feature_calls::split("grid", n) +
                                           ", " + feature_calls::split("merges", n) +
                                           ") for y in f(p, g, m, **k).pooler_output]");
}
constexpr FamilyTraits traits(const VideoLlama3Family&) {
  return {.features = FeatureCall{video_llama_3_line},
          .frames = 1,
          .videos = VideoPixels::own,
          .note =
              "VideoLlama3ForConditionalGeneration computes the logits of every position of the prompt; of a video "
              "all tokens are counted, though the processor drops those that hardly change from frame to frame"};
}

using VideoLlama3Model = Assembly<VideoLlama3Family>;

struct VideoLlama3Inputs {
  TextInputs text;
  MergedImages images, videos;
  Value kept;  ///< video_compression_mask, bool[features of all videos]
};

inline VideoLlama3Inputs make_inputs(Context& c, const VideoLlama3Family& g, const Sequences& s) {
  const auto merged = [&](std::span<const ImageLayout> of, bool videos) {
    MergedImages r;
    r.packed = make_packed_images(c, of, g.vision.channels, 1, g.vision.patch_size, videos);
    r.merges = c.b.existing(videos ? "video_merge_sizes" : "image_merge_sizes", Role::input, DType::int64,
                            {static_cast<std::int64_t>(of.size())});
    return r;
  };
  VideoLlama3Inputs r;
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  if (!s.images.empty()) r.images = merged(s.images, false);
  if (s.videos.empty()) return r;
  r.videos = merged(s.videos, true);
  r.kept = c.b.existing("video_compression_mask", Role::input, DType::boolean, {feature_count(s.videos)});
  return r;
}

/// modeling_video_llama_3.py, VideoLlama3Projector.forward: torch.nn.Sequential rebinds its input step by step.
inline Value forward(Context& c, const VideoLlama3Readout& p, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, p.scope);
  Value y = forward(c, p.first, x);
  {
    InScope a(c.b, p.activation_scope);
    y = eager::unary(eager::functions::gelu, y);
  }
  y = forward(c, p.second, y);
  return y;
}

/// modeling_video_llama_3.py, VideoLlama3Model.get_image_features, which get_video_features calls too.
inline std::vector<Value> merged_features(Context& c, const VideoLlama3Model& m, const MergedImages& in,
                                          std::span<const ImageLayout> images, std::int64_t merge) {
  using namespace eager;
  const Value last = forward(c, m.vision, in, images, merge);
  const Value features = forward(c, m.projector, last);
  Value counts = reduce("prod.dim_int", DType::int64, {static_cast<std::int64_t>(images.size())}, in.packed.grid);
  Value squares = pointwise("pow.Tensor_Scalar", DType::int64, in.merges);
  Value sizes = pointwise("floor_divide", DType::int64, std::move(counts), std::move(squares));
  to_host(std::move(sizes));
  return split(features, feature_counts(images), 0);
}
inline std::vector<Value> image_features(Context& c, const VideoLlama3Model& m, const MergedImages& in,
                                         const Sequences& s) {
  return merged_features(c, m, in, s.images, m.config->merge);
}

/// Pixels, grids and merges cut along the pictures.
inline std::vector<VisionChunk<MergedImages>> vision_chunks(Context& c, const MergedImages& in, const Sequences& s) {
  std::vector<VisionChunk<MergedImages>> r;
  std::vector<Value> merges = eager::split(in.merges, chunk_lengths(s.images.size(), c.plan.vision_chunk), 0);
  for (auto& part : vision_chunks(c, in.packed, s))
    r.push_back({{std::move(part.inputs), std::move(merges[r.size()])}, std::move(part.sequences)});
  return r;
}

/// modeling_video_llama_3.py, VideoLlama3ForConditionalGeneration.forward over a fresh cache: every position's logits.
inline Value prefill(Context& c, const VideoLlama3Model& m, const VideoLlama3Inputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden;
  PlacedFeatures placed;  // the output carries the features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlacedFeatures here;  // variables of the function: alive until it returns
    if (in.images.packed.pixels) place_images(embeds, in.text.ids, batch_features(c, m, in.images, s), here);
    if (in.videos.packed.pixels) {
      const ChunkRun call = video_call(c, s);
      {
        const std::vector<Value> parts = merged_features(c, m, in.videos, s.videos, m.config->video_merge);
        std::vector<Value> references = parts;
        here.videos = to(cat(references, 0), embeds.dtype());
      }
      here.videos = masked_index(here.videos, in.kept, s.batch * s.video_tokens);
      here.video_mask = video_placeholder_mask(in.text.ids, here.masks);
      embeds = masked_scatter(embeds, here.video_mask, here.videos);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
    placed.images = here.images;
    placed.videos = here.videos;
  }
  if (c.labels) return head_output(c, m.head, hidden);
  return forward(c, m.head, hidden);
}

}  // namespace vlmest
