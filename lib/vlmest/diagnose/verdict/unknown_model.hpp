// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/nn/vlm.hpp>

/// Logits and caches of a run whose model is not known: what their size would be with the vocabularies and the heads of
/// models that are. A row of logits is some hundred KiB and a figure is good to 2 MiB, so that some number of rows fits
/// any request: only round numbers of rows count, and where several vocabularies have one, that is said.
namespace vlmest::diagnose {

/// What decides the sizes of a model's logits and cache, with the models that share it.
struct RowWidth {
  std::int64_t elements = 0;  ///< the vocabulary; heads of keys times their width
  std::vector<std::string> models;
};
struct PublicRows {
  std::vector<RowWidth> vocabularies, caches;
};

/// Of models as a short prompt has them; those that do not run so are left out.
PublicRows public_rows(const std::vector<const Vlm*>& models, const Device& device);

/// Whether public_rows() could name what failed.
bool may_name_rows(const Verdict& v, const Failure& f);

/// Names logits where a stack or somebody's words tell of them and one vocabulary alone fits. By their size alone
/// nothing is called logits: of the requests of 1 GiB and more in the open texts of tests/data/corpus three of 31 are a
/// power of two of rows of one shipped vocabulary, and none of the three was logits.
void name_by_public_rows(Verdict& v, const Failure& f, const PublicRows& rows);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/unknown_model.hpp>
#endif
