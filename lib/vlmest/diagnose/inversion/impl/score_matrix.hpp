// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/diagnose/evidence/cut_offs.hpp>
#include <vlmest/diagnose/evidence/stack/allocation_site.hpp>
#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/inversion/public_widths.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace score_matrix {

/// The largest n with n * n <= v.
inline std::int64_t root(std::int64_t v) {
  auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(std::max<std::int64_t>(v, 0))));
  // By quotients: the square of a root near the largest 64-bit number is beyond it.
  while (n > 0 && n > v / n) --n;
  while (n + 1 <= v / (n + 1)) ++n;
  return n;
}

struct Sides {
  std::int64_t height = 0, width = 0;  ///< pixels
};

/// Sides of a picture of `patches` patches, in whole merged ones, as near to a square as can be; nothing where it would
/// be longer than three times its width.
inline std::optional<Sides> picture_of(std::int64_t patches, std::int64_t unit, std::int64_t patch) {
  const std::int64_t side = root(unit), merged = patches / std::max<std::int64_t>(unit, 1);
  for (std::int64_t rows = root(merged); rows > 0 && merged <= 3 * rows * rows; --rows)
    if (merged % rows == 0) return Sides{rows * side * patch, merged / rows * side * patch};
  return std::nullopt;
}

/// `copies` x heads x N x N elements in [low, high].
inline std::optional<ScoreMatrix> solved(const AttentionHeads& of, std::int64_t copies, int element, const Failure& f) {
  const std::int64_t one = copies * of.heads * element;
  ScoreMatrix m{.of = of, .copies = copies, .element = element};
  const std::int64_t low = f.tensor->low.value(), high = f.tensor->high.value();
  const std::int64_t least = root((low - 1) / one) + 1, most = root(high / one),
                     unit = std::max<std::int64_t>(of.unit, 1);
  m.first = (least + unit - 1) / unit * unit;
  m.last = most / unit * unit;
  if (m.first > m.last) {
    // A graph's whole buffer is asked for at once (ggml_gallocr_reserve): the scores are the largest part of it.
    if (!f.whole_graph) return std::nullopt;
    m.first = m.last;
    m.exact = false;
  }
  // Of the lengths that print alike the one with the most factors of two: grids of merged patches have some.
  m.length = m.last;
  for (std::int64_t step = unit; step <= m.last; step *= 2)
    if (const std::int64_t n = m.last / step * step; n >= m.first) m.length = n;
  return m.length > 0 ? std::optional(m) : std::nullopt;
}

/// Tiles of one size: how many of them have that many bytes together.
inline std::optional<ScoreMatrix> of_tiles(const AttentionHeads& of, int element, const Failure& f) {
  const std::int64_t one = of.heads * of.fixed * of.fixed * element;
  const std::int64_t first = (f.tensor->low.value() - 1) / one + 1, last = f.tensor->high.value() / one;
  if (first > last || first > 4096) return std::nullopt;
  ScoreMatrix m{.of = of, .copies = first, .length = of.fixed, .first = of.fixed, .last = of.fixed, .element = element};
  // Where several counts print alike, the figure says nothing.
  m.plausibility = first == last ? 0.5 : 0.05;
  return m;
}

inline double plausible_length(const ScoreMatrix& m, const Failure& f, const LengthBounds& b) {
  const bool vision = m.of.part != Part::language;
  if (f.phase == RunPhase::vision_forward && !vision) return 0.02;
  if (vision && in_decoder(f.frames)) return 0.02;
  if (m.length < least_positions) return 0.02;
  if (vision) {
    if (m.of.most == 0 || m.length <= m.of.most * std::max<std::int64_t>(b.images.value_or(1), 1)) return 1;
    return m.length <= 64 * m.of.most ? 0.7 : 0.05;
  }
  if (b.seq && m.length > *b.seq) return 0;
  const std::int64_t most = m.of.most > 0 ? m.of.most : most_positions;
  return m.length <= most ? 0.5 : 0.02;
}

