// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/diagnose/advise/action/actions_process.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace action {

VLMEST_INLINE std::vector<Settings> released_spectra(const Subject& s) {
  Settings released = s.now;
  bool any = false;
  for (BlockConfig& b : released.vlm.blocks) {
    const auto release = [&](auto& spectral) { any = std::exchange(spectral.keeps_steps, false) || any; };
    if (auto* f = std::get_if<SpectralFilter>(&b.op)) release(*f);
    if (auto* c = std::get_if<SpectralCrop>(&b.op)) release(*c);
  }
  std::vector<Settings> r;
  if (any) r.push_back(std::move(released));
  return r;
}

}  // namespace action
}  // namespace vlmest::diagnose
