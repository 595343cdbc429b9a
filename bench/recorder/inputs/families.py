# SPDX-License-Identifier: Apache-2.0
"""The table of model types: how each one's images are laid out."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recorder.errors import RecorderError
from recorder.inputs import anyres, native, positioned, square, tiles
from recorder.inputs.layout import Images, Request, number


@dataclass(frozen=True)
class Family:
    """`images` lays images out. `native` is the size meant where none is given; None: the tower's image_size."""

    images: Callable[[Request], Images]
    native: int | None = None


FAMILIES: dict[str, Family] = {
    "llava": Family(square.llava),
    "vipllava": Family(square.llava),
    "paligemma": Family(square.paligemma),
    "gemma3": Family(square.gemma3),
    "blip-2": Family(square.blip2),
    "llava_next": Family(anyres.llava_next),
    "llava_onevision": Family(anyres.llava_onevision),
    "mistral3": Family(native.mistral3),
    "lighton_ocr": Family(native.lighton_ocr),
    "qwen2_vl": Family(native.qwen2_vl, 448),
    "qwen2_5_vl": Family(native.qwen2_vl, 448),
    "qwen3_vl": Family(native.qwen3_vl, 512),
    "qwen3_vl_moe": Family(native.qwen3_vl, 512),
    "qwen3_5": Family(native.qwen3_vl, 512),
    "qwen3_5_moe": Family(native.qwen3_vl, 512),
    "glm4v": Family(native.glm4v, 448),
    "glm46v": Family(native.glm4v, 448),
    "glm_ocr": Family(native.glm4v, 448),
    "gemma4": Family(positioned.gemma4, 768),
    "gemma4_unified": Family(positioned.gemma4_unified, 768),
    "idefics3": Family(tiles.idefics3),
    "smolvlm": Family(tiles.idefics3),
    "internvl": Family(tiles.internvl),
    "qianfan_ocr": Family(tiles.internvl),
    "aya_vision": Family(tiles.aya_vision),
    "cohere2_vision": Family(tiles.cohere2_vision),
    "mllama": Family(tiles.mllama),
}


def family(document: Mapping) -> Family:
    """Raises RecorderError for an unknown model_type, naming the known ones."""
    name = str(document.get("model_type", ""))
    if name in FAMILIES:
        return FAMILIES[name]
    near = difflib.get_close_matches(name, FAMILIES, n=1)
    hint = (f"did you mean {near[0]}? " if near else "") + "known: " + ", ".join(FAMILIES)
    raise RecorderError("config: model_type", f"unknown type '{name}'", hint)


def native_size(document: Mapping) -> tuple[int, int]:
    """The size of an image where none is given: the tower's, or for LLaVA-NeXT its largest square canvas."""
    f = family(document)
    if f.native:
        return f.native, f.native
    try:
        side = number(document, "vision_config.image_size")
    except RecorderError as e:
        raise RecorderError(e.where, e.what, "give --image-size HxW") from e
    if document["model_type"] == "llava_next":
        side = max([side] + [h for h, w in document.get("image_grid_pinpoints", []) if h == w])
    return side, side


def lay_out(request: Request) -> Images:
    """The images of a batch."""
    return family(request.document).images(request)


def placeholder(document: Mapping) -> int:
    """The token that stands for an image's features; configs spell it in two ways."""
    for name in ("image_token_id", "image_token_index"):
        if isinstance(document.get(name), int):
            return document[name]
    raise RecorderError("config: image_token_id", "missing", "give the id of the image token")
