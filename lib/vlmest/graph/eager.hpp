// SPDX-License-Identifier: Apache-2.0
#pragma once

// IWYU pragma: begin_exports
#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/attention.hpp>
#include <vlmest/graph/eager/bucketize.hpp>
#include <vlmest/graph/eager/causal_conv1d.hpp>
#include <vlmest/graph/eager/collective.hpp>
#include <vlmest/graph/eager/complex.hpp>
#include <vlmest/graph/eager/concatenation.hpp>
#include <vlmest/graph/eager/conv1d.hpp>
#include <vlmest/graph/eager/convolution.hpp>
#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/data.hpp>
#include <vlmest/graph/eager/depthwise.hpp>
#include <vlmest/graph/eager/dropout.hpp>
#include <vlmest/graph/eager/embedding_bag.hpp>
#include <vlmest/graph/eager/extremes.hpp>
#include <vlmest/graph/eager/flash_attention.hpp>
#include <vlmest/graph/eager/fused.hpp>
#include <vlmest/graph/eager/fused_moe.hpp>
#include <vlmest/graph/eager/gated_delta_rule.hpp>
#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/graph/eager/patch_conv.hpp>
#include <vlmest/graph/eager/pointwise.hpp>
#include <vlmest/graph/eager/product.hpp>
#include <vlmest/graph/eager/reduce.hpp>
#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/graph/eager/ring_attention.hpp>
#include <vlmest/graph/eager/routing.hpp>
#include <vlmest/graph/eager/sampling.hpp>
#include <vlmest/graph/eager/scan.hpp>
#include <vlmest/graph/eager/selection.hpp>
#include <vlmest/graph/eager/spectral.hpp>
#include <vlmest/graph/eager/triangular.hpp>
#include <vlmest/graph/eager/unary.hpp>
#include <vlmest/graph/eager/view.hpp>
// IWYU pragma: end_exports
