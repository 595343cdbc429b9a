# SPDX-License-Identifier: Apache-2.0
"""Where the images stand in a sequence."""

from dataclasses import dataclass

from recorder.errors import USAGE, RecorderError


@dataclass(frozen=True)
class Sequence:
    """`length` tokens; image i covers `tokens` of them from starts[i]."""

    length: int
    tokens: int
    starts: tuple[int, ...]

    @property
    def image_tokens(self) -> int:
        return self.tokens * len(self.starts)


def arrange(text: int, images: int, tokens: int) -> Sequence:
    """One text token before each image, the rest of the text after the last one: models that compute positions or
    masks from runs of image tokens then see as many runs as images. Raises RecorderError for less text."""
    if text < images:
        what = f"{text} tokens cannot separate {images} images"
        raise RecorderError("--text", what, f"give at least {images}", USAGE)
    return Sequence(text + images * tokens, tokens, tuple(1 + i * (tokens + 1) for i in range(images)))
