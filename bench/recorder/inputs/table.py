# SPDX-License-Identifier: Apache-2.0
"""Model types and how their images are laid out: the function of this folder as "file.function", and the size of an
image where none is given: None for that of the tower, "canvas" for the largest square of image_grid_pinpoints.

Written by docs/generate/recorder-table.cpp out of the rows of lib/vlmest/family/registry.hpp.
"""

TABLE: dict[str, tuple[str, int | str | None]] = {
    "idefics3": ("tiles.idefics3", None),
    "smolvlm": ("tiles.idefics3", None),
    "aya_vision": ("tiles.aya_vision", None),
    "cohere2_vision": ("tiles.cohere2_vision", None),
    "llava": ("square.llava", None),
    "llava_next": ("anyres.llava_next", "canvas"),
    "llava_onevision": ("anyres.llava_onevision", None),
    "vipllava": ("square.llava", None),
    "mistral3": ("native.mistral3", None),
    "lighton_ocr": ("native.lighton_ocr", None),
    "qwen2_vl": ("native.qwen2_vl", 448),
    "qwen2_5_vl": ("native.qwen2_vl", 448),
    "qwen3_vl": ("native.qwen3_vl", 512),
    "qwen3_vl_moe": ("native.qwen3_vl", 512),
    "qwen3_5": ("native.qwen3_vl", 512),
    "qwen3_5_moe": ("native.qwen3_vl", 512),
    "glm4v": ("native.glm4v", 448),
    "glm46v": ("native.glm4v", 448),
    "glm_ocr": ("native.glm4v", 448),
    "blip-2": ("square.blip2", None),
    "internvl": ("tiles.internvl", None),
    "qianfan_ocr": ("tiles.internvl", None),
    "mllama": ("tiles.mllama", None),
    "paligemma": ("square.paligemma", None),
    "gemma3": ("square.gemma3", None),
    "gemma4": ("positioned.gemma4", 768),
    "gemma4_unified": ("positioned.gemma4_unified", 768),
    "lfm2_vl": ("native.lfm2_vl", 512),
    "llava_next_video": ("anyres.llava_next", "canvas"),
    "video_llava": ("square.video_llava", None),
    "florence2": ("square.florence2", 768),
    "ovis2": ("tiles.ovis2", None),
}
