# SPDX-License-Identifier: Apache-2.0
"""Context parallelism: GPUs that run the same sequences, each its places of them in the language model. torch's own
attention over all keys (torch.distributed.tensor.experimental) takes the place of scaled_dot_product_attention there."""

import torch
import torch.nn.functional as F
from torch import nn

from recorder.errors import RecorderError


def divide(model: nn.Module, tensors: dict[str, torch.Tensor], parts: int) -> None:
    """Cuts what the language model gets, and replaces the labels by those of this rank's places. Towers and the
    scattering of their features see whole sequences."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cuda", (dist.get_world_size() // parts, parts), mesh_dim_names=("dp", "cp"))["cp"]
    tokens = tensors["input_ids"].shape[1]
    if tokens % (2 * parts):
        raise RecorderError(
            "--context-parallel",
            f"sequences of {tokens} tokens are not cut into {2 * parts} equal pieces",
            f"give --text {2 * parts - tokens % (2 * parts)} more",
        )
    places = _places(tokens, mesh)
    labels = tensors["labels"]
    shifted = F.pad(labels, (0, 1), value=-100)[:, 1:]
    tensors["shift_labels"] = shifted.index_select(1, places).contiguous()
    tensors["labels"] = labels.index_select(1, places)
    text = _text_model(model)
    text.register_forward_pre_hook(lambda _, args, kwargs: (args, _cut(kwargs, places)), with_kwargs=True)
    _attend_in_rings({id(m) for m in text.modules()}, mesh)


def _places(tokens: int, mesh) -> torch.Tensor:
    """The head and the tail of what is left (_HeadTailLoadBalancer), as int64[tokens / parts]."""
    piece = tokens // (2 * mesh.size())
    rank = mesh.get_local_rank()
    head = torch.arange(rank * piece, (rank + 1) * piece, device="cuda")
    return torch.cat([head, tokens - 1 - head.flip(0)])


def _text_model(model: nn.Module) -> nn.Module:
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    for name in ("language_model", "text_model"):
        if hasattr(model.model, name):
            return getattr(model.model, name)
    return model.model


def _cut(kwargs: dict, places: torch.Tensor) -> dict:
    positions = kwargs.get("position_ids")
    own = {"inputs_embeds": kwargs["inputs_embeds"].index_select(1, places)}
    if kwargs.get("attention_mask") is not None:
        own["attention_mask"] = kwargs["attention_mask"].index_select(1, places)
    own["position_ids"] = places.unsqueeze(0) if positions is None else positions.index_select(-1, places)
    return kwargs | own


def _attend_in_rings(inside: set[int], mesh) -> None:
    """Modules of the language model attend over the keys of all ranks; the others as before."""
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.experimental import _attention as experimental
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    experimental._enable_context_parallel_dispatcher()
    whole = F.scaled_dot_product_attention

    def ring(query, key, value, attn_mask=None, **options):
        parts = (DTensor.from_local(x, mesh, [Shard(2)], run_check=False) for x in (query, key, value))
        return whole(*parts, **options).to_local()

    def attend(module, query, key, value, attention_mask=None, **options):
        if id(module) not in inside:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        F.scaled_dot_product_attention = ring
        try:
            return sdpa_attention_forward(module, query, key, value, None, **options)
        finally:
            F.scaled_dot_product_attention = whole

    ALL_ATTENTION_FUNCTIONS["sdpa"] = attend
