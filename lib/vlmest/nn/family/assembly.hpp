// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/decoder/decoder.hpp>
#include <vlmest/nn/family.hpp>
#include <vlmest/nn/family/one_token.hpp>
#include <vlmest/nn/family/scatter.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/loss.hpp>
#include <vlmest/nn/vision/tower.hpp>

/// The assembly that most families share: under `model` a tower, a projector and a language model, beside it the output
/// head. A family is an aggregate with `vision`, `language`, `tied` and a constant `assembly`; what differs is an
/// overload for it: make_projector, make_inputs, image_features, prefill.
namespace vlmest {

/// What a family calls its modules, in the order of the model's __init__, and what its forward does of its own.
struct AssemblyTraits {
  const char* vision = "vision_tower";
  const char* projector = "multi_modal_projector";
  const char* newline = nullptr;  ///< the model's own parameter behind them: a feature of the language model's width
  bool newline_last = false;      ///< that parameter stands behind the language model
  const char* language = "language_model";
  bool projector_last = false;  ///< it is made after the language model
  bool language_first = false;  ///< the language model is made ahead of the tower
  bool takes_videos = false;    ///< placeholders of videos are looked for too
};

/// Stands for the projector of a family whose tower ends in the language model's width.
struct NoProjector {};

/// Families keep their projector's config as `projector`, or overload this.
template <class Family>
auto make_projector(Context& c, const Family& g) {
  if constexpr (Family::assembly.projector == nullptr)
    return NoProjector{};
  else
    return make_projector(c, g.projector);
}

/// Modules that a family's model makes behind its language model, where it overloads this.
struct NothingBehind {};
template <class Family>
NothingBehind make_behind(Context&, const Family&) {
  return {};
}

/// The modules of a family.
template <class Family>
struct Assembly {
  using Vision = decltype(make_tower(std::declval<Context&>(), std::declval<const Family&>().vision));
  using Projector = decltype(make_projector(std::declval<Context&>(), std::declval<const Family&>()));
  using Language = decltype(make_decoder(std::declval<Context&>(), std::declval<const Family&>().language));
  using Behind = decltype(make_behind(std::declval<Context&>(), std::declval<const Family&>()));

  const Family* config = nullptr;
  ScopeId model = 0;
  Vision vision;
  Projector projector;
  TensorId newline = none;
  Language language;
  Behind behind;
  Linear head;
};

/// In the order of …Model.__init__ and …ForConditionalGeneration.__init__. The newline feature counts with the
/// projector, whose output it joins. A family with modules that no forward runs declares them in make_unused(c, g).
template <class Family>
Assembly<Family> make_model(Context& c, const Family& g) {
  constexpr AssemblyTraits names = Family::assembly;
  Assembly<Family> r{.config = &g};
  {
    Module m(c, "model");
    r.model = m.scope;
    const auto language = [&] {
      Module l(c, names.language, Part::language);
      r.language = make_decoder(c, g.language);
    };
    if constexpr (names.language_first) language();
    {
      Module v(c, names.vision, Part::vision);
      r.vision = make_tower(c, g.vision);
    }
    const auto projector = [&] {
      if constexpr (names.projector != nullptr) {
        Module p(c, names.projector, Part::projector);
        r.projector = make_projector(c, g);
      }
    };
    if constexpr (!names.projector_last) projector();
    const auto newline = [&] {
      Module own(c, "", Part::projector);
      r.newline = parameter(c, names.newline, {width(g.language)});
    };
    if constexpr (names.newline != nullptr && !names.newline_last) newline();
    if constexpr (requires { make_unused(c, g); }) make_unused(c, g);
    if constexpr (!names.language_first) language();
    if constexpr (names.projector_last) projector();
    if constexpr (names.newline != nullptr && names.newline_last) newline();
    r.behind = make_behind(c, g);
  }
  r.head = make_head(c, width(g.language), vocabulary(g.language), g.tied, embedding_weight(r.language));
  return r;
}

/// Inputs of the families that hand over pixels alone.
struct PixelInputs {
  TextInputs text;
  Value pixels;       ///< as the tower's pixel_shape says; none without images
  Value image_sizes;  ///< int64[images, 2], where the tower takes them
};

template <class Vision>
PixelInputs make_pixel_inputs(Context& c, const Vision& vision, const Sequences& s, bool with_sizes = false) {
  PixelInputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, vision, s);
    if (with_sizes) r.image_sizes = make_image_sizes(c, s);
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// Images with sizes of their own, or tiles.
inline std::vector<VisionChunk<PixelInputs>> vision_chunks(Context& c, const PixelInputs& in, const Sequences& s) {
  if (in.image_sizes) return cut_rows(c, in, s, s.images, &PixelInputs::image_sizes);
  return cut_rows(c, in, s, single_tiles(s.images));
}

/// The features of all images in one row, out of those of each.
inline Value joined(std::vector<Value> features) { return eager::cat(features, 0); }
inline Value joined(Value features) { return features; }

/// …ForConditionalGeneration.forward over a fresh cache, for families whose decoder is called with embeddings, a mask
/// and a cache alone. image_features(c, model, inputs, sequences), of all images in one row or a list with those of
/// each, are scattered into the embeddings.
template <class Family, class Inputs>
Value prefill(Context& c, const Assembly<Family>& m, const Inputs& in, const Sequences& s, Cache& cache) {
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    if (in.pixels) {
      features = joined(batch_features(c, m, in, s));
      features = eager::to(features, embeds.dtype());
      masks = placeholder_masks(in.text.ids, Family::assembly.takes_videos);
      embeds = eager::masked_scatter(embeds, masks.image, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return head_output(c, m.head, hidden);
}

/// One token over the cache.
template <class Family>
Value decode(Context& c, const Assembly<Family>& m, const TextInputs& in, Cache& cache) {
  return decode_one_token(c, m, in, cache);
}

}  // namespace vlmest
