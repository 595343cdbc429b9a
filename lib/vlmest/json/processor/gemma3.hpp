// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/tokens/gemma3.hpp>

namespace vlmest::json {

/// Pan and scan of the file decides nothing: Gemma3Processor passes false, 256, 4 and 1.2 to every call (transformers
/// 5.17 processing_gemma3.py, _defaults), which comes before the file. A description's pan_and_scan is the call's.
inline void read_image_keys(ProcessorKeys& k, tokens::Gemma3& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.same("image_seq_length", rule.image_tokens, "mm_tokens_per_image");
  if (k.boolean("do_pan_and_scan", false))
    k.note("do_pan_and_scan is true, but the processor passes false to every call: no crops");
  k.ignore({"pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops", "pan_and_scan_min_ratio_to_activate"});
}
inline void read_outer_keys(ProcessorKeys& k, tokens::Gemma3& rule) {
  k.same("image_seq_length", rule.image_tokens, "mm_tokens_per_image");
}

}  // namespace vlmest::json
