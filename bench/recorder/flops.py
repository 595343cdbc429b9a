# SPDX-License-Identifier: Apache-2.0
"""FLOPs by torch.utils.flop_counter, attention counted dense whatever kernel runs it.

PyTorch's own formulas refuse grouped key and value heads (sdpa_flop_count asserts equal head counts), so attention gets
the same products with the query's heads. They count the weight gradient of a grouped convolution as if it had one group
(conv_backward_flop), thousands of times too much for a depthwise one.
"""

import contextlib
import math
from collections.abc import Callable, Iterator

import torch
from torch.utils.flop_counter import FlopCounterMode

KERNELS = ("cudnn", "flash", "efficient")


def attention_forward(q, k, v, *_args, out_shape=None, **_kwargs) -> int:
    """q·kᵀ and scores·v: arguments are shapes [batch, heads, length, head size]."""
    batch, heads, length, size = q
    return 2 * batch * heads * length * k[2] * (size + v[3])


def attention_backward(_grad, q, k, v, *_args, out_shape=None, **_kwargs) -> int:
    """The scores once more, then the gradients of scores, v, q and k."""
    batch, heads, length, size = q
    return 2 * batch * heads * length * k[2] * (3 * size + 2 * v[3])


def convolution_backward(grad, _input, weight, *args, out_shape=None, **_kwargs) -> int:
    """As many as the forward pass for each gradient that is asked for: of the input and of the weight."""
    wanted = args[-1]
    return 2 * grad[0] * math.prod(grad[2:]) * math.prod(weight) * sum(wanted[:2])


@contextlib.contextmanager
def without_gradients(model: torch.nn.Module) -> Iterator[None]:
    """The counter follows modules by hooks on tensors that need gradients, which no_grad has none of."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    for p in wanted:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in wanted:
            p.requires_grad_(True)


def counted(work: Callable[[], object]) -> tuple[int, dict[str, int]]:
    """All FLOPs of the work, and by operator (aten.mm)."""
    formulas = {torch.ops.aten.convolution_backward: convolution_backward}
    for kernel in KERNELS:
        for suffix, formula in (("", attention_forward), ("_backward", attention_backward)):
            op = getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}_attention{suffix}", None)
            if op is not None:
                formulas[op] = formula
    counter = FlopCounterMode(display=False, custom_mapping=formulas)
    with counter:
        work()
    by_op = {str(op): count for op, count in counter.get_flop_counts()["Global"].items()}
    return counter.get_total_flops(), by_op
