// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/diagnose/inversion/size_products.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/inversion/together.hpp>
#include <vlmest/diagnose/inversion/usual_inputs.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace together {

/// So many pictures of a size in each sequence, as the processor lays them out.
struct Pictures {
  std::int64_t images = 0;
  PixelSize size;
  std::int64_t tokens = 0, patches = 0;
  double plausibility = 1;
};

class Search {
 public:
  Search(const Vlm& vlm, const Plan& plan, const ToldInputs& told, const Device& device, bool training,
         const Failure& f, Cause only)
      : vlm_(vlm), plan_(plan), told_(told), builds_(vlm, device, training), f_(f), only_(only) {}

  Together run(std::size_t most) {
    Together r;
    find_products();
    if (products_.empty()) return r;
    find_pictures();
    for (const Product& p : products_) solve(p);
    r.found = found_.size();
    double sum = 0;
    for (const Found& x : found_) sum += x.plausibility;
    sort_stably(found_, [](const Found& a, const Found& b) { return a.plausibility > b.plausibility; });
    // What arithmetic finds is said only where the model, built so, has the tensor.
    for (std::size_t i = 0; i < found_.size() && i < 2 * most && r.likeliest.size() < most; ++i)
      if (auto s = built(found_[i])) {
        s->share = found_[i].plausibility / sum;
        r.likeliest.push_back(*std::move(s));
      }
    return r;
  }

 private:
  struct Found {
    const Product* of = nullptr;
    std::int64_t batch = 1, seq = 0;
    Pictures pictures;
    double plausibility = 0;
  };

  Plan with(std::int64_t batch, std::int64_t text, std::int64_t images, PixelSize size) const {
    Plan p = plan_;
    p.seq.reset();
    p.more_sizes.clear();
    p.batch = batch;
    p.text = text;
    p.images = images;
    if (size.height > 0) {
      p.image_height = size.height;
      p.image_width = size.width;
    }
    return p;
  }
  Inputs inputs() const {
    const Sequences& s = builds_.sequences();
    return {s.batch, s.seq, static_cast<std::int64_t>(s.images.size()) / std::max<std::int64_t>(s.batch, 1),
            builds_.patches()};
  }

  /// Builds a short run, and runs with one input changed each, of which the sizes tell what they grow with.
  void find_products() {
    const std::int64_t images = takes_images(vlm_) ? 1 : 0, text = 96;
    std::map<solve::Key, std::vector<std::pair<Inputs, Bytes>>> sizes;
    std::map<solve::Key, Product> kinds;
    std::size_t points = 0;
    const auto add = [&](const Plan& p) {
      if (!builds_.build(p, true)) return;
      const Inputs in = inputs();
      if (points++ == 0) {
        const TensorKinds of(builds_.graph());
        for (const auto& [key, now] : builds_.kinds()) {
          const Tensor& t = builds_.graph().tensor(now.tensor);
          const PlannedAllocation a{{now.tensor, "", none, now.bytes}, t.born, "", Moment::load, {}};
          if (f_.site != AllocationSite::unknown && agrees(f_.site, builds_.graph(), of, a) < site_match::yes) continue;
          if (only_ != Cause::unknown && now.cause != only_) continue;
          kinds[key] = {.key = key, .cause = now.cause};
          sizes[key].emplace_back(in, now.bytes);
        }
        return;
      }
      for (const auto& [key, now] : builds_.kinds())
        if (const auto at = sizes.find(key); at != sizes.end()) at->second.emplace_back(in, now.bytes);
    };
    add(with(1, text, images, {}));
    if (points == 0) return;
    const ImageSize native = builds_.sequences().images.empty() ? ImageSize{} : builds_.sequences().image;
    add(with(2, text, images, {}));
    add(with(1, 2 * text, images, {native.height * 3 / 2, native.width * 3 / 2}));
    if (images > 0) add(with(1, text, 2, {}));
    std::vector<Product> all;
    for (auto& [key, at] : sizes) {
      const auto form = at.size() == points ? form_of(at) : std::nullopt;
      if (!form) continue;
      Product p = kinds[key];
      p.form = *form;
      p.each = static_cast<double>(at.front().second.value()) / amount(*form, at.front().first);
      all.push_back(std::move(p));
    }
    // The widest of each cause are what fails, and of those of one width one stands for all.
    sort_stably(all, [](const Product& a, const Product& b) { return a.each > b.each; });
    for (Product& p : all) {
      std::size_t wider = 0;
      bool same = false;
      for (const Product& x : products_) {
        same = same || (x.form == p.form && x.each == p.each && x.cause == p.cause);
        wider += x.form == p.form && x.cause == p.cause;
      }
      if (same || wider > 2) continue;
      p.plausibility = wider == 0 ? 1 : wider == 1 ? 0.6 : 0.4;
      products_.push_back(std::move(p));
    }
  }