/// Both types are tried: the product has the run's, softmax and math path are in fp32.
inline double plausible_type(const ScoreMatrix& m, const Failure& f, const LengthBounds& b) {
  if (f.backend == MemoryBackend::ggml) return m.element == 4 ? 1 : 0;
  if (b.element) return *b.element == m.element ? 1 : m.element == 4 ? 0.6 : 0;
  return m.element == 2 ? 1 : 0.6;
}

}  // namespace score_matrix

VLMEST_INLINE Bytes ScoreMatrix::bytes() const { return Bytes(copies * of.heads * length * length * element); }

VLMEST_INLINE std::vector<ScoreMatrix> score_matrices(const Failure& f, const std::vector<AttentionHeads>& given,
                                                      const LengthBounds& bounds) {
  using namespace score_matrix;
  std::vector<ScoreMatrix> r;
  if (!f.tensor || !f.telling) return r;
  std::vector<AttentionHeads> all;
  const bool mask = f.site == AllocationSite::attention_mask;  // one for all heads
  for (AttentionHeads a : given) {
    if (mask) a.heads = 1;
    if (std::none_of(all.begin(), all.end(),
                     [&](const AttentionHeads& x) { return x.part == a.part && x.heads == a.heads; }))
      all.push_back(a);
  }
  for (const AttentionHeads& a : all)
    for (const int element : {2, 4}) {
      std::vector<std::int64_t> copies{1};
      if (a.part == Part::language && bounds.batch > 1) copies.insert(copies.begin(), bounds.batch);
      for (const std::int64_t n : copies) {
        auto m = a.fixed > 0 ? of_tiles(a, element, f) : solved(a, n, element, f);
        if (!m) continue;
        m->plausibility =
            (a.fixed > 0 ? m->plausibility : plausible_length(*m, f, bounds)) * plausible_type(*m, f, bounds);
        if (m->plausibility > 0) r.push_back(*m);
        if (a.fixed > 0) break;
      }
    }
  sort_stably(r, [](const ScoreMatrix& a, const ScoreMatrix& b) { return a.plausibility > b.plausibility; });
  return r;
}

VLMEST_INLINE std::vector<ScoreMatrix> score_matrices_of_any_model(const Failure& f, const LengthBounds& bounds) {
  // num_heads of CLIP-L, SigLIP-so400m, InternViT-300M and Qwen's towers: 16; of SigLIP-base and SAM-B: 12; of language
  // models of 2 to 4 billion weights 12, 16 or 20, of 7 and 8 billion 28 or 32, of 13 billion 40, of 70 billion 64.
  std::vector<AttentionHeads> all;
  const bool tower = f.phase == RunPhase::vision_forward || in_vision_tower(f.frames);
  for (const std::int64_t heads : {16, 12, 32, 28, 20, 40, 64})
    if (!tower || heads <= 16) all.push_back({.part = tower ? Part::vision : Part::model, .scope = {}, .heads = heads});
  std::vector<ScoreMatrix> r = score_matrices(f, all, bounds);
  if (bounds.seq && f.phase != RunPhase::vision_forward)
    for (ScoreMatrix& m : r) m.plausibility *= m.length <= *bounds.seq ? 1 : 0.5;
  sort_stably(r, [](const ScoreMatrix& a, const ScoreMatrix& b) { return a.plausibility > b.plausibility; });
  return r;
}

