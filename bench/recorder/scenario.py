# SPDX-License-Identifier: Apache-2.0
"""A scenario: how a model is run. Its fields are keys of the row, spelled as there."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace

from recorder.errors import USAGE, RecorderError

MODES = ("infer", "train")
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
ATTENTIONS = ("eager", "sdpa", "flash")
LOGITS = ("last", "all")
SHARDS = ("none", "zero1", "zero2", "zero3", "fsdp2")
# The command line's words (those of `vlmest estimate`) and the rows'.
OPTIMIZERS = {
    "adamw": "adamw",
    "adamw-fused": "adamw_fused",
    "sgd": "sgd",
    "sgd-momentum": "sgdm",
    "adafactor": "adafactor",
}
LARGEST = 1 << 20  # of every count; a slip of the hand rather than a model beyond it


@dataclass(frozen=True)
class Scenario:
    """One run of one model. The defaults are those of `vlmest estimate` but for hw, which the model decides."""

    mode: str = "infer"
    batch: int = 1
    text: int = 256  # text tokens of each sequence
    images: int = 1  # of each sequence
    hw: tuple[int, int] | None = None  # pixels of each image before the model's own resize; None: the model's size
    dtype: str = "bfloat16"
    attn: str = "sdpa"
    logits: str = "last"  # positions whose logits a prefill computes
    ckpt: bool = False
    lora: int = 0  # rank
    freeze_vision: bool = False
    amp: bool = False  # float32 weights under bfloat16 autocast
    optim: str = "adamw"
    target: int = 128  # labels of each sequence, where a decoder of its own is trained on them
    gpus: int = 1  # each with sequences of its own, but for those that divide them
    cp: int = 1  # parts of each sequence, one for each of as many GPUs
    shard: str = "none"  # what they divide: nothing (DistributedDataParallel), ZeRO's stages, fully_shard
    bucket_view: bool = False  # DistributedDataParallel(gradient_as_bucket_view=True)
    reshard: bool = True  # fully_shard(reshard_after_forward=...)
    param_dtype: str | None = None  # of fully_shard's MixedPrecisionPolicy; None: that of the weights
    reduce_dtype: str | None = None  # of the same; None: that of the gradients

    def row_fields(self) -> dict:
        """The fields as a row carries them: options of training only where they differ from the default."""
        r = asdict(self)
        r["hw"] = list(self.hw) if self.hw else None
        for f in fields(self):
            if f.name in TRAINING and (self.mode != "train" or r[f.name] == f.default):
                del r[f.name]
        if self.mode == "train":
            del r["logits"]  # the loss needs every position
        return r

    def label(self) -> str:
        """What a person reads: "infer b1 text 256 images 1 336x336 bfloat16 sdpa"."""
        size = f"{self.hw[0]}x{self.hw[1]}" if self.hw else "native"
        words = [self.mode, f"b{self.batch}", f"text {self.text}", f"images {self.images}", size, self.dtype, self.attn]
        if self.mode == "infer" and self.logits == "all":
            words.append("all logits")
        if self.mode == "train":
            words += [self.optim] if self.optim != "adamw" else []
            words += ["amp"] if self.amp else []
            words += ["checkpointing"] if self.ckpt else []
            words += [f"lora {self.lora}"] if self.lora else []
            words += [f"target {self.target}"] if self.target != 128 else []
            words += ["vision frozen"] if self.freeze_vision else []
            words += [f"gpus {self.gpus}", self.shard if self.shard != "none" else "ddp"] if self.gpus > 1 else []
            words += [f"cp {self.cp}"] if self.cp > 1 else []
            words += ["bucket views"] if self.bucket_view else []
            words += [] if self.reshard else ["no reshard"]
            words += [f"gathered {self.param_dtype}"] if self.param_dtype else []
            words += [f"reduced {self.reduce_dtype}"] if self.reduce_dtype else []
        return " ".join(words)


FULLY_SHARD = ("reshard", "param_dtype", "reduce_dtype")
SEVERAL_GPUS = ("cp", "shard", "bucket_view", *FULLY_SHARD)
TRAINING = ("ckpt", "lora", "freeze_vision", "amp", "optim", "target", "gpus", *SEVERAL_GPUS)


def from_row(row: Mapping) -> Scenario:
    """The scenario that a row was measured in; fields that it lacks have their defaults."""
    known = {f.name for f in fields(Scenario)}
    values = {k: v for k, v in row.items() if k in known and v is not None}
    if "hw" in values:
        values["hw"] = tuple(values["hw"])
    return Scenario(**values)


def image_size(text: str, where: str) -> tuple[int, int] | None:
    """"HxW" in pixels; "native" is None."""
    if text == "native":
        return None
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(p.isdecimal() for p in parts):
        raise RecorderError(where, f"'{text}' is no HxW", "for example 336x672, height first; or native", USAGE)
    return count(parts[0], where), count(parts[1], where)


def count(value: object, where: str, least: int = 1) -> int:
    """A whole number, at least `least`."""
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal():
        raise RecorderError(where, f"'{text}' is no whole number", f"give a number of at least {least}", USAGE)
    number = int(text)
    if not least <= number <= LARGEST:
        what = f"{number} is not between {least} and {LARGEST}"
        raise RecorderError(where, what, "give a number in that range", USAGE)
    return number


def word(value: object, where: str, words: Iterable[str]) -> str:
    """One of `words`."""
    if value in words:
        return str(value)
    raise RecorderError(where, f"unknown '{value}'", "one of " + " ".join(words), USAGE)


def flag(value: object, where: str) -> bool:
    """True or false, as a bool or as the command line's on and off."""
    if isinstance(value, bool):
        return value
    return word(value, where, ("on", "off")) == "on"