  void find_pictures() {
    const bool sees = takes_images(vlm_);
    const auto add = [&](std::int64_t images, PixelSize size, double plausibility) {
      try {
        const Sequences s = make_sequences(vlm_, with(1, 16, images, size));
        std::int64_t patches = 0;
        for (const ImageLayout& l : s.images)
          patches = checked_add(patches, checked_mul(checked_mul(l.tiles, l.frames), l.patches.count()));
        const Pictures p{images, size, s.seq - s.text, patches, plausibility};
        // Sizes that the processor makes the same of are one.
        for (const Pictures& x : pictures_)
          if (x.images == p.images && x.tokens == p.tokens && x.patches == p.patches) return;
        pictures_.push_back(p);
      } catch (const Error&) {
        return;  // a size that the processor refuses
      }
    };
    const PixelSize given{plan_.image_height, plan_.image_width};
    std::vector<std::int64_t> counts{plan_.images};
    if (!told_.images)
      counts = sees ? std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 8, 10, 16} : std::vector<std::int64_t>{0};
    for (const std::int64_t n : counts) {
      const double likely = told_.images || n <= 1 ? 1 : n == 2 || n == 4 ? 0.5 : 0.25;
      if (told_.image_size || n == 0) {
        add(n, given, likely);
        continue;
      }
      add(n, {}, likely);
      for (const PixelSize& size : usual_sizes) add(n, size, 0.6 * likely);
    }
  }

  void solve(const Product& p) {
    const double low = static_cast<double>(f_.tensor->low.value()) / p.each,
                 high = static_cast<double>(f_.tensor->high.value()) / p.each;
    const std::int64_t positions = vlm_.positions.value_or(score_matrix::most_positions);
    constexpr std::array<std::int64_t, 20> usual{1,  2,  3,  4,  5,  6,  8,  10,  12,  16,
                                                 20, 24, 32, 40, 48, 64, 96, 128, 192, 256};
    std::vector<std::int64_t> batches(usual.begin(), usual.end());
    if (told_.batch) batches = {plan_.batch};
    for (const Pictures& pictures : pictures_)
      for (const std::int64_t b : batches) {
        // A length that is told or looked for as a whole says nothing of the pictures in it: the first stand for all.
        const bool any_pictures = of_language(p.form) && (plan_.seq || !told_.length);
        if (any_pictures && &pictures != &pictures_.front()) continue;
        // One picture at a time: how many there are does not show.
        const bool of_one = p.form == Form::patch_pairs_of_one;
        if (of_one && (b != batches.front() || pictures.images != pictures_.front().images)) continue;
        if (pictures.images > 0 && checked_mul(b, pictures.images) > 4 * solve::most_images) continue;
        const double likely = p.plausibility * (told_.batch ? 1 : plausible_batch(b));
        Found x{.of = &p, .batch = b, .pictures = pictures};
        if (!of_language(p.form)) {
          const double n = amount(p.form, {b, 0, pictures.images, pictures.patches});
          if (!(n >= low && n <= high)) continue;
          x.plausibility = likely * pictures.plausibility;
          found_.push_back(x);
          continue;
        }
        if (told_.length) {
          x.seq = plan_.seq ? *plan_.seq : plan_.text + pictures.tokens;
          const double n = amount(p.form, {b, x.seq, 0, 0});
          if (!(n >= low && n <= high)) continue;
          x.plausibility = likely * (plan_.seq ? 1 : pictures.plausibility);
          found_.push_back(x);
          continue;
        }
        const auto length = [&](double n) {
          const double s = n / static_cast<double>(b);
          return p.form == Form::tokens ? s : std::sqrt(s);
        };
        const auto first = static_cast<std::int64_t>(std::ceil(length(low)));
        const auto last = std::min(static_cast<std::int64_t>(std::floor(length(high))), positions);
        const auto s = likely_length(std::max(first, pictures.tokens + 8), last);
        if (!s || *s < score_matrix::least_positions) continue;
        x.seq = *s;
        x.plausibility = likely * plausible_length(*s);
        found_.push_back(x);
      }
  }

  /// The settings as the model runs them; nothing where it refuses them, or has no such tensor then.
  std::optional<TogetherSolution> built(const Found& x) {
    const bool language = of_language(x.of->form);
    const Pictures& p = x.pictures;
    const std::int64_t text = language ? x.seq - p.tokens : 32;
    if (text < 1 || !builds_.build(with(x.batch, text, p.images, p.size), true)) return std::nullopt;
    const auto all = builds_.kinds();
    const auto at = all.find(x.of->key);
    if (at == all.end() || !f_.tensor->holds(at->second.bytes)) return std::nullopt;
    TogetherSolution s{.cause = x.of->cause};
    if (x.of->form != Form::patch_pairs_of_one) s.batch = x.batch;
    s.tensor = describe(builds_.graph(), {at->second.tensor, "", none, at->second.bytes});
    if (language) s.seq = x.seq;
    // Of a length that is told as a whole, or found, the pictures are some of its tokens, however many.
    if (!language || (told_.length && !plan_.seq)) {
      s.images = p.images;
      const ImageSize size = builds_.sequences().images.empty() ? ImageSize{} : builds_.sequences().image;
      s.height = p.size.height > 0 ? p.size.height : size.height;
      s.width = p.size.height > 0 ? p.size.width : size.width;
    }
    return s;
  }

  const Vlm& vlm_;
  const Plan& plan_;
  ToldInputs told_;
  solve::Builds builds_;
  const Failure& f_;
  Cause only_;
  std::vector<Product> products_;
  std::vector<Pictures> pictures_;
  std::vector<Found> found_;
};

}  // namespace together

VLMEST_INLINE Together solve_together(const Vlm& vlm, const Plan& plan, const ToldInputs& told, const Device& device,
                                      bool training, const Failure& f, Cause only, std::size_t most) {
  if (!f.tensor || !f.telling) return {};
  return together::Search(vlm, plan, told, device, training, f, only).run(most);
}

}  // namespace vlmest::diagnose
