# SPDX-License-Identifier: Apache-2.0
"""Versions, as far as they are known without importing torch: they are part of what makes two runs equal."""

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable
from importlib import metadata

PACKAGES = ("torch", "transformers", "peft", "flash-linear-attention", "causal-conv1d")


def versions() -> dict[str, str]:
    """Installed packages, CUDA as torch was built for it, and the driver. What is not there is left out."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        # The distribution's version lacks the build ("+cu130") that torch.__version__ has.
        found |= build(os.path.join(os.path.dirname(spec.origin), "version.py"))
    driver = nvidia_smi("driver_version")
    if driver:
        found["driver"] = driver
    return found


def build(path: str) -> dict[str, str]:
    """torch.__version__ and torch.version.cuda out of torch/version.py; empty where they are not found."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return {}
    found = {}
    for key, name in (("torch", "__version__"), ("cuda", "cuda")):
        match = re.search(rf"^{name}\s*(?::[^=\n]*)?=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        if match:
            found[key] = match[1]
    return found


def nvidia_smi(field: str, run: Callable = subprocess.run) -> str:
    """One field of the first GPU, empty where the program is missing or does not answer."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    try:
        r = run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return r.stdout.strip().splitlines()[0].strip() if r.returncode == 0 and r.stdout.strip() else ""
