// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/evidence/text/log_quantity.hpp>
#include <vlmest/diagnose/evidence/text/word_starts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose::memory_log {

VLMEST_INLINE bool is_wish(std::string_view label) {
  for (const std::string_view word :
       {"allocate", "allocating", "alloc", "malloc", "tried", "trying", "attempting", "failed", "requested", "needed",
        "required", "exceed", "exceeds", "available for"})
    if (const auto at = label.find(word); at != std::string_view::npos) {
      const auto end = at + word.size();
      const bool whole = (at == 0 || label[at - 1] == ' ') && (end == label.size() || label[end] == ' ');
      // "gpu mem alloc: 12 GB" is a figure of its own, "alloc failed" is not.
      if (whole && (word != "alloc" || log_prefix::has(label, "fail"))) return true;
    }
  return false;
}

/// Beginnings of all words that tell a quantity; labels of up to six letters may be "it", "ma", "max ca".
inline constexpr std::array<std::string_view, 17> telling_labels{"mem", "all", "res", "cac", "vra", "los",
                                                                 "nor", "ste", "ite", "aft", "ran", "sca",
                                                                 "gno", "act", "tot", "fre", "use"};
inline bool may_be_quantity(std::string_view label) {
  static constexpr auto starts = WordStarts::make(telling_labels, true);
  if (label.size() <= 6) return true;
  for (std::size_t i = 0; i + 3 <= label.size(); ++i)
    if (starts(label, i) != 0) return true;
  return false;
}

VLMEST_INLINE Quantity quantity(std::string_view label, std::string_view after) {
  using log_prefix::has;
  if (!may_be_quantity(label)) return Quantity::none;
  // Lightning's "train/loss_step" and "train/loss_epoch" are losses.
  if (label.ends_with("loss step") || label.ends_with("loss epoch"))
    return has(label, "eval") || has(label, "val ") ? Quantity::none : Quantity::loss;
  const bool memory = has(label, "mem") || has(label, "alloc") || has(label, "reserved") || has(label, "cached") ||
                      has(label, "vram") || is(label, {"ma", "max ma", "ca", "max ca"});
  if (!memory) {
    if (has(label, "per ") || has(label, "time") || has(label, "skipped") || has(label, "number of"))
      return Quantity::none;
    if (ends_word(label, "step") || ends_word(label, "iteration") || ends_word(label, "iter") ||
        ends_word(label, "steps") || is(label, {"global step", "it"}))
      return Quantity::step;
    if (ends_word(label, "after") && (after.starts_with(" iteration") || after.starts_with(" step")))
      return Quantity::step;
    if (is(label, {"rank", "local rank", "global rank"})) return Quantity::rank;
    if (has(label, "eval")) return Quantity::none;
    if (ends_word(label, "loss scale") || ends_word(label, "grad scale") || ends_word(label, "loss scale to"))
      return Quantity::loss_scale;
    if (ends_word(label, "loss")) return Quantity::loss;
    if (ends_word(label, "grad norm") || ends_word(label, "gradient norm") || ends_word(label, "gnorm") ||
        ends_word(label, "grad norm total") || ends_word(label, "gradnorm"))
      return Quantity::grad_norm;
    return Quantity::none;
  }
  if (is_wish(label)) return Quantity::none;
  if (has(label, "cpu") || has(label, "host") || has(label, "delta") || has(label, "count") || has(label, "pct") ||
      has(label, "percent") || has(label, "retries") || has(label, "theoretical") || has(label, "fraction"))
    return Quantity::none;
  // torch.cuda.memory_stats(): counts of blocks, single pools, and what was ever allocated; wandb's memoryAllocated is
  // a percentage.
  if (has(label, "pool") || label.ends_with("freed") || label.ends_with("all allocated") || has(label, "inactive") ||
      (has(label, " all ") && !has(label, "bytes")) || label.ends_with("memoryallocated"))
    return Quantity::none;
  const bool peak = has(label, "max") || has(label, "peak");
  if (has(label, "reserved") || has(label, "cached") || ends_word(label, "ca") || has(label, "resv"))
    return peak ? Quantity::peak_reserved : Quantity::reserved;
  if (has(label, "active")) return peak ? Quantity::peak_active : Quantity::active;
  if (has(label, "alloc") || ends_word(label, "ma")) return peak ? Quantity::peak_allocated : Quantity::allocated;
  if (has(label, "total")) return Quantity::total;
  if (has(label, "free") || has(label, "avail")) return Quantity::free;
  if (has(label, "used") || has(label, "usage") || has(label, "vram") || ends_word(label, "mem") ||
      ends_word(label, "memory") || ends_word(label, "gib") || ends_word(label, "gb") || ends_word(label, "mb") ||
      ends_word(label, "mib") || ends_word(label, "bytes"))
    return peak ? Quantity::peak_allocated : Quantity::used;
  return peak ? Quantity::peak_allocated : Quantity::none;
}

VLMEST_INLINE Quantity KnownQuantities::operator()(std::string_view label, std::string_view after) {
  if (label.empty() || !may_be_quantity(label)) return Quantity::none;
  // Of these alone what follows decides as well.
  if (label.size() > Known().label.size() || ends_word(label, "after")) return quantity(label, after);
  std::uint32_t hash = 0;
  for (const char c : label) hash = hash * 31 + static_cast<unsigned char>(c);
  Known& k = known_[(hash ^ hash >> 7) % known_.size()];
  if (std::string_view(k.label.data(), k.size) != label) {
    k.quantity = quantity(label, after);
    k.size = label.copy(k.label.data(), label.size());
  }
  return k.quantity;
}

}  // namespace vlmest::diagnose::memory_log
