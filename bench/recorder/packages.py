# SPDX-License-Identifier: Apache-2.0
"""Which packages run parts of a model: transformers takes their functions in the place of its own where it can import
them (integrations/hub_kernels.py, use_kernel_func_from_hub_with_fallback)."""

import sys
from collections.abc import Callable

NAMES = {"fla": "fla", "causal_conv1d": "causal-conv1d"}


def taken_from(function: Callable) -> str | None:
    """The package whose function runs where this one is called, None where it is transformers' own. Other decorators
    may stand around the one that chose."""
    while function is not None:
        cells = getattr(function, "__closure__", None) or ()
        variables = dict(zip(getattr(getattr(function, "__code__", None), "co_freevars", ()), cells))
        if "is_new_implementation" in variables:
            if not variables["is_new_implementation"].cell_contents:
                return None
            return variables["implementation"].cell_contents.__module__.split(".")[0]
        function = getattr(function, "__wrapped__", None)
    return None


def kernel_packages(modules: set[str]) -> str:
    """The packages that functions of these Python modules are taken from, in the words of vlmest's --packages."""
    found = {taken_from(f) for name in modules for f in vars(sys.modules[name]).values() if callable(f)}
    return ",".join(word for package, word in NAMES.items() if package in found)
