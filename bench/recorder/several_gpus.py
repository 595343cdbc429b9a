# SPDX-License-Identifier: Apache-2.0
"""Training on several GPUs: a process each, which torchrun starts. What they divide, and how a step of theirs runs."""

import os
from collections.abc import Iterator, Mapping

import torch
import torch.distributed as dist
from torch import nn

from recorder.errors import RecorderError
from recorder.model import make_optimizer
from recorder.scenario import Scenario


def begin() -> int:
    """This process's rank, with its GPU chosen and its peers found; 0 of a run on one GPU."""
    if "LOCAL_RANK" not in os.environ:
        return 0
    local = int(os.environ["LOCAL_RANK"])
    if local >= torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise RecorderError("--gpus", f"more than the {found} GPUs of this machine", "give at most as many")
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    return dist.get_rank()


def end() -> None:
    """Leaves the peers."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def gathered(own: Mapping) -> list[Mapping]:
    """What each rank says, in their order."""
    found: list[Mapping] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(found, own)
    return found


def outside_bytes() -> int:
    """What the GPU's memory holds beside the framework's reserve: the CUDA context and NCCL."""
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


class Stepper:
    """A model and its optimizer, and the three parts of a step as the way of training calls them."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        self.optimizer = optimizer

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def states(self) -> Iterator[torch.Tensor]:
        """The optimizer's states of this rank."""
        for state in self.optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    yield value.to_local() if hasattr(value, "to_local") else value


class DeepSpeedStepper(Stepper):
    """DeepSpeed's engine has a backward and a step of its own; its step also drops the gradients."""

    def __init__(self, engine: nn.Module) -> None:
        super().__init__(engine, engine.optimizer)

    def backward(self, loss: torch.Tensor) -> None:
        self.model.backward(loss)

    def step(self) -> None:
        self.model.step()

    def states(self) -> Iterator[torch.Tensor]:
        """Those of the optimizer that DeepSpeed's wraps, over its flat partitions."""
        for state in self.optimizer.optimizer.state.values():
            yield from (value for value in state.values() if torch.is_tensor(value))


def prepare(model: nn.Module, scenario: Scenario) -> Stepper:
    """The model, set up for training, as its GPUs run it."""
    if scenario.gpus == 1:
        return Stepper(model, make_optimizer(scenario, _trained(model)))
    if scenario.shard.startswith("zero"):
        return _deepspeed(model, scenario)
    if scenario.shard == "fsdp2":
        _fully_shard(model, scenario)
    else:
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=scenario.bucket_view)
    return Stepper(model, make_optimizer(scenario, _trained(model)))


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """The members of lists of modules that are in no other list: the layers."""
    lists = [name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    for name in lists:
        if not any(name.startswith(other + ".") for other in lists):
            yield from model.get_submodule(name)


def _fully_shard(model: nn.Module, scenario: Scenario) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(_dtype(scenario.param_dtype), _dtype(scenario.reduce_dtype))
    for layer in _layers(model):
        fully_shard(layer, mp_policy=policy, reshard_after_forward=scenario.reshard)
    fully_shard(model, mp_policy=policy)


def _dtype(name: str | None) -> torch.dtype | None:
    return getattr(torch, name) if name else None


def _deepspeed(model: nn.Module, scenario: Scenario) -> Stepper:
    try:
        import deepspeed
    except ImportError as e:
        raise RecorderError("--shard", f"DeepSpeed cannot be imported: {e}", "pip install deepspeed") from e
    config = {
        "train_micro_batch_size_per_gpu": scenario.batch,
        "bf16": {"enabled": scenario.dtype == "bfloat16"},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": int(scenario.shard.removeprefix("zero"))},
    }
    engine, _, _, _ = deepspeed.initialize(
        model=model, optimizer=make_optimizer(scenario, _trained(model)), config=config, dist_init_required=False
    )
    return DeepSpeedStepper(engine)
