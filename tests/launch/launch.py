# SPDX-License-Identifier: Apache-2.0
"""launch.py PROGRAM CONFIG: executes what `vlmest estimate` says launches a run, each on two processes with one training
step of a model with random weights. What needs a library that is not there is named and left out."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile

BEFORE = """
import json, os, torch
import torch.distributed as dist
gpu = torch.cuda.is_available() and torch.cuda.device_count() > 1
local = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local) if gpu else torch.device("cpu")
if gpu: torch.cuda.set_device(device)
from transformers import CONFIG_MAPPING, AutoModelForImageTextToText
document = json.load(open(CONFIG))
config = CONFIG_MAPPING[document.pop("model_type")](**document)
torch.manual_seed(0)
model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16).to(device)
"""
PEERS = """
dist.init_process_group("nccl" if gpu else "gloo")
"""
OPTIMIZER = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
"""
ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator()
model, optimizer = accelerator.prepare(model, optimizer)
"""
# The loss of text alone: the tower's parameters get no gradient, which DistributedDataParallel only minds in a second
# step.
STEP = """
ids = torch.arange(16, device=device).reshape(1, 16) + 1000
loss = model(input_ids=ids, labels=ids, use_cache=False).loss
BACKWARD
print("rank", os.environ["RANK"], "wrapped as", type(model).__name__, "loss", float(loss.detach()), flush=True)
if dist.is_initialized(): dist.destroy_process_group()
"""

# What lines that cut sequences find, and what is printed behind them.
SEQUENCE = """
ids = torch.arange(16, device=device).reshape(1, 16) + 1000
inputs_embeds = model.get_input_embeddings()(ids)
position_ids = torch.arange(16, device=device).reshape(1, 16)
shift_labels = torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:].contiguous()
"""

LAYOUTS = (
    ["--gpus", "2"],
    ["--gpus", "2", "--ddp-bucket-view"],
    ["--gpus", "2", "--shard", "fsdp2"],
    ["--gpus", "2", "--shard", "fsdp2", "--reshard-after-forward", "off", "--reduce-dtype", "fp32"],
    ["--gpus", "2", "--shard", "fsdp2", "--dtype", "fp32", "--param-dtype", "bf16", "--reduce-dtype", "fp32"],
    ["--gpus", "2", "--shard", "zero1"],
    ["--gpus", "2", "--shard", "zero3"],
    ["--parallel", "cp=2"],
    ["--parallel", "cp=2", "--shard", "fsdp2"],
)


def launches(program: str, config: str, layout: list[str]) -> dict[str, str]:
    """What the program says, by tool."""
    command = [program, "--config", config, "--phase", "train", "--images", "0", "--json", *layout]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {x["tool"]: x["text"] for x in answer["parallel"]["launch"]}


def script(tool: str, lines: str, config: str) -> str:
    """train.py: the lines stand where a user has them."""
    begin = f"CONFIG = {config!r}" + BEFORE
    if tool == "accelerate":
        return begin + OPTIMIZER + ACCELERATE + STEP.replace("BACKWARD", "accelerator.backward(loss); optimizer.step()")
    if "deepspeed" in lines:
        return begin + OPTIMIZER + lines + STEP.replace("BACKWARD", "model.backward(loss); model.step()")
    if "context_parallel" in lines:
        return begin + PEERS + SEQUENCE + lines + OPTIMIZER + "optimizer.step()\n" + STEP[STEP.index("print(") :]
    return begin + PEERS + lines + OPTIMIZER + STEP.replace("BACKWARD", "loss.backward(); optimizer.step()")


def missing(tool: str, said: dict[str, str]) -> str:
    """What this needs and what is not there, or nothing."""
    if "context_parallel" in said["python"] and not two_gpus():
        return "a second GPU"
    needs = ["accelerate"] if tool == "accelerate" else []
    needs += ["deepspeed"] if "deepspeed" in said else []
    return next((n for n in needs if importlib.util.find_spec(n) is None), "")


def two_gpus() -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.device_count() > 1


def run(tool: str, said: dict[str, str], config: str) -> str:
    """Nothing, or why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as f:
            f.write(script(tool, said["python"], config))
        if "deepspeed" in said:
            with open(os.path.join(folder, "ds_config.json"), "w", encoding="utf-8") as f:
                f.write(said["deepspeed"])
        done = subprocess.run(
            shlex.split(said[tool]), cwd=folder, capture_output=True, text=True, timeout=300,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"},
        )
    ranks = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
    print(f"  {tool}: {said[tool]}\n    " + "\n    ".join(sorted(ranks)))
    return "" if done.returncode == 0 and len(ranks) == 2 else done.stderr[-2000:]


def main(program: str, config: str) -> int:
    failed = 0
    for layout in LAYOUTS:
        print(" ".join(layout), flush=True)
        said = launches(program, config, layout)
        for tool in ("torchrun", "accelerate"):
            if tool not in said:
                continue
            if absent := missing(tool, said):
                print(f"  {tool}: left out, {absent} is not there")
            elif why := run(tool, said, config):
                print(why)
                failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
