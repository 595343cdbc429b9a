# SPDX-License-Identifier: Apache-2.0
"""Families whose tower sees images in their own size, rounded to whole patches.

transformers 5.17: image_processing_pixtral.py (get_resize_output_image_size), image_processing_qwen2_vl.py and
image_processing_glm4v.py (smart_resize, and the flattened patches of pixel_values), image_processing_kimi_k25.py
(navit_resize), image_processing_paddleocr_vl.py, image_processing_hunyuan_vl.py, image_processing_video_llama_3.py,
image_processing_muse_glimmer.py, image_processing_ernie4_5_vl_moe.py, image_processing_minimax_m3_vl.py and
image_processing_minicpmv4_6.py.
"""

import math
from dataclasses import dataclass

from recorder.errors import RecorderError
from recorder.inputs.layout import INT32, INT64, Images, Request, Tensor, ceil_div, number, pixels
from recorder.inputs.tiles import nearest_aspect_grid


def _rows_of_cells(r: Request, cell: int) -> tuple[int, int]:
    longest = number(r.document, "vision_config.image_size")
    height, width = r.height, r.width
    ratio = max(height / longest, width / longest)
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    if min(height, width) == 0:
        what = f"{r.height}x{r.width} shrinks to nothing"
        raise RecorderError("--image-size", what, "use a less extreme aspect ratio")
    return ceil_div(height, cell), ceil_div(width, cell)


def _sized(r: Request, tokens: int, height: int, width: int) -> Images:
    sizes = Tensor((r.count, 2), INT64, (height, width))
    return Images(tokens, pixels(r.count, 3, height, width) | {"image_sizes": sizes})


def _rows_of_patches(r: Request, merge: int) -> Images:
    cell = number(r.document, "vision_config.patch_size") * merge
    rows, cols = _rows_of_cells(r, cell)
    return _sized(r, rows * cols, rows * cell, cols * cell)


def pixtral(r: Request) -> Images:
    """LLaVA on a Pixtral tower: inside a square of the tower's image_size, sides rounded up to patches."""
    return _rows_of_patches(r, 1)


def mistral3(r: Request) -> Images:
    """The same; patches are merged before the projector."""
    return _rows_of_patches(r, number(r.document, "spatial_merge_size", 2))


