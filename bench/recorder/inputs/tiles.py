# SPDX-License-Identifier: Apache-2.0
"""Families that cut an image into the tower's squares.

transformers 5.17: image_processing_idefics2.py, image_processing_idefics3.py and image_processing_smolvlm.py, image_processing_got_ocr2.py (InternVL,
Aya Vision: get_optimal_tiled_canvas), image_processing_cohere2_vision.py, image_processing_mllama.py,
image_processing_deepseek_ocr2.py, image_processing_ovis2.py, image_processing_llama4.py, image_processing_aria.py,
image_processing_phi4_multimodal.py, image_processing_step3p7.py, image_processing_perception_lm.py.
"""

import math

from recorder.errors import RecorderError
from recorder.inputs.layout import BOOL, INT64, Images, Request, Tensor, ceil_div, number, patch_side, pixels, value

MOST_TILES = 12  # max_patches of the released processors
LLAMA4_TILES = 16  # max_patches of Llama 4's processor
LARGEST_SIDE = 4096  # MAX_IMAGE_SIZE of Idefics3's processor


def _longest_edge(height: int, width: int, edge: int, even: bool) -> tuple[int, int]:
    """The longer side becomes `edge`, the other keeps the aspect ratio, cut to an integer and made even on request."""
    aspect = width / height
    other = int(edge / aspect if width >= height else edge * aspect)
    other = max(other + other % 2 if even else other, 1)
    return (other, edge) if width >= height else (edge, other)


def _idefics3_tiles(r: Request, tile: int) -> int:
    height, width = _longest_edge(r.height, r.width, 4 * tile, even=True)
    if max(height, width) > LARGEST_SIDE:
        height, width = _longest_edge(height, width, LARGEST_SIDE, even=False)
    edge = ceil_div(max(height, width), tile) * tile
    height, width = _longest_edge(height, width, edge, even=False)
    grid = ceil_div(height, tile) * ceil_div(width, tile)
    return grid + 1 if grid > 1 else 1


def idefics3(r: Request) -> Images:
    """Idefics3 and SmolVLM: scaled to four tiles on the longer side, cut, and the whole image as one more tile."""
    tile = number(r.document, "vision_config.image_size")
    tiles = _idefics3_tiles(r, tile)
    side = patch_side(r.document) // number(r.document, "scale_factor", 2)
    return Images(tiles * side * side, pixels(r.batch, r.images * tiles, 3, tile, tile))


IDEFICS2_EDGES = (378, 980)  # shortest and longest of the class, which the released processors keep


def _between_edges(height: int, width: int) -> tuple[int, int]:
    """The longer side is at most one edge, neither smaller than the other edge."""
    shortest, longest = IDEFICS2_EDGES
    aspect = width / height
    if width >= height and width > longest:
        height, width = int(longest / aspect), longest
    elif height > width and height > longest:
        height, width = longest, int(longest * aspect)
    return max(height, shortest), max(width, shortest)


