// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <system_error>
#include <variant>

#include <vlmest/json/block.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE BlockPoint read_point(const Reader& r) {
  const std::string after = r.string("after", "");
  if (after == "vision_tower") return {BlockPoint::At::tower};
  if (after == "projector") return {BlockPoint::At::projector};
  const std::string_view inside = "vision_tower.layers.";
  if (after.starts_with(inside)) {
    BlockPoint p{BlockPoint::At::tower_layer};
    const char* const end = after.data() + after.size();
    const auto [stop, error] = std::from_chars(after.data() + inside.size(), end, p.layer);
    if (error == std::errc{} && stop == end && p.layer >= 0) return p;
  }
  r.fail("after", after.empty() ? "missing" : "unknown point '" + after.substr(0, 64) + "'",
         "one of vision_tower, vision_tower.layers.N (from 0), projector");
}

VLMEST_INLINE ReadBlock read_op(const Reader& r, const std::string& type) {
  auto keys = [&](std::initializer_list<std::string_view> own) {
    std::vector<std::string_view> all{"type", "after", "norm", "residual"};
    all.insert(all.end(), own.begin(), own.end());
    only_keys(r, all);
  };
  auto width = [&](const char* key) { return r.integer_required(key, 1, widest); };
  if (type == "spectral_filter") {
    keys({"grid", "channels", "dims", "keeps_steps"});
    const SpectralFilter f{.grid = read_grid(r, "grid"),
                           .channels = width("channels"),
                           .flat = read_flat(r),
                           .keeps_steps = r.boolean("keeps_steps", false)};
    return {f, f.channels};
  }
  if (type == "spectral_crop") {
    keys({"from", "to", "channels", "dims", "keeps_steps"});
    const SpectralCrop s{.from = read_grid(r, "from"),
                         .to = read_grid(r, "to"),
                         .flat = read_flat(r),
                         .keeps_steps = r.boolean("keeps_steps", false)};
    const bool larger = s.flat ? s.to.count() > s.from.count() : s.to.rows > s.from.rows || s.to.cols > s.from.cols;
    if (larger) r.fail("to", "larger than \"from\"", "a crop keeps the lowest frequencies of the grid");
    return {s, r.integer("channels", 0, 1, widest)};
  }
  if (type == "linear") {
    keys({"in", "out", "bias"});
    return {LinearBlock{width("in"), width("out"), r.boolean("bias", true)}, width("in")};
  }
  if (type == "mlp") {
    keys({"width", "inner", "activation", "bias"});
    return {MlpBlock{width("width"), width("inner"), parse_activation(r.string("activation", "gelu")),
                     r.boolean("bias", true)},
            width("width")};
  }
  if (type == "attention") {
    keys({"width", "heads", "bias"});
    const AttentionBlock a{width("width"), r.integer_required("heads", 1, 4096), r.boolean("bias", true)};
    if (a.width % a.heads != 0)
      r.fail("heads", "does not divide the width " + std::to_string(a.width), "choose a divisor");
    return {a, a.width};
  }
  keys({"width"});
  return {NormBlock{value_of<NormBlock::Kind>(type).value(), width("width")}, width("width")};
}

VLMEST_INLINE BlockConfig read_block(const Reader& r) {
  const std::string type = r.string("type", "");
  one_of(r, "type", type, block_types);
  const ReadBlock read = read_op(r, type);
  BlockConfig b{.after = read_point(r), .op = read.op, .norm = {}, .residual = r.boolean("residual", false)};
  if (r.given("norm")) {
    const auto kind = one_of<NormBlock::Kind>(r, "norm", r.string("norm", ""));
    if (read.width == 0) r.fail("channels", "missing", "a norm needs to know its width");
    b.norm = NormBlock{kind, read.width};
  }
  if (b.residual && (type == "spectral_crop" || (type == "linear" && r.integer("in", 0) != r.integer("out", 0))))
    r.fail("residual", "the block changes the shape of what it takes", "leave it out");
  return b;
}

VLMEST_INLINE std::string resampled_families(FamilyRows rows) {
  std::string all;
  for (const FamilyRow& row : rows)
    if (std::any_of(row.rules.begin(), row.rules.end(),
                    [](const RuleReader& r) { return r.defaults().features() != nullptr; }))
      all += (all.empty() ? "" : ", ") + std::string(row.folder);
  return all;
}

VLMEST_INLINE void resample_tokens(Vlm& vlm, const std::string& where, FamilyRows rows) {
  for (std::size_t i = 0; i < vlm.blocks.size(); ++i) {
    const auto* crop = std::get_if<SpectralCrop>(&vlm.blocks[i].op);
    if (!crop) continue;
    const std::string at = where + "[" + std::to_string(i) + "]";
    Grid* const features = vlm.image_processor.features();
    if (!features)
      throw Error(at, "this family's features cannot be resampled",
                  "spectral_crop works with " + resampled_families(rows));
    const Grid have = features->count() > 0 ? *features : layout(vlm.image_processor, vlm.native).patches;
    if (!(crop->from == have))
      throw Error(at + ".from", "the grid here is " + std::to_string(have.rows) + "x" + std::to_string(have.cols),
                  "blocks are listed in the order in which they run");
    *features = crop->to;
  }
}

VLMEST_INLINE void read_blocks(const Reader& document, Vlm& vlm, FamilyRows rows) {
  if (!document.given("blocks")) return;
  const auto& list = document.value()["blocks"];
  if (!takes_images(vlm))
    document.fail("blocks", "a plain language model has no tower to put them in", "leave them out");
  if (!list.is_array() || list.size() > 256) document.fail("blocks", "expected a list of at most 256 blocks");
  for (std::size_t i = 0; i < list.size(); ++i)
    vlm.blocks.push_back(read_block(Reader(list[i], document.path() + ".blocks[" + std::to_string(i) + "]")));
  resample_tokens(vlm, document.path() + ".blocks", rows);
}

}  // namespace vlmest::json
