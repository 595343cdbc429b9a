# SPDX-License-Identifier: Apache-2.0
"""What a measuring process tells the one that started it: the row as it grows, so that a crash loses little."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recorder.trace import Kernel


class Journal:
    """Lines of {"stage": what begins now, "row": what is known}. The last whole line counts."""

    def __init__(self, path: str, row: dict) -> None:
        self._path = path
        self.row = row

    def stage(self, name: str) -> None:
        """A new stage begins; what the row holds so far is kept."""
        with open(self._path, "a", encoding="utf-8") as f:
            f.write(json.dumps({"stage": name, "row": self.row}) + "\n")

    def attempt(self, name: str, work: Callable[[], None]) -> bool:
        """A stage that may fail without spoiling the row: a pass of its own, such as profiling. The note says why."""
        self.stage(name)
        try:
            work()
        except Exception as e:  # noqa: BLE001  (a model may raise anything where it is not run as usual)
            text = f"{name}: {type(e).__name__}: {e}".splitlines()[0][:300]
            self.row["note"] = "; ".join(filter(None, [self.row.get("note", ""), text]))
            return False
        return True


def read(path: str) -> tuple[str, dict]:
    """Stage and row of the last whole line; empty where there is none."""
    stage, row = "", {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.endswith("\n"):
                    entry = json.loads(line)
                    stage, row = entry["stage"], entry["row"]
    return stage, row


def write_kernels(path: str, run: str, kernels: "list[Kernel]") -> None:
    """Appends one line per kernel; `run` names model and scenario."""
    with open(path, "a", encoding="utf-8") as f:
        for k in kernels:
            f.write(json.dumps({"run": run} | asdict(k)) + "\n")
