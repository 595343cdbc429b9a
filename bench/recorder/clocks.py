# SPDX-License-Identifier: Apache-2.0
"""SM clock and power while something is measured, by nvidia-smi; nothing where it is not there."""

import statistics
import subprocess
import threading
from types import TracebackType

import torch

PERIOD_MS = 50


class Clocks:
    """Samples between `with` and its end. Idle seconds before and after are not inside."""

    def __init__(self, phase: str) -> None:
        self._phase = phase
        self._samples: list[tuple[float, float]] = []
        self._process: subprocess.Popen | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Clocks":
        command = ["nvidia-smi", f"--id={gpu_id()}", "--query-gpu=clocks.sm,power.draw"]
        command += ["--format=csv,noheader,nounits", f"--loop-ms={PERIOD_MS}"]
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return self
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def _read(self) -> None:
        for line in self._process.stdout:
            sample = parse(line)
            if sample:
                self._samples.append(sample)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait()
        self._thread.join()

    def row(self) -> dict[str, float]:
        """The row's keys for this phase; empty without samples."""
        if not self._samples:
            return {}
        clock, power = zip(*self._samples)
        return {
            f"{self._phase}_sm_clock_mhz": statistics.median(clock),
            f"{self._phase}_power_w": statistics.median(power),
        }


def parse(line: str) -> tuple[float, float] | None:
    """"1980, 512.34" in MHz and W; None for anything else ("[N/A]")."""
    parts = line.split(",")
    try:
        return (float(parts[0]), float(parts[1])) if len(parts) == 2 else None
    except ValueError:
        return None


def gpu_id() -> str:
    """The GPU that torch uses, by its UUID: CUDA_VISIBLE_DEVICES may number it differently."""
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    return f"GPU-{uuid}" if uuid else "0"