def lighton_ocr(r: Request) -> Images:
    """Whole patches; what fills no square of merged ones is left out behind the tower."""
    patch, merge = number(r.document, "vision_config.patch_size"), number(r.document, "spatial_merge_size", 2)
    rows, cols = _rows_of_cells(r, patch)
    return _sized(r, (rows // merge) * (cols // merge), rows * patch, cols * patch)


@dataclass(frozen=True)
class Budget:
    """Pixels that an image may have, from the released preprocessor_config.json; a config.json does not hold them."""

    least: int
    most: int
    frames: int = 1  # copies of a still image that count against the limits


QWEN2 = Budget(3136, 12845056)
QWEN3 = Budget(65536, 16777216)
GLM4 = Budget(12544, 11760000, frames=2)
PADDLE_OCR = Budget(147456, 2359296)
HUNYUAN = Budget(262144, 4194304)
VIDEO_LLAMA_3 = Budget(3136, 1003520)
ERNIE = Budget(3136, 4842768)
MINIMAX_M3 = Budget(3136, 451584)


def smart_resize(height: int, width: int, factor: int, budget: Budget) -> tuple[int, int]:
    """The nearest sides that are multiples of `factor` with a pixel count inside the budget."""
    if max(height, width) > 200 * min(height, width):
        what = f"{height}x{width} has an aspect ratio above 200"
        raise RecorderError("--image-size", what, "the processor refuses it")
    area = budget.frames * height * width
    rows, cols = round(height / factor) * factor, round(width / factor) * factor
    if budget.frames * rows * cols > budget.most:
        shrink = math.sqrt(area / budget.most)
        rows = max(factor, math.floor(height / shrink / factor) * factor)
        cols = max(factor, math.floor(width / shrink / factor) * factor)
    elif budget.frames * rows * cols < budget.least:
        grow = math.sqrt(budget.least / area)
        rows, cols = math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    if min(rows, cols) == 0:
        what = f"{height}x{width} rounds to no patch"
        raise RecorderError("--image-size", what, f"use at least {factor} pixels a side")
    return rows, cols


def _patches(r: Request, budget: Budget, patch: int, channels: str, marks: bool = True) -> Images:
    patch = number(r.document, "vision_config.patch_size", patch)
    merge = number(r.document, "vision_config.spatial_merge_size", 2)
    frames = number(r.document, "vision_config.temporal_patch_size", 2)
    factor, height, width = patch * merge, r.height, r.width
    if budget.frames > 1 and min(height, width) < factor:  # GLM enlarges such an image first
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    height, width = smart_resize(height, width, factor, budget)
    rows, cols = height // patch, width // patch
    values = number(r.document, f"vision_config.{channels}", 3) * frames * patch * patch
    grid = Tensor((r.count, 3), INT64, (1, rows, cols))
    return Images(
        rows * cols // merge**2,
        pixels(r.count * rows * cols, values) | {"image_grid_thw": grid},
        token_types="mm_token_type_ids" if marks else "",
        axes=3 if marks else 0,
    )


def qwen2_vl(r: Request) -> Images:
    """Qwen2-VL and Qwen2.5-VL."""
    return _patches(r, QWEN2, 14, "in_channels")


def exaone4_5(r: Request) -> Images:
    """Qwen2.5-VL's pictures; text counts its positions on one axis, so that no token is marked."""
    return _patches(r, QWEN2, 14, "in_channels", marks=False)


def minimax_m3_vl(r: Request) -> Images:
    """MiniMax-M3; the tokens at either end of a picture are text."""
    return _patches(r, MINIMAX_M3, 14, "num_channels", marks=False)


def qwen3_vl(r: Request) -> Images:
    """Qwen3-VL and Qwen3.5, dense and mixture of experts."""
    return _patches(r, QWEN3, 16, "in_channels")


def glm4v(r: Request) -> Images:
    """GLM-4.1V; a still image fills the temporal patch with copies of itself."""
    return _patches(r, GLM4, 14, "in_channels")


LFM2_TOKENS = (64, 256)  # min_image_tokens and max_image_tokens of the released processors
LFM2_TILE, LFM2_TILES = 512, (2, 10)
LFM2_TOLERANCE = 2.0  # times the budget, from which on an image is cut into tiles


def _lfm2_whole(height: int, width: int, cell: int) -> tuple[int, int]:
    """image_processing_lfm2_vl.py, smart_resize: rows and columns of tokens."""
    least, most = LFM2_TOKENS
    rows, cols = max(1, round(height / cell)), max(1, round(width / cell))
    if rows * cols > most:
        shrink = math.sqrt(height * width / (most * cell * cell))
        return max(1, math.floor(height / shrink / cell)), max(1, math.floor(width / shrink / cell))
    if rows * cols < least:
        grow = math.sqrt(least * cell * cell / (height * width))
        return math.ceil(height * grow / cell), math.ceil(width * grow / cell)
    return rows, cols


def lfm2_vl(r: Request) -> Images:
    """One row of padded patches for each image; of one far beyond the budget a row for each tile, and one for the
    whole."""
    patch, merge = number(r.document, "vision_config.patch_size"), number(r.document, "downsample_factor", 2)
    cell = patch * merge
    whole = _lfm2_whole(r.height, r.width, cell)
    side = LFM2_TILE // patch
    longest = max(LFM2_TOKENS[1] * merge * merge, side * side)
    grids = [(whole[0] * merge, whole[1] * merge)]
    if round(r.height / cell) * round(r.width / cell) > LFM2_TOKENS[1] * LFM2_TOLERANCE:
        rows, cols = nearest_aspect_grid(r.height, r.width, LFM2_TILE, *LFM2_TILES)
        grids = [(side, side)] * (rows * cols) + grids
    longest = max(longest, *(h * w for h, w in grids))
    masks = tuple((1,) * (h * w) + (0,) * (longest - h * w) for h, w in grids)
    n = r.count * len(grids)
    channels = number(r.document, "vision_config.num_channels", 3)
    tensors = pixels(n, longest, channels * patch * patch)
    tensors["pixel_attention_mask"] = Tensor((n, longest), "int32", masks * r.count)
    tensors["spatial_shapes"] = Tensor((n, 2), INT64, tuple(grids) * r.count)
    return Images(sum((h // merge) * (w // merge) for h, w in grids), tensors)
def kimi_k25(r: Request) -> Images:
    """Kimi-K2.5: a picture shrinks to the class's limits on patches, and is filled up to whole merged ones."""
    patch = number(r.document, "vision_config.patch_size", 14)
    merge = number(r.document, "vision_config.merge_kernel_size", 2)
    most, longest = 16384, 512 * patch
    count = max(1, r.height // patch) * max(1, r.width // patch)
    scale = min(1.0, math.sqrt(most / count), longest / r.height, longest / r.width)
    sides = (min(max(1, int(side * scale)), longest) for side in (r.height, r.width))
    rows, cols = (ceil_div(side, patch * merge) * merge for side in sides)
    grid = Tensor((r.count, 3), INT64, (1, rows, cols))
    return Images(rows * cols // merge**2, pixels(r.count * rows * cols, 3, patch, patch) | {"image_grid_thw": grid})


def _single_frames(r: Request, budget: Budget, patch: int, merge: int) -> tuple[int, int, int]:
    """Rows and columns of patches of one picture, and the side of a patch."""
    patch = number(r.document, "vision_config.patch_size", patch)
    height, width = smart_resize(r.height, r.width, patch * merge, budget)
    return height // patch, width // patch, patch


def _grid(r: Request, rows: int, cols: int) -> dict[str, Tensor]:
    return {"image_grid_thw": Tensor((r.count, 3), INT64, (1, rows, cols))}


def paddleocr_vl(r: Request) -> Images:
    """PaddleOCR-VL; patches keep their shape. A picture thinner than a square of them is enlarged first."""
    merge = number(r.document, "vision_config.spatial_merge_size", 2)
    factor, height, width = number(r.document, "vision_config.patch_size", 14) * merge, r.height, r.width
    if height < factor:
        height, width = factor, round(width * factor / height)
    if width < factor:
        height, width = round(height * factor / width), factor
    rows, cols, patch = _single_frames(Request(r.document, r.batch, r.images, height, width), PADDLE_OCR, 14, merge)
    channels = number(r.document, "vision_config.num_channels", 3)
    return Images(
        rows * cols // merge**2,
        pixels(r.count * rows * cols, channels, patch, patch) | _grid(r, rows, cols),
        token_types="mm_token_type_ids",
        axes=3,
    )


def hunyuan_vl(r: Request) -> Images:
    """HunYuan-VL; a token stands behind each row of squares, and one at either end of the picture."""
    merge = number(r.document, "vision_config.spatial_merge_size", 2)
    rows, cols, patch = _single_frames(r, HUNYUAN, 16, merge)
    text = r.document.get("text_config", r.document)
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    values = number(r.document, "vision_config.num_channels", 3) * patch * patch
    return Images(
        rows // merge * (cols // merge + 1) + 2,
        pixels(r.count * rows * cols, values) | _grid(r, rows, cols),
        token_types="mm_token_type_ids",
        axes=len(rope.get("mrope_section") or rope.get("xdrope_section") or ()),
    )


def video_llama_3(r: Request) -> Images:
    """VideoLLaMA 3: a token for each patch of a picture."""
    rows, cols, patch = _single_frames(r, VIDEO_LLAMA_3, 14, 1)
    values = number(r.document, "vision_config.num_channels", 3) * patch * patch
    merges = {"image_merge_sizes": Tensor((r.count,), INT64, (1,))}
    return Images(rows * cols, pixels(r.count * rows * cols, values) | _grid(r, rows, cols) | merges)


MUSE_TOKENS = 4096  # max_image_tokens of MuseGlimmerImageProcessor


def _muse_grid(height: int, width: int, cell: int, most: int) -> tuple[int, int]:
    """Rows and columns of cells, no more than `most`, nearest to the picture's aspect ratio. The first of equally near
    ones in the order of the set is taken, as in image_processing_muse_glimmer.py, smart_resize."""
    rows, cols = height / cell, width / cell
    ratio = cols / rows
    if rows * cols > most:
        rows = (most / ratio) ** 0.5
        cols = rows * ratio
    grids = {(r, c) for r in (math.floor(rows), math.ceil(rows)) for c in (math.floor(cols), math.ceil(cols))}
    fitting = [(r, c) for r, c in grids if r >= 1 and c >= 1 and r * c <= most]
    fitting = fitting or [(max(1, round(rows)), max(1, round(cols)))]
    return min(fitting, key=lambda g: abs(g[0] / g[1] - height / width))


def muse_glimmer(r: Request) -> Images:
    """Muse Glimmer; the tokens at either end of a picture are text."""
    patch = number(r.document, "vision_config.patch_size", 14)
    merge = number(r.document, "vision_config.merge_size", 2)
    rows, cols = _muse_grid(r.height, r.width, patch * merge, MUSE_TOKENS)
    values = 3 * number(r.document, "vision_config.patch_temporal", 2) * patch * patch
    patches = rows * cols * merge**2
    return Images(rows * cols, pixels(r.count * patches, values) | _grid(r, rows * merge, cols * merge))


def ernie4_5_vl_moe(r: Request) -> Images:
    """ERNIE 4.5 VL; the tokens at either end of a picture are text, which the experts of vision take."""
    merge = number(r.document, "vision_config.spatial_merge_size", 2)
    rows, cols, patch = _single_frames(r, ERNIE, 14, merge)
    values = number(r.document, "vision_config.in_channels", 3) * patch * patch
    return Images(
        rows * cols // merge**2,
        pixels(r.count * rows * cols, values) | _grid(r, rows, cols),
        token_types="mm_token_type_ids",
        axes=3,
        expert_types="moe_mm_token_type_ids",
    )


SCALE, MOST_SLICES = 448, 9  # MiniCPM-V 4.6's scale_resolution and max_slice_nums


def _slices(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of slices of a picture; (0, 0): it is not cut."""
    wanted = min(math.ceil(width * height / SCALE**2), MOST_SLICES)
    if wanted <= 1:
        return 0, 0
    counts = [n for n in (wanted - 1, wanted, wanted + 1) if 1 < n <= MOST_SLICES]
    grids = [(n // cols, cols) for n in counts for cols in range(1, n + 1) if n % cols == 0]
    return min(grids, key=lambda g: abs(math.log(width / height) - math.log(g[1] / g[0])))


def _scaled(height: float, width: float, patch: int, enlarge: bool) -> tuple[int, int]:
    """Rows and columns of patches at about SCALE squared pixels, whole squares of four by four."""
    if height * width > SCALE**2 or enlarge:
        aspect = width / height
        height = int(SCALE / math.sqrt(aspect))
        width = int(height * aspect)
    return tuple(max(round(side / (4 * patch)) * 4, 4) for side in (height, width))


def minicpmv4_6(r: Request) -> Images:
    """MiniCPM-V 4.6: the whole picture and its slices, all patches in one row."""
    patch = number(r.document, "vision_config.patch_size", 14)
    down, cols = _slices(r.height, r.width)
    pieces = [_scaled(r.height, r.width, patch, not down)]
    if down:
        height, width = (max(round(n / k) * k, k) / k for n, k in ((r.height, down), (r.width, cols)))
        pieces += [_scaled(height, width, patch, True)] * (down * cols)
    merges = number(r.document, "merger_times", 1) + (r.document.get("downsample_mode", "16x") != "4x")
    tokens = sum((rows >> merges) * (columns >> merges) for rows, columns in pieces)
    total = r.count * sum(rows * columns for rows, columns in pieces)
    sizes = Tensor((r.count * len(pieces), 2), INT32, tuple(pieces * r.count))
    channels = number(r.document, "vision_config.num_channels", 3)
    return Images(tokens, pixels(1, channels, patch, patch * total) | {"target_sizes": sizes})
