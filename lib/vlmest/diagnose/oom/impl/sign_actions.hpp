// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <vlmest/diagnose/action/generic_actions.hpp>
#include <vlmest/diagnose/oom/sign_actions.hpp>
#include <vlmest/diagnose/oom/sign_words.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace sign_actions_detail {

inline Action made(std::string_view id, std::string_view title, std::string how, Loses loses) {
  return {.id = std::string(id),
          .title = std::string(title),
          .fits_known = false,
          .generic = true,
          .how = std::move(how),
          .loses = loses};
}

/// An engine's cache of encoded pictures and the one that does not fit it: tokens of both.
inline std::vector<Action> of_encoder_cache(const FoundSign* f) {
  using sign_verdict::whole;
  std::string least = "16384", share = "fewer";
  if (f != nullptr && f->numbers.size() == 2 && f->numbers[0] > 0) {
    least = whole(std::ceil(f->numbers[0] / 1024) * 1024);
    share = "at most " + whole(std::floor(100 * f->numbers[1] / f->numbers[0])) + " % of its";
  }
  return {made("encoder-cache", "an encoder cache that holds the picture",
               "vllm serve ... --max-num-batched-tokens " + least, Loses::nothing),
          made("smaller-images", "a picture of fewer pixels",
               "resize it to " + share + " pixels, or --mm-processor-kwargs '{\"max_pixels\": ...}'", Loses::quality)};
}

}  // namespace sign_actions_detail

VLMEST_INLINE bool of_other_runtime(const std::vector<FoundSign>& signs) {
  return std::any_of(signs.begin(), signs.end(), [](const FoundSign& f) { return traits(f.sign).without_torch; });
}

VLMEST_INLINE std::vector<Action> sign_actions(const Verdict& v, const std::vector<FoundSign>& signs) {
  using namespace sign_actions_detail;
  std::uint32_t found = 0;
  for (const FoundSign& f : signs) found |= bit(f.sign);
  if (v.cause == Cause::encoder_cache) {
    const auto f = std::find_if(signs.begin(), signs.end(),
                                [](const FoundSign& x) { return x.sign == RunSign::image_beyond_cache; });
    return of_encoder_cache(f == signs.end() ? nullptr : &*f);
  }
  Failure of;
  of.foreign = of_other_runtime(signs);
  std::vector<Action> r;
  for (const Row& row : rows) {
    if (row.cause != v.cause || (row.signs != 0 && (row.signs & found) == 0)) continue;
    if (!row.title.empty())
      r.push_back(made(row.id, row.title, std::string(row.how), row.loses));
    else if (auto a = generic_action(row.id, runtime_for(v.cause, of)))
      r.push_back(*std::move(a));
  }
  return r;
}

}  // namespace vlmest::diagnose
