# SPDX-License-Identifier: Apache-2.0
"""The command line: options and scenario files become models with their scenarios."""

import argparse
import difflib
import json
import os
from dataclasses import dataclass
from typing import NoReturn

from recorder.errors import INPUT, USAGE, RecorderError
from recorder.scenario import READERS, Scenario, product

SWITCHES = {"checkpointing", "amp", "ddp-bucket-view"}  # an option without a value means on

HELP = {
    "mode": "infer, train",
    "batch": "sequences",
    "text": "text tokens of each sequence",
    "images": "images of each sequence",
    "image-size": "pixels of each image, HxW, before the model's own resize; native: the model's own size",
    "dtype": "bf16, fp16, fp32",
    "attention": "eager, sdpa, flash (needs the package flash-attn)",
    "logits": "last, all: positions whose logits a prefill computes",
    "checkpointing": "on, off: gradient_checkpointing_enable()",
    "lora": "rank of adapters on q, k, v, o of the language model, through peft; 0 is off",
    "freeze": "none, vision",
    "amp": "on, off: float32 weights under bfloat16 autocast",
    "target": "labels of each sequence, of models that have an encoder and a decoder",
    "optimizer": "adamw, adamw-fused, sgd, sgd-momentum, adafactor",
    "gpus": "of this machine, each with --batch sequences of its own; more than one trains",
    "context-parallel": "parts of each sequence, one for each of as many of the GPUs (default 1)",
    "shard": "none (DistributedDataParallel), zero1, zero2, zero3 (DeepSpeed), fsdp2: what the GPUs divide",
    "ddp-bucket-view": "on, off: DistributedDataParallel's gradients are views of its buckets",
    "reshard-after-forward": "on, off: fully_shard gathers weights again for the backward (default on)",
    "param-dtype": "bf16, fp16, fp32: the type in which fully_shard gathers the weights (default that of --dtype)",
    "reduce-dtype": "bf16, fp16, fp32: the type in which it adds gradients up (default theirs)",
}

# Options of the program itself: name, metavar, help, more arguments of add_argument.
PROGRAM = (
    (
        "--config",
        "FILE|FOLDER",
        "config.json, a folder that holds one, or a model description",
        {"nargs": "+", "action": "extend", "default": []},
    ),
    ("--output", "FILE", "the rows (JSON lines); scenarios found in it are not run again", {"required": True}),
    ("--scenarios", "FILE", "a JSON list of objects with these options as keys; lists multiply", {}),
    ("--kernels", "FILE", "also write one line per kernel: phase, module, op, shapes, name, time", {}),
    ("--timeout", "SECONDS", "for one scenario (default 1800)", {"type": float, "default": 1800.0}),
)


@dataclass(frozen=True)
class Options:
    """What the user asked for. A scenario without a model goes with every --config."""

    configs: list[str]
    scenarios: list[tuple[str | None, Scenario]]
    output: str
    kernels: str | None
    timeout: float
    retry: bool
    dry_run: bool


class _Parser(argparse.ArgumentParser):
    """argparse with our errors: one line, one hint, exit code 2, and the nearest option's name."""

    def error(self, message: str) -> NoReturn:
        raise RecorderError("arguments", message, "record.py --help lists the options", USAGE)

    def unknown(self, words: list[str]) -> NoReturn:
        options = [o for a in self._actions for o in a.option_strings]
        near = difflib.get_close_matches(words[0].split("=")[0], options, n=1)
        hint = f"did you mean {near[0]}?" if near else "record.py --help lists the options"
        raise RecorderError("arguments", f"unknown '{words[0]}'", hint, USAGE)


def parser() -> _Parser:
    """The options. Every one of a scenario takes a comma list; lists multiply."""
    p = _Parser(
        prog="record.py",
        description="Run vision-language models with random weights on a GPU; write measured rows.",
        epilog="Lists give every combination: --batch 1,4 --text 256,2048 is four scenarios.",
        allow_abbrev=False,
    )
    for name, metavar, text, more in PROGRAM:
        p.add_argument(name, metavar=metavar, help=text, **more)
    p.add_argument("--retry", action="store_true", help="run scenarios again whose row holds an error")
    p.add_argument("--dry-run", action="store_true", help="print what would be run")
    group = p.add_argument_group("scenario (comma lists)")
    for name in READERS:
        switch = {"nargs": "?", "const": "on"} if name in SWITCHES else {}
        group.add_argument(f"--{name}", metavar="LIST", help=HELP[name], **switch)
    return p


def parse(words: list[str]) -> Options:
    """Raises RecorderError for anything that cannot be meant."""
    p = parser()
    a, rest = p.parse_known_args(words)
    if rest:
        p.unknown(rest)
    if a.timeout <= 0:
        raise RecorderError("--timeout", "must be positive", "seconds for one scenario", USAGE)
    given = {n: getattr(a, n.replace("-", "_")) for n in READERS}
    lists = {n: v.split(",") for n, v in given.items() if v is not None}
    if a.scenarios and lists:
        raise RecorderError(
            "arguments", f"--{next(iter(lists))} and --scenarios together", "put every option into the file", USAGE
        )
    scenarios = read_file(a.scenarios) if a.scenarios else [(None, s) for s in product(lists)]
    if not a.config and any(config is None for config, _ in scenarios):
        raise RecorderError("arguments", "no model", "give --config FILE, or \"config\" in each scenario", USAGE)
    return Options(a.config, scenarios, a.output, a.kernels, a.timeout, a.retry, a.dry_run)


def read_file(path: str) -> list[tuple[str | None, Scenario]]:
    """A scenario file: a list of objects; "config" names the model (relative to the file), absent: every --config."""
    try:
        with open(path, encoding="utf-8") as f:
            entries = json.load(f)
    except (OSError, ValueError) as e:
        raise RecorderError(path, str(e), "a JSON list of objects", INPUT) from e
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise RecorderError(path, "not a list of objects", 'for example [{"mode": "infer", "batch": [1, 4]}]', INPUT)
    result: list[tuple[str | None, Scenario]] = []
    for i, entry in enumerate(entries):
        where = f"{path}: entry {i + 1}: "
        configs = entry.get("config")
        lists = {}
        for key, value in entry.items():
            name = key.replace("_", "-")
            if key == "config":
                continue
            if name not in READERS:
                near = difflib.get_close_matches(name, READERS, n=1)
                hint = f"did you mean {near[0].replace('-', '_')}?" if near else "keys: config " + " ".join(READERS)
                raise RecorderError(f"{path}: entry {i + 1}", f"unknown key '{key}'", hint, INPUT)
            pair = name == "image-size" and isinstance(value, list) and value and isinstance(value[0], int)
            lists[name] = value if isinstance(value, list) and not pair else [value]
        folder = os.path.dirname(path)
        names = [None] if configs is None else configs if isinstance(configs, list) else [configs]
        for config in names:
            resolved = None if config is None else os.path.normpath(os.path.join(folder, str(config)))
            result += [(resolved, s) for s in product(lists, where)]
    return result