# option -> (field, reader of one value). The options' names are the keys of a scenario file too, with _ for -.
READERS = {
    "mode": ("mode", lambda v, w: word(v, w, MODES)),
    "batch": ("batch", count),
    "text": ("text", count),
    "images": ("images", count),
    "image-size": ("hw", lambda v, w: image_size("x".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v), w)),
    "dtype": ("dtype", lambda v, w: DTYPES[word(v, w, DTYPES)]),
    "attention": ("attn", lambda v, w: word(v, w, ATTENTIONS)),
    "logits": ("logits", lambda v, w: word(v, w, LOGITS)),
    "checkpointing": ("ckpt", flag),
    "lora": ("lora", lambda v, w: count(v, w, 0)),
    "freeze": ("freeze_vision", lambda v, w: word(v, w, ("none", "vision")) == "vision"),
    "amp": ("amp", flag),
    "target": ("target", count),
    "optimizer": ("optim", lambda v, w: OPTIMIZERS[word(v, w, OPTIMIZERS)]),
    "gpus": ("gpus", count),
    "context-parallel": ("cp", count),
    "shard": ("shard", lambda v, w: word(v, w, SHARDS)),
    "ddp-bucket-view": ("bucket_view", flag),
    "reshard-after-forward": ("reshard", flag),
    "param-dtype": ("param_dtype", lambda v, w: DTYPES[word(v, w, DTYPES)]),
    "reduce-dtype": ("reduce_dtype", lambda v, w: DTYPES[word(v, w, DTYPES)]),
}


def product(values: Mapping[str, list], where: str = "") -> list[Scenario]:
    """Every combination of the options' values, each once, in the order given (the last option turns fastest).

    `values` maps options (READERS) to lists of raw values. Options that do not concern a mode do not multiply it: an
    optimizer list with --mode infer,train gives one inference. With --amp the weights are float32, whatever --dtype is.
    """
    names = list(values)
    read = [[READERS[n][1](v, f"{where}--{n}") for v in values[n]] for n in names]
    scenarios: dict[Scenario, None] = {}
    for combination in itertools.product(*read):
        scenarios[canonical(Scenario(**{READERS[n][0]: v for n, v in zip(names, combination)}))] = None
    if "gpus" in values and max(read[names.index("gpus")]) > 1 and all(s.gpus == 1 for s in scenarios):
        raise RecorderError(f"{where}--gpus", "several GPUs are recorded in training alone", "add --mode train", USAGE)
    _check_several_gpus(values, scenarios, where)
    for s in scenarios:
        _check_parts(s, where)
    return list(scenarios)


# option -> what it needs to change anything, of those that a scenario without it leaves out.
NEEDS = {
    "ddp-bucket-view": "--mode train --gpus 2 --shard none",
    "reshard-after-forward": "--mode train --gpus 2 --shard fsdp2",
    "param-dtype": "--mode train --gpus 2 --shard fsdp2",
    "reduce-dtype": "--mode train --gpus 2 --shard fsdp2",
}


def _check_several_gpus(values: Mapping[str, list], scenarios: Iterable[Scenario], where: str) -> None:
    """Options that change none of the scenarios are a slip."""
    defaults = Scenario()
    for option in values.keys() & NEEDS.keys():
        name, read = READERS[option]
        asked = any(read(v, where) != getattr(defaults, name) for v in values[option])
        if asked and all(getattr(s, name) == getattr(defaults, name) for s in scenarios):
            raise RecorderError(f"{where}--{option}", "changes no scenario", f"needs {NEEDS[option]}", USAGE)


def _check_parts(s: Scenario, where: str) -> None:
    """Sequences are divided over some of the GPUs, by torch's context parallelism."""
    option = f"{where}--context-parallel"
    if s.gpus % s.cp:
        raise RecorderError(option, f"{s.cp} does not divide {s.gpus} GPUs", "give a number that does", USAGE)
    if s.cp > 1 and s.attn != "sdpa":
        raise RecorderError(option, "takes the place of scaled_dot_product_attention", "use --attention sdpa", USAGE)
    if s.cp > 1 and s.shard.startswith("zero"):
        raise RecorderError(option, "does not run beside DeepSpeed's stages", "use --shard none or fsdp2", USAGE)


def canonical(s: Scenario) -> Scenario:
    """The one spelling of all scenarios that run the same."""
    if s.mode == "infer":
        return replace(s, **{f.name: f.default for f in fields(Scenario) if f.name in TRAINING})
    s = replace(s, logits="last", dtype="float32" if s.amp else s.dtype)
    idle = set(SEVERAL_GPUS) if s.gpus == 1 else {"bucket_view"} if s.shard != "none" else set()
    if s.shard != "fsdp2":
        idle.update(FULLY_SHARD)
    return replace(s, **{f.name: f.default for f in fields(Scenario) if f.name in idle})