VLMEST_INLINE ScoreGround score_ground(const Failure& f, const std::vector<ScoreMatrix>& matrices) {
  // What a line makes in so many words is not what its bytes would be as well.
  if (f.made || f.program || !f.tensor || !f.telling || matrices.empty() ||
      !cut_off::scores_at_all.reached(matrices.front().plausibility))
    return ScoreGround::none;
  // Loading, optimizers and heads ask for large tensors of their own, and so do engines for their caches.
  const Cause told = stack_cause(f.site, RunPhase::unknown);
  const bool attends = f.site == AllocationSite::score_matrix || f.site == AllocationSite::sdpa;
  const bool open = attends || told == Cause::unknown || told == Cause::vision_tiles;
  if (!open || f.phase == RunPhase::load_weights || f.phase == RunPhase::optimizer_step ||
      f.phase == RunPhase::module_gather || f.phase == RunPhase::loss)
    return ScoreGround::none;
  // The buffer of a whole graph has the bytes of more than one tensor, and those of a weight are scores' by chance.
  if (f.tensor->exact() && !f.whole_graph && matrices.front().exact &&
      cut_off::scores_by_digits.reached(f.tensor->value) && weights_of_size(*f.tensor, Cause::unknown, {}).empty())
    return ScoreGround::digits;
  const auto device = f.one_buffer ? f.allowed : f.total;
  if (f.one_buffer || (device && f.tensor->low > device->high)) return ScoreGround::beyond;
  if (!device && cut_off::scores_by_size.reached(f.tensor->low)) return ScoreGround::large;
  return attends ? ScoreGround::stack : ScoreGround::none;
}

VLMEST_INLINE DescribedTensor described(const ScoreMatrix& m) {
  return {.name = "attention scores",
          .scope = m.of.scope,
          .role = Role::activation,
          .shape = {m.copies, m.of.heads, m.length, m.length},
          .dtype = m.element == 2 ? "bf16" : "fp32",
          .bytes = m.bytes()};
}

VLMEST_INLINE std::string matrix_words(const ScoreMatrix& m) {
  using score_matrix::number;
  const std::string n = number(m.length);
  std::string r = m.copies > 1 ? number(m.copies) + (m.of.fixed > 0 ? " tiles x " : " sequences x ") : "";
  r += (m.of.heads > 1 ? number(m.of.heads) + " heads x " : "a mask of ") + n + " x " + n + " x " +
       std::to_string(m.element) + " bytes = " + in_words(m.bytes());
  if (!m.exact) r += " at most";
  if (m.of.fixed > 0) return r;
  if (m.last > m.first) r += " (any length from " + number(m.first) + " to " + number(m.last) + " prints so)";
  if (m.of.part == Part::language) return r + ": a prompt of " + n + " tokens";
  if (m.of.part == Part::model) return r;
  r += ": " + n + " patches";
  if (m.of.patch == 0) return r + " in one call of the tower";
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(m.length)))) * m.of.patch;
  if (m.of.most > 0 && m.length > m.of.most)
    r += ", more than one picture has (" + number(m.of.most) + "): " + number((m.length + m.of.most - 1) / m.of.most) +
         " or more pictures, or the frames of a video, in one call of the tower; together as many pixels as " +
         number(side) + "x" + number(side);
  else if (const auto p = score_matrix::picture_of(m.length, m.of.unit, m.of.patch))
    r += ", as of a picture of " + number(p->height) + "x" + number(p->width) +
         " pixels, or of all pictures and frames together as many";
  else
    r += ", of all pictures and frames together as many pixels as " + number(side) + "x" + number(side);
  return r;
}

VLMEST_INLINE std::string fallback_words(const Failure& f) {
  if (f.backend == MemoryBackend::mlx)
    return "MLX's fused attention makes no such matrix unless the head's size is one that its kernel lacks, or the "
           "module writes the products out.";
  if (f.backend == MemoryBackend::mps)
    return "scaled_dot_product_attention on MPS writes the scores out; so does eager attention.";
  if (f.backend == MemoryBackend::ggml)
    return "ggml writes the scores out in fp32 wherever flash attention is off or the encoder has none.";
  // aten/src/ATen/native/transformers/sdp_utils_cpp.h (check_tensor_shapes) and cuda/sdp_utils.cpp
  // (can_use_flash_attention, can_use_mem_efficient_attention).
  return "scaled_dot_product_attention does not make it unless neither of its fused kernels takes the call, so that "
         "its math path runs: FlashAttention takes no mask, no fp32, no head size above 256 and no GPU before compute "
         "capability 8.0; the memory-efficient kernel no head size that is not a multiple of 8 (4 in fp32); both only "
         "tensors of four dimensions; a ROCm build may have neither.";
}

}  // namespace vlmest::diagnose
