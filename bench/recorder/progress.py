# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a line that changes on a terminal, a line per scenario in a log."""

import sys
import time
from collections.abc import Callable
from typing import TextIO


def remaining(seconds: list[float], left: int) -> float | None:
    """Estimated seconds for `left` more scenarios: the mean of those that ran; None before the first one has."""
    return sum(seconds) / len(seconds) * left if seconds else None


def duration(seconds: float) -> str:
    """"45 s", "3 min 20 s", "2 h 5 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def outcome(row: dict) -> str:
    """One row in a few words."""
    if "oom" in row:
        return "out of memory"
    if "error" in row:
        return "error: " + row["error"]
    train = row.get("mode") == "train"
    peaks = ("forward_peak", "backward_peak", "step_peak") if train else ("prefill_peak",)
    peak = max((row[k] for k in peaks if k in row), default=0)
    names = ("step",) if train else ("prefill", "decode")
    times = [
        f"{n} {row[n + '_gpu_ms']:.1f} ms GPU of {row[n + '_ms']:.1f} ms"
        for n in names
        if n + "_gpu_ms" in row and n + "_ms" in row
    ]
    return ", ".join([f"peak {peak / 2**30:.2f} GiB"] + times)


class Progress:
    """Counts scenarios and says how long the rest takes."""

    def __init__(self, total: int, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._out = out or sys.stderr
        self._clock = clock
        self._terminal = self._out.isatty()
        self._seconds: list[float] = []
        self._begun = 0
        self._start = 0.0
        self._name = ""
        self._stage = ""

    def begin(self, name: str) -> None:
        """A scenario begins."""
        self._begun += 1
        self._start = self._clock()
        self._name, self._stage = name, "start"
        self._draw()

    def stage(self, name: str) -> None:
        """It has come to this stage."""
        self._stage = name
        self._draw()

    def end(self, row: dict) -> None:
        """It has ended; a line stays."""
        self._seconds.append(self._clock() - self._start)
        left = self._total - self._begun
        rest = remaining(self._seconds, left)
        after = f", {duration(rest)} for {left} more" if left and rest is not None else ""
        self._clear()
        text = f"[{self._begun}/{self._total}] {self._name}: {outcome(row)} ({duration(self._seconds[-1])}{after})"
        print(text, file=self._out, flush=True)

    def _draw(self) -> None:
        if not self._terminal:
            return
        elapsed = self._clock() - self._start
        rest = remaining(self._seconds, self._total - self._begun + 1)
        after = f", {duration(max(0.0, rest - elapsed))} left" if rest is not None else ""
        self._clear()
        text = f"[{self._begun}/{self._total}] {self._name}: {self._stage}, {duration(elapsed)}{after}"
        print(text, end="", file=self._out, flush=True)

    def _clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=self._out)