def idefics2(r: Request) -> Images:
    """Four quarters and the whole image, each scaled by itself, all padded to the largest of them."""
    heights, widths = ((side // 2, side - side // 2) for side in (r.height, r.width))
    pieces = [_between_edges(h, w) for h in heights for w in widths] + [_between_edges(r.height, r.width)]
    height, width = (max(sides) for sides in zip(*pieces))
    filled = tuple(
        ((1,) * w + (0,) * (width - w),) * h + ((0,) * width,) * (height - h) for h, w in pieces * r.images
    )
    mask = (1,) * width if len(set(pieces)) == 1 else filled
    rows = r.images * len(pieces)
    tensors = pixels(r.batch, rows, number(r.document, "vision_config.num_channels", 3), height, width)
    tensors["pixel_attention_mask"] = Tensor((r.batch, rows, height, width), last=mask)
    return Images(len(pieces) * number(r.document, "perceiver_config.resampler_n_latents", 64), tensors)


def nearest_aspect_grid(height: int, width: int, tile: int, least: int = 1, most: int = MOST_TILES) -> tuple[int, int]:
    """Rows and columns of the grid of least to most tiles whose aspect ratio is nearest to the image's. Of equally near
    grids the larger one wins while the image has more than half its pixels."""
    best, grid = float("inf"), (1, 1)
    for area in range(least, most + 1):
        for cols in range(1, area + 1):
            if area % cols:
                continue
            rows = area // cols
            off = abs(width / height - cols / rows)
            if off < best:
                best, grid = off, (rows, cols)
            elif off == best and height * width > 0.5 * tile * tile * area:
                grid = (rows, cols)
    return grid


def nearest_aspect_tiles(height: int, width: int, tile: int) -> int:
    """Tiles of that grid, with a thumbnail where they are several."""
    rows, cols = nearest_aspect_grid(height, width, tile)
    return rows * cols + (rows * cols > 1)


def _shuffled(r: Request, merge: int) -> Images:
    tile = number(r.document, "vision_config.image_size")
    tiles = nearest_aspect_tiles(r.height, r.width, tile)
    side = patch_side(r.document) // merge
    return Images(tiles * side * side, pixels(r.count * tiles, 3, tile, tile))


def _joined(r: Request, key: str) -> int:
    """Side of the squares of patches that a ratio joins: 0.5 two by two."""
    ratio = value(r.document, key)
    if not isinstance(ratio, (int, float)) or not 0 < ratio <= 1:
        raise RecorderError(f"config: {key}", f"{ratio} is not in (0, 1]", "0.5 as released")
    return round(1 / ratio)


def internvl(r: Request) -> Images:
    """downsample_ratio 0.5 joins two patches by two."""
    return _shuffled(r, _joined(r, "downsample_ratio"))


def _covered(width: int, height: int, side: int) -> float:
    longer, shorter = max(width, height), min(width, height)
    return longer * shorter if longer <= side else side * (shorter / longer * side)


def covering_grid(height: int, width: int, side: int) -> tuple[int, int]:
    """Rows and columns of the fewest tiles that cover more than 0.9 of an image, else of those that cover most. What
    the processor cut by rows it takes for columns."""
    found = []
    for tiles in range(1, MOST_TILES + 1):
        for first in (n for n in range(1, tiles + 1) if tiles % n == 0):
            second = tiles // first
            h, w = height // first, width // second
            parts = sum(
                _covered(
                    width - col * w if col == second - 1 else w, height - row * h if row == first - 1 else h, side
                )
                for row in range(first)
                for col in range(second)
            )
            found.append((tiles, parts / (height * width), (second, first)))
    enough = [f for f in found if f[1] > 0.9]
    best = min(enough, key=lambda f: (f[0], -f[1])) if enough else min(found, key=lambda f: (-f[1], f[0]))
    return best[2]


def ovis2(r: Request) -> Images:
    """Tiles behind a thumbnail; hidden_stride joins squares of patches. Marks between tiles are text."""
    side = number(r.document, "vision_config.image_size")
    rows, cols = covering_grid(r.height, r.width, side)
    tiles = rows * cols + (rows * cols > 1)
    squares = patch_side(r.document) // number(r.document, "vision_config.hidden_stride", 1)
    return Images(tiles * squares**2, pixels(r.count * tiles, 3, side, side))


ARIA_SIDE, ARIA_LEAST = 980, 336  # max_image_size and min_image_size of Aria's processor
ARIA_QUERIES = {"1225": 128, "4900": 256}


def aria(r: Request) -> Images:
    """One square, padded behind the shorter side; features by its patches."""
    patches = (ARIA_SIDE // number(r.document, "vision_config.patch_size", 32)) ** 2
    queries = r.document.get("projector_patch_to_query_dict") or ARIA_QUERIES
    if str(patches) not in queries:
        raise RecorderError(f"projector_patch_to_query_dict has no number of queries for {patches} patches")
    scale = ARIA_SIDE / max(r.height, r.width)
    height, width = (max(int(side * scale), ARIA_LEAST) for side in (r.height, r.width))
    if r.width >= r.height:
        width = ARIA_SIDE
    else:
        height = ARIA_SIDE
    tensors = pixels(r.count, 3, ARIA_SIDE, ARIA_SIDE)
    row = (True,) * width + (False,) * (ARIA_SIDE - width)
    mask = (row,) * height + ((False,) * ARIA_SIDE,) * (ARIA_SIDE - height)
    tensors["pixel_mask"] = Tensor((r.count, ARIA_SIDE, ARIA_SIDE), BOOL, mask)
    return Images(queries[str(patches)], tensors)


def aya_vision(r: Request) -> Images:
    """downsample_factor 2 joins two patches by two."""
    return _shuffled(r, number(r.document, "downsample_factor", 2))


OCR_VIEW, OCR_TILE = 1024, 768  # sides of DeepSeek-OCR-2's whole view and of its tiles, as released


def deepseek_ocr2(r: Request) -> Images:
    """DeepSeek-OCR-2: the whole picture, and two to six tiles where it is larger than one. num_local_patches is read by
    the host, so that every picture of the batch has its own entry."""
    rows, cols = nearest_aspect_grid(r.height, r.width, OCR_TILE, 2, 6)
    tiles = rows * cols if max(r.height, r.width) > OCR_TILE else 0
    tensors = pixels(r.count, 3, OCR_VIEW, OCR_VIEW) | {"num_local_patches": Tensor((r.count,), INT64, (tiles,))}
    if tiles:
        tensors["pixel_values_local"] = pixels(r.count * tiles, 3, OCR_TILE, OCR_TILE)["pixel_values"]
    return Images(256 + 144 * tiles + 1, tensors)


def least_scaling_grid(height: int, width: int, tile: int, most: int) -> tuple[int, int]:
    """The arrangement that enlarges the image least, else the one that shrinks it least; of equals the smallest."""
    best, best_scale = (1, 1), 0.0
    for rows in range(1, most + 1):
        for cols in range(1, most // rows + 1):
            scale = min(rows * tile / height, cols * tile / width)
            better = 1 <= scale < best_scale if best_scale >= 1 else scale > best_scale
            if better or (scale == best_scale and rows * cols < best[0] * best[1]):
                best, best_scale = (rows, cols), scale
    return best


def cohere2_vision(r: Request) -> Images:
    """downsample_factor 2 joins two patches by two; tiles of the grid that scales the image least, and a thumbnail."""
    tile = number(r.document, "vision_config.image_size")
    rows, cols = least_scaling_grid(r.height, r.width, tile, MOST_TILES)
    tiles = rows * cols + (rows * cols > 1)
    side = patch_side(r.document) // number(r.document, "downsample_factor", 2)
    return Images(tiles * side * side, pixels(r.count * tiles, 3, tile, tile))


def llama4(r: Request) -> Images:
    """pixel_shuffle_ratio 0.5 joins two patches by two; up to 16 tiles of the grid that scales the image least, and the
    whole image. Separators between tiles are text."""
    tile = number(r.document, "vision_config.image_size")
    rows, cols = least_scaling_grid(r.height, r.width, tile, LLAMA4_TILES)
    tiles = rows * cols + (rows * cols > 1)
    side = patch_side(r.document) // _joined(r, "vision_config.pixel_shuffle_ratio")
    return Images(tiles * side * side, pixels(r.count * tiles, 3, tile, tile))


def mllama(r: Request) -> Images:
    """Tower and cross-attention always see max_num_tiles tiles, the unused ones as padding; the sequence holds one
    placeholder. The id of an arrangement counts them by width, then height, from 1."""
    tile = number(r.document, "vision_config.image_size")
    most = number(r.document, "vision_config.max_num_tiles", 4)
    rows, cols = least_scaling_grid(r.height, r.width, tile, most)
    arrangements = [(w, h) for w in range(1, most + 1) for h in range(1, most + 1) if w * h <= most]
    # convert_aspect_ratios_to_ids is given (rows, columns) and looks them up in this list of pairs.
    number_of = arrangements.index((rows, cols)) + 1
    used = rows * cols
    tensors = pixels(r.batch, r.images, most, 3, tile, tile)
    tensors["aspect_ratio_ids"] = Tensor((r.batch, r.images), INT64, (number_of,) * r.images)
    tensors["aspect_ratio_mask"] = Tensor((r.batch, r.images, most), INT64, (1,) * used + (0,) * (most - used))
    return Images(1, tensors, cross_tiles=(used, most))


PHI4_CROPS = 36  # dynamic_hd of Phi-4-multimodal's processor
PHI4_JOINED = 2  # patches on a side of the squares that the model averages


def phi4_multimodal(r: Request) -> Images:
    """Crops of crop_size, as many as cover the image, up to 36 of the nearest aspect ratio beyond that, and the whole
    image as one more. The mask leaves out patches that are padding alone; a row of tokens ends with a separator."""
    side = number(r.document, "vision_config.crop_size", 448)
    patches = side // number(r.document, "vision_config.patch_size", 14)
    rows, cols = ceil_div(r.height, side), ceil_div(r.width, side)
    if rows * cols > PHI4_CROPS:
        rows, cols = nearest_aspect_grid(r.height, r.width, side, 1, PHI4_CROPS)
    wide, high = cols * side / r.width, rows * side / r.height
    padded_rows = rows * side - int(r.height * wide) if wide < high else 0
    padded_cols = 0 if wide < high else cols * side - int(r.width * high)
    seen_rows = rows * patches - padded_rows * patches // side
    seen_cols = cols * patches - padded_cols * patches // side
    crops = [((1.0,) * patches,) * patches]
    for row in range(rows):
        for col in range(cols):
            width = min(patches, max(0, seen_cols - col * patches))
            height = min(patches, max(0, seen_rows - row * patches))
            seen = (1.0,) * width + (0.0,) * (patches - width)
            crops.append((seen,) * height + ((0.0,) * patches,) * (patches - height))
    channels = number(r.document, "vision_config.num_channels", 3)
    tensors = {"image_pixel_values": Tensor((r.count, len(crops), channels, side, side))}
    tensors["image_sizes"] = Tensor((r.count, 2), INT64, (rows * side, cols * side))
    tensors["image_attention_mask"] = Tensor((r.count, len(crops), patches, patches), "float32", tuple(crops))
    joined = patches // PHI4_JOINED
    high, wide = ceil_div(seen_rows, PHI4_JOINED), ceil_div(seen_cols, PHI4_JOINED)
    return Images(joined * (joined + 1) + 1 + high * (wide + 1), tensors)


STEP_VIEW, STEP_WINDOW = 728, 504  # sides of Step-3.7's whole view and of its tiles, as its class has them
STEP_LONGEST = 3024  # max_image_size, which a picture is scaled down to
STEP_STRIDE = 4  # patches on a side that two convolutions make a token of


def _step3p7_tiles(height: int, width: int) -> int:
    """Windows that slide over a picture: of its shorter side where it is long and small, of STEP_WINDOW where it is
    larger than the view; a remainder of more than a fifth of a window makes one more."""
    if min(width, height) < 32 and max(width / height, height / width) > 4:
        width = height = max(width, height)
    if max(height, width) > STEP_LONGEST:
        scale = STEP_LONGEST / max(height, width)
        width, height = int(width * scale), int(height * scale)
    short, long = min(height, width), max(height, width)
    if short == 0:
        raise RecorderError("--image-size", "a side shrinks to nothing", "use a less extreme aspect ratio")
    if long <= STEP_VIEW:
        window = short if long / short > 1.5 else 0
    else:
        window = min(short, STEP_WINDOW) if long / short > 4 else STEP_WINDOW
    if window == 0:
        return 0
    return math.prod(max(1, side // window + (side % window > 0.2 * window)) for side in (height, width))


def step3p7(r: Request) -> Images:
    """Step-3.7: the whole picture and its tiles. num_local_patches is read by the host, so that every picture of the
    batch has its own entry."""
    tiles = _step3p7_tiles(r.height, r.width)
    stride = number(r.document, "vision_config.patch_size", 14) * STEP_STRIDE
    channels = number(r.document, "vision_config.num_channels", 3)
    tensors = pixels(r.count, channels, STEP_VIEW, STEP_VIEW)
    tensors["num_local_patches"] = Tensor((r.count,), INT64, (tiles,))
    if tiles:
        tensors["pixel_values_local"] = Tensor((r.count * tiles, channels, STEP_WINDOW, STEP_WINDOW))
    return Images((STEP_VIEW // stride) ** 2 + tiles * (STEP_WINDOW // stride) ** 2, tensors)


PERCEPTION_TILES = 36  # max_num_tiles of PerceptionLM's processor


def perception_grid(height: int, width: int, tile: int, most: int = PERCEPTION_TILES) -> tuple[int, int]:
    """Rows and columns of the grid in which a picture becomes largest, of those that hold it as it is; where none does,
    of the grids with the nearest ratio that is not wider the one with most tiles. Of equals the last one."""
    by_ratio: dict[float, list[tuple[int, int]]] = {}
    for tiles in range(most, 0, -1):
        for cols in (n for n in range(1, tiles + 1) if tiles % n == 0):
            by_ratio.setdefault(cols / (tiles // cols), []).append((tiles // cols, cols))
    aspect = width / height
    best, best_side = None, 0.0
    for rows, cols in (grid for grids in by_ratio.values() for grid in grids):
        if cols * tile < width or rows * tile < height:
            continue
        scale = min(cols * tile / width, rows * tile / height)
        if aspect < 1:
            side = math.floor(scale * height * aspect)
        else:
            side = math.floor(scale * width / aspect) if aspect > 1 else scale * height
        if best is None or side >= best_side:
            best, best_side = (rows, cols), side
    if best:
        return best
    if aspect >= 1:
        nearest = max(k for k in by_ratio if k <= aspect)
    else:
        nearest = min(k for k in by_ratio if k > aspect)
    return max(by_ratio[nearest])


def perception_lm(r: Request) -> Images:
    """PerceptionLM: a thumbnail and the tiles of a grid, each the square of timm's tower, whose patches stand in its
    architecture's name."""
    name = str(value(r.document, "vision_config.architecture")).split(".")[0]
    patch = number(r.document, "vision_config.model_args.patch_size", int(name.split("patch")[-1].split("_")[0]))
    side = number(r.document, "vision_config.model_args.img_size", int(name.split("_")[-1]))
    rows, cols = perception_grid(r.height, r.width, side)
    tiles = rows * cols + 1
    tokens = tiles * (side // patch // number(r.document, "projector_pooling_ratio", 1)) ** 2
    return Images(tokens, pixels(r.count, tiles, 3, side, side))
