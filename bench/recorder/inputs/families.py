# SPDX-License-Identifier: Apache-2.0
"""Model types and what lays out their images (table.py)."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from recorder.errors import RecorderError
from recorder.inputs import anyres, native, positioned, square, tiles
from recorder.inputs.layout import Images, Request, number
from recorder.inputs.table import TABLE


@dataclass(frozen=True)
class Family:
    """`images` lays images out. `native` is the size meant where none is given; None: the tower's image_size; "canvas":
    the largest square of image_grid_pinpoints that is not smaller."""

    images: Callable[[Request], Images]
    native: int | str | None = None


# Their forward puts another token in the place of placeholders outside the vocabulary before it embeds them.
EMBED_NO_PLACEHOLDER = ("paligemma", "gemma3", "shieldgemma2")

_FILES = {"anyres": anyres, "native": native, "positioned": positioned, "square": square, "tiles": tiles}


def _function(name: str) -> Callable[[Request], Images]:
    file, function = name.split(".")
    return getattr(_FILES[file], function)


FAMILIES: dict[str, Family] = {name: Family(_function(layout), size) for name, (layout, size) in TABLE.items()}


def family(document: Mapping) -> Family:
    """Raises RecorderError for an unknown model_type, naming the known ones."""
    name = str(document.get("model_type", ""))
    if name in FAMILIES:
        return FAMILIES[name]
    near = difflib.get_close_matches(name, FAMILIES, n=1)
    hint = (f"did you mean {near[0]}? " if near else "") + "known: " + ", ".join(FAMILIES)
    raise RecorderError("config: model_type", f"unknown type '{name}'", hint)


def native_size(document: Mapping) -> tuple[int, int]:
    """The size of an image where none is given: the family's, the tower's, or the largest square canvas."""
    f = family(document)
    if isinstance(f.native, int):
        return f.native, f.native
    try:
        side = number(document, "vision_config.image_size")
    except RecorderError as e:
        raise RecorderError(e.where, e.what, "give --image-size HxW") from e
    if f.native == "canvas":
        side = max([side] + [h for h, w in document.get("image_grid_pinpoints", []) if h == w])
    return side, side


def lay_out(request: Request) -> Images:
    """The images of a batch."""
    return family(request.document).images(request)


def placeholder(document: Mapping, vocabulary: int) -> tuple[str, int]:
    """The token that stands for an image's features, behind its key in the config, which is spelled in two ways and
    stands in the tower's part of some. A file that leaves it to its class may have a smaller vocabulary than the class
    counts on: the last entry stands there then, but for classes that embed no placeholder."""
    for part in ("", "vision_config"):
        for name in ("image_token_id", "image_token_index"):
            given = (document.get(part) or {} if part else document).get(name)
            if isinstance(given, int):
                inside = given < vocabulary or document["model_type"] in EMBED_NO_PLACEHOLDER
                return f"{part}.{name}".lstrip("."), given if inside else vocabulary - 1
    raise RecorderError("config: image_token_id", "missing", "give the id of the image token")
