# SPDX-License-Identifier: Apache-2.0
"""LLaVA-NeXT, LLaVA-OneVision and Granite 4 Vision: the best canvas of a list cut into tiles, and the whole image as one more tile.

transformers 5.17: image_processing_utils.py (select_best_resolution), modeling_llava_next.py (unpad_image,
image_size_to_num_patches, pack_image_features), modeling_llava_onevision.py (pack_image_features),
processing_granite4_vision.py.
"""

import math
from fractions import Fraction

from recorder.errors import RecorderError
from recorder.inputs.layout import INT64, Images, Request, Tensor, number, patch_side, pixels, value


def best_canvas(height: int, width: int, canvases) -> tuple[int, int]:
    """The canvas that keeps most of the image's pixels, then wastes least, then comes first."""
    best, most, least_waste = (0, 0), -1, 0
    for rows, cols in canvases:
        scale = min(cols / width, rows / height)
        kept = min(int(width * scale) * int(height * scale), height * width)
        waste = rows * cols - kept
        if kept > most or (kept == most and waste < least_waste):
            best, most, least_waste = (rows, cols), kept, waste
    return best


def unpadded(rows: int, cols: int, height: int, width: int) -> tuple[int, int]:
    """A grid of features without the rows or columns that only show the canvas's padding."""
    if width / height > cols / rows:
        used = int(round(height * (cols / width), 7))
        return rows - 2 * ((rows - used) // 2), cols
    used = int(round(width * (rows / height), 7))
    return rows, cols - 2 * ((cols - used) // 2)


def _canvas(r: Request, side: int) -> tuple[dict, int, int]:
    """Tensors, and the unpadded grid of the canvas, whose tiles have `side` features on a side."""
    tile = number(r.document, "vision_config.image_size")
    canvas = best_canvas(r.height, r.width, value(r.document, "image_grid_pinpoints"))
    if canvas[0] % tile or canvas[1] % tile or 0 in canvas:
        what = f"{list(canvas)} is not whole tiles"
        raise RecorderError("config: image_grid_pinpoints", what, f"give multiples of {tile}")
    down, across = canvas[0] // tile, canvas[1] // tile
    tensors = pixels(r.count, down * across + 1, 3, tile, tile)
    tensors["image_sizes"] = Tensor((r.count, 2), INT64, (r.height, r.width))
    rows, cols = unpadded(down * side, across * side, r.height, r.width)
    return tensors, rows, cols


def _with_newlines(r: Request, side: int) -> Images:
    tensors, rows, cols = _canvas(r, side)
    return Images(side * side + rows * (cols + 1), tensors)


def llava_next(r: Request) -> Images:
    """The whole image's patches, then the canvas's with a newline feature after each row."""
    return _with_newlines(r, patch_side(r.document))


def granite4_vision(r: Request) -> Images:
    """The same of fewer features: downsample_rate of a tile's patches along each side."""
    return _with_newlines(r, int(patch_side(r.document) * Fraction(str(value(r.document, "downsample_rate")))))


def llava_onevision(r: Request) -> Images:
    """The same, the canvas shrunk where it is larger than vision_aspect_ratio's "anyres_max_N" tiles. Several images of
    a prompt are one tile each: so the processor leaves them that gets a list for each prompt."""
    if r.images > 1:
        tile, side = number(r.document, "vision_config.image_size"), patch_side(r.document)
        tensors = pixels(r.count, 1, 3, tile, tile)
        tensors["image_sizes"] = Tensor((r.count, 2), INT64, (r.height, r.width))
        tensors["batch_num_images"] = Tensor((r.batch,), INT64, (r.images,))
        return Images(side * side + 1, tensors)
    side = patch_side(r.document)
    tensors, rows, cols = _canvas(r, side)
    most = int(str(r.document.get("vision_aspect_ratio", "anyres_max_9")).removeprefix("anyres_max_"))
    ratio = math.sqrt(rows * cols / (most * side * side))
    if ratio > 1.1:
        rows, cols = int(rows // ratio), int(cols // ratio)
    return Images(side * side + rows * (cols + 1), tensors)
