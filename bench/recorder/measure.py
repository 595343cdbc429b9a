# SPDX-License-Identifier: Apache-2.0
"""The process that measures one scenario: `python -m recorder.measure JOB`, a file of JSON; several GPUs have one each.

The job: document, scenario (fields as in a row), journal (path), kernels (path or null), name.
"""

import functools
import json
import os
import sys

# Random weights need nothing from the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from recorder.errors import RecorderError
from recorder.inputs import families
from recorder.inputs.layout import Request
from recorder.inputs.sequence import arrange
from recorder.journal import Journal
from recorder.scenario import Scenario, from_row

SEED = 0


def measure(document: dict, scenario: Scenario, journal: Journal, kernels: str | None, name: str) -> None:
    """Builds, measures, and fills the journal's row. torch is imported here: what stands above works without it."""
    import torch

    from recorder import device, memory, model, packages, several_gpus
    from recorder.denoising import Denoising
    from recorder.inference import Inference
    from recorder.inputs import tensors
    from recorder.training import Training

    if not torch.cuda.is_available():
        raise RecorderError("device", "torch sees no CUDA device", "check nvidia-smi and the installed torch build")
    rank = several_gpus.begin()
    row = journal.row
    row |= device.row()
    torch.manual_seed(SEED + rank)
    journal.stage("weights")
    row["alloc_base"] = memory.allocated()
    network = model.build(document, scenario)
    memory.settle()
    row["alloc_weights"] = memory.allocated() - row["alloc_base"]
    row["params"] = sum(p.numel() for p in network.parameters())
    row["params_by"] = model.parameter_counts(network)
    if taken := packages.kernel_packages({type(m).__module__ for m in network.modules()}):
        row["packages"] = taken
    row["buffer_bytes"] = model.buffer_bytes(network)
    # With what the config class adds to the file: image sizes and ids that the file leaves to defaults.
    full = network.config.to_dict()
    height, width = scenario.hw
    images = families.lay_out(Request(full, scenario.batch, scenario.images, height, width, scenario.text))
    sequence = arrange(scenario.text, scenario.images, images.tokens)
    row |= {"image_tokens": sequence.image_tokens, "seq": sequence.length}
    vocabulary = network.get_input_embeddings().num_embeddings
    dtype = getattr(torch, scenario.dtype)
    key, placeholder = families.placeholder(full, vocabulary)
    *parts, name = key.split(".")
    setattr(functools.reduce(getattr, parts, network.config), name, placeholder)
    inputs = tensors.make(images, sequence, placeholder, vocabulary, scenario.batch, dtype)
    if scenario.mode == "train":
        tensors.add_labels(inputs, scenario.target)
    row["input_bytes"] = inputs.bytes()
    if scenario.mode == "train":
        Training(model.prepare_training(network, scenario), inputs, scenario, journal).run(kernels, name)
    elif hasattr(network, "_denoising_step"):
        Denoising(network, inputs, journal).run()
    else:
        Inference(network, inputs, scenario, journal).run(kernels, name)
    several_gpus.end()


def main() -> int:
    """Exit code 0 also for a run that does not fit: that is a result. Everything said goes to stderr."""
    with open(sys.argv[1], encoding="utf-8") as f:
        job = json.load(f)
    # The first rank's journal is the row; the others' are for whoever looks into a failure.
    rank = os.environ.get("RANK", "0")
    journal = Journal(job["journal"] + ("" if rank == "0" else f".{rank}"), {})
    try:
        measure(job["document"], from_row(job["scenario"]), journal, job["kernels"], job["name"])
        journal.stage("done")
        return 0
    except RecorderError as e:
        journal.row["error"] = f"{e.where}: {e.what} ({e.hint})"
    except Exception as e:  # noqa: BLE001  (a model may raise anything; the row says what)
        if type(e).__name__ == "OutOfMemoryError":
            journal.row["oom"] = str(e)
            journal.stage("out of memory")
            return int("RANK" in os.environ)  # the other ranks wait: their launcher has to end them
        journal.row["error"] = f"{type(e).__name__}: {e}"
    journal.stage("failed")
    return 1


if __name__ == "__main__":
    sys.exit(main())
