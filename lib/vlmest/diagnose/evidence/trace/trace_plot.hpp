// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include <vlmest/diagnose/evidence/byte_source.hpp>

namespace vlmest::diagnose {

/// The pickle inside of a page that `python -m torch.cuda._memory_viz trace_plot` wrote: base64 in a list of files
/// (torch/cuda/_memory_viz.py, _format_viz). Nothing where the page holds none. `page` must outlive the source.
std::optional<ByteSource> trace_plot_pickle(std::string_view page);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/trace/impl/trace_plot.hpp>
#endif
