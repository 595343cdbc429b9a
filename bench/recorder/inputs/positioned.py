# SPDX-License-Identifier: Apache-2.0
"""Gemma 4: rows of patches padded to a budget, each with its column and row.

transformers 5.17: image_processing_gemma4.py (get_aspect_ratio_preserving_size), image_processing_gemma4_unified.py.
"""

import math

from recorder.errors import RecorderError
from recorder.inputs.layout import INT64, Images, Request, Tensor, number, pixels

SOFT_TOKENS = 280  # max_soft_tokens of the released preprocessor_config.json; a config.json does not hold it
PADDING = (-1, -1)


def _refused(r: Request, what: str) -> RecorderError:
    return RecorderError("--image-size", f"{r.height}x{r.width} {what}", "use a less extreme aspect ratio")


def fitted(r: Request, patch: int, pool: int) -> tuple[int, int]:
    """Features down and across: as many as the budget holds in the image's aspect ratio."""
    side = patch * pool
    scale = math.sqrt(SOFT_TOKENS * side**2 / (r.height * r.width))
    rows, cols = math.floor(scale * r.height / side), math.floor(scale * r.width / side)
    if rows == cols == 0:
        raise _refused(r, "is scaled to nothing")
    if rows == 0:
        rows, cols = 1, min(r.width // r.height, SOFT_TOKENS)
    elif cols == 0:
        rows, cols = min(r.height // r.width, SOFT_TOKENS), 1
    if rows * cols > SOFT_TOKENS:
        raise _refused(r, "is scaled to more than the budget")
    return rows, cols


def _padded(r: Request, rows: int, cols: int, length: int, values: int, tokens: int) -> Images:
    places = tuple((x, y) for y in range(rows) for x in range(cols))
    positions = Tensor((r.count, length, 2), INT64, places + (PADDING,) * (length - rows * cols))
    return Images(
        tokens,
        pixels(r.count, length, values) | {"image_position_ids": positions},
        token_types="mm_token_type_ids",
    )


def _sides(r: Request) -> tuple[int, int]:
    return number(r.document, "vision_config.patch_size", 16), number(r.document, "vision_config.pooling_kernel_size", 3)


def gemma4(r: Request) -> Images:
    """The tower sees patches; squares of them are pooled into features behind it."""
    patch, pool = _sides(r)
    rows, cols = fitted(r, patch, pool)
    return _padded(r, rows * pool, cols * pool, SOFT_TOKENS * pool**2, 3 * patch**2, rows * cols)


def gemma4_unified(r: Request) -> Images:
    """Without a tower: the processor joins squares of patches before it pads them."""
    patch, pool = _sides(r)
    rows, cols = fitted(r, patch, pool)
    return _padded(r, rows, cols, SOFT_TOKENS, 3 * (patch * pool) ** 2, rows * cols)
