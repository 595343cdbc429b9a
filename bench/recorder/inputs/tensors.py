# SPDX-License-Identifier: Apache-2.0
"""The input tensors on the GPU, of a prefill and of a decode step."""

from dataclasses import dataclass

import torch

from recorder.inputs.layout import PIXELS, Images, Tensor
from recorder.inputs.sequence import Sequence

FIRST_ID, LAST_ID = 100, 1000  # of the random text; beyond most special tokens, below every vocabulary's end
NEXT_ID = 5  # the token that a decode step is given
START_ID = 0  # the token that a decoder beside the sequence begins with


@dataclass(frozen=True)
class Inputs:
    """Keyword arguments of the model's forward, and what is needed to make the next step's."""

    tensors: dict[str, torch.Tensor]
    images: Images
    sequence: Sequence

    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors.values())


def _make(t: Tensor, dtype: torch.dtype, device: str) -> torch.Tensor:
    if t.dtype == PIXELS and not t.last:
        return torch.randn(t.shape, device=device, dtype=dtype)
    of = dtype if t.dtype == PIXELS else getattr(torch, t.dtype)
    return torch.tensor(t.last, device=device, dtype=of).expand(t.shape).contiguous()


def make(
    images: Images,
    sequence: Sequence,
    placeholder: int,
    vocabulary: int,
    batch: int,
    dtype: torch.dtype,
    device: str = "cuda",
) -> Inputs:
    """Random text around the placeholders of the images. Ids and masks are int64 and nothing is padding, as a processor
    returns them for sequences of one length."""
    tensors = {name: _make(t, dtype, device) for name, t in images.tensors.items()}
    last = min(LAST_ID, vocabulary)
    ids = torch.randint(min(FIRST_ID, last // 2), last, (batch, sequence.length), device=device)
    ids[ids == placeholder] = placeholder + 1 if placeholder + 1 < vocabulary else placeholder - 1
    marks = torch.zeros_like(ids)
    for start in sequence.starts:
        ids[:, start : start + sequence.tokens] = placeholder
        marks[:, start : start + sequence.tokens] = 1
    tensors["input_ids"] = ids
    tensors["attention_mask"] = torch.ones_like(ids)
    if images.token_types:
        types = marks if images.marked else torch.zeros_like(ids)
        tensors[images.token_types] = types.int() if images.axes else types
    if images.expert_types:
        tensors[images.expert_types] = _with_ends(marks, sequence)
    if images.decoder:
        tensors["decoder_input_ids"] = torch.full_like(ids[:, :1], START_ID)
    if images.cross_tiles:
        tensors["cross_attention_mask"] = _cross_attention_mask(images, sequence, batch, device)
    return Inputs(tensors, images, sequence)


def _with_ends(marks: torch.Tensor, sequence: Sequence) -> torch.Tensor:
    """The marks with two more for each image: the token ahead of it, and, since images stand one token apart, one of
    those behind the last of them."""
    types = marks.clone()
    for start in sequence.starts:
        types[:, start - 1] = 1
    if sequence.starts:
        end = sequence.starts[-1] + sequence.tokens
        types[:, end : end + len(sequence.starts)] = 1
    return types


def add_labels(inputs: Inputs, target: int) -> None:
    """What a training step computes its loss against: the sequence, or `target` tokens for a decoder beside it, which
    takes its own input from them."""
    ids = inputs.tensors["input_ids"]
    if inputs.images.decoder:
        del inputs.tensors["decoder_input_ids"]
        inputs.tensors["labels"] = torch.full((ids.shape[0], target), NEXT_ID, device=ids.device)
    else:
        inputs.tensors["labels"] = ids.clone()


def _cross_attention_mask(images: Images, sequence: Sequence, batch: int, device: str) -> torch.Tensor:
    """Each token sees the used tiles of the images before it (processing_mllama.py)."""
    used, tiles = images.cross_tiles
    mask = torch.zeros(batch, sequence.length, len(sequence.starts), tiles, device=device, dtype=torch.long)
    for i, start in enumerate(sequence.starts):
        mask[:, start:, i, :used] = 1
    return mask


def next_token(inputs: Inputs, cached: int) -> dict[str, torch.Tensor]:
    """Arguments of the step that decodes one token behind `cached` ones, as generate() passes them: the mask covers the
    whole cache, and models with multimodal positions get theirs (one on every axis)."""
    ids = inputs.tensors["input_ids"]
    batch = ids.shape[0]
    if inputs.images.decoder:  # the mask is the encoder's
        return {
            "decoder_input_ids": torch.full_like(ids[:, :1], NEXT_ID),
            "attention_mask": inputs.tensors["attention_mask"],
        }
    step = {
        "input_ids": torch.full_like(ids[:, :1], NEXT_ID),
        "attention_mask": torch.ones(batch, cached + 1, dtype=torch.long, device=ids.device),
    }
    if inputs.images.axes:
        step["position_ids"] = torch.full((inputs.images.axes, batch, 1), cached, dtype=torch.long, device=ids.device)
    elif inputs.images.token_types == "token_type_ids":
        step["token_type_ids"] = torch.zeros_like(step["input_ids"])
    cross = inputs.tensors.get("cross_attention_mask")
    if cross is not None:
        more = cached + 1 - cross.shape[1]
        step["cross_attention_mask"] = torch.cat([cross, cross[:, -1:].expand(-1, more, -1, -1)], dim=1)
    return step
