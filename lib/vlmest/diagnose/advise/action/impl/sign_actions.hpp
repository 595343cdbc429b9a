// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <vlmest/diagnose/advise/action/generic_actions.hpp>
#include <vlmest/diagnose/advise/action/sign_actions.hpp>
#include <vlmest/diagnose/verdict/sign_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace sign_actions_detail {

inline Action made(ActionId id, std::string_view title, std::string how, Loses loses) {
  return {.id = id,
          .title = std::string(title),
          .fits_known = false,
          .generic = true,
          .how = std::move(how),
          .loses = loses};
}

/// An engine's cache of encoded pictures and the one that does not fit it: tokens of both.
inline std::vector<Action> of_encoder_cache(const FoundSign* f) {
  using sign_verdict::whole;
  const bool figures = f != nullptr && f->numbers.size() == 2 && f->numbers[0] > 0;
  const std::string what = f != nullptr && !f->note.empty() ? f->note : "picture";
  const std::string least = figures ? whole(std::ceil(f->numbers[0] / 1024) * 1024) : "N  # its tokens, or more";
  const std::string share =
      figures ? "at most " + whole(std::floor(100 * f->numbers[1] / f->numbers[0])) + " % of its" : "fewer";
  return {made(action_id(sign_rows::encoder_cache), "an encoder cache that holds the " + what,
               "vllm serve ... --max-num-batched-tokens " + least, Loses::nothing),
          made(action_id("smaller-images"),
               "a " + what + (what == "video" ? " of fewer frames or pixels" : " of fewer pixels"),
               what == "video" ? "hand over " + share + " frames, or pixels of a frame: fps, num_frames, max_pixels"
                               : "resize it to " + share + " pixels, or --mm-processor-kwargs '{\"max_pixels\": ...}'",
               Loses::quality)};
}

}  // namespace sign_actions_detail

VLMEST_INLINE bool of_other_runtime(const std::vector<FoundSign>& signs) {
  return std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return traits(f.sign).without_torch; });
}

VLMEST_INLINE std::vector<Action> sign_actions(const Verdict& v, const std::vector<FoundSign>& signs) {
  using namespace sign_actions_detail;
  std::uint32_t found = 0;
  for (const FoundSign& f : signs) found |= sign_rows::bit(f.sign);
  if (v.cause == Cause::encoder_cache) {
    const auto f = std::find_if(signs.begin(), signs.end(),
                                [](const FoundSign& x) { return x.sign == RunSign::image_beyond_cache; });
    return of_encoder_cache(f == signs.end() ? nullptr : &*f);
  }
  // A process that ends while weights are loaded is not helped by fewer workers.
  const bool loading = std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) {
    return f.text.find("Loading checkpoint shards") != std::string::npos;
  });
  Failure of;
  of.foreign = of_other_runtime(signs);
  std::vector<Action> r;
  for (const sign_rows::Row& row : sign_rows::rows) {
    if (row.cause != v.cause || (row.signs != 0 && (row.signs & found) == 0)) continue;
    if (!row.title.empty())
      r.push_back(made(id_of(row), row.title, std::string(row.how), row.loses));
    else if (auto a = generic_action(id_of(row), platform_for(v.cause, of)))
      r.push_back(*std::move(a));
  }
  if (loading)
    std::stable_partition(r.begin(), r.end(), [](const Action& a) { return a.id == action_id("load-once"); });
  return r;
}

}  // namespace vlmest::diagnose
