# SPDX-License-Identifier: Apache-2.0
"""What a family's model takes for images of one size: tensors beside the ids, and tokens in the sequence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recorder.errors import RecorderError

PIXELS = "pixels"  # random numbers in the scenario's dtype
INT64 = "int64"
INT32 = "int32"
BOOL = "bool"


@dataclass(frozen=True)
class Tensor:
    """An input tensor. `last` is what its innermost rows hold, one row or as many as the last sizes say; pixels are random
    and have none, unless they are a mask in the scenario's dtype."""

    shape: tuple[int, ...]
    dtype: str = PIXELS
    last: tuple = ()


@dataclass(frozen=True)
class Images:
    """All images of the batch, all of one size.

    token_types: the key that marks image tokens where the model takes one. marked: whether image tokens are 1 there.
    axes: of positions that the model computes from those marks (Qwen and GLM, whose processors write them as int32; all
        others are int64); 0: it counts tokens.
    expert_types: the key that marks what goes to the experts of vision: image tokens, and one at either end of an image.
    cross_tiles: (used, all) tiles of each image where text sees images by cross-attention (Mllama).
    decoder: the sequence is an encoder's, and a decoder writes another one (T5).
    """

    tokens: int  # in the sequence, of each image
    tensors: dict[str, Tensor] = field(default_factory=dict)
    token_types: str = ""
    marked: bool = True
    axes: int = 0
    expert_types: str = ""
    cross_tiles: tuple[int, int] | None = None
    decoder: bool = False


@dataclass(frozen=True)
class Request:
    """A config.json's content with `batch` sequences of `images` images of height x width pixels, and of `text` tokens
    beside them."""

    document: Mapping
    batch: int
    images: int
    height: int
    width: int
    text: int = 0

    @property
    def count(self) -> int:
        """Images in the batch."""
        return self.batch * self.images


def value(document: Mapping, path: str) -> object:
    """The config's value at "vision_config.patch_size". Raises RecorderError where it is missing."""
    node: object = document
    for name in path.split("."):
        if not isinstance(node, Mapping) or node.get(name) is None:
            raise RecorderError(f"config: {path}", "missing", "give the key; its rule for images depends on it")
        node = node[name]
    return node


def number(document: Mapping, path: str, default: int | None = None) -> int:
    """A positive whole number; of a list of equal sides (patch_size [14, 14]) the first."""
    try:
        v = value(document, path)
    except RecorderError:
        if default is None:
            raise
        return default
    first = v[0] if isinstance(v, (list, tuple)) and v and all(x == v[0] for x in v) else v
    if isinstance(first, bool) or not isinstance(first, int) or first < 1:
        hint = "images are laid out by it; sides of a square must be equal"
        raise RecorderError(f"config: {path}", f"{v} is no positive whole number", hint)
    return first


def patch_side(document: Mapping) -> int:
    """Patches on a side of the tower's square image."""
    return number(document, "vision_config.image_size") // number(document, "vision_config.patch_size")


def pixels(*shape: int) -> dict[str, Tensor]:
    """The pixel_values of that shape."""
    return {"pixel_values": Tensor(shape)}


def ceil_div(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)
