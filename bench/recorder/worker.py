# SPDX-License-Identifier: Apache-2.0
"""Runs one scenario in a process of its own and returns its row, whatever becomes of that process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from recorder import journal
from recorder.config import Model
from recorder.scenario import Scenario

POLL_SECONDS = 0.5
PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Job:
    """One model in one scenario."""

    model: Model
    scenario: Scenario

    @property
    def name(self) -> str:
        return f"{self.model.name} {self.scenario.label()}"

    def row_start(self) -> dict:
        """The keys that say what is run."""
        m = self.model
        return {"model": m.name, "config": m.path, "config_sha256": m.digest} | self.scenario.row_fields()


def measure(
    job: Job,
    versions: dict[str, str],
    timeout: float,
    kernels: str | None,
    report: Callable[[str], None],
    command: list[str] | None = None,
) -> dict:
    """The row. `report` is told the stage as it changes. `command` replaces the measuring process in tests.

    A process that is killed, hangs or cannot start gives a row with what it had measured and `error`.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "journal")
        text = json.dumps(
            {
                "document": job.model.document,
                "scenario": job.scenario.row_fields(),
                "journal": path,
                "kernels": os.path.abspath(kernels) if kernels else None,
                "name": job.name,
            }
        )
        given = os.path.join(folder, "job")
        with open(given, "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(folder, "stderr"), "w+", encoding="utf-8", errors="replace") as said:
            process = subprocess.Popen(
                (command or _command(job.scenario)) + [given],
                stdin=subprocess.DEVNULL,
                stdout=said,  # libraries print; rows come through the journal
                stderr=said,
                env=os.environ | {"PYTHONPATH": _path()},
                cwd=folder,  # Python looks for modules there; a user's folder may have one named like a library's
            )
            hung = not _wait(process, start + timeout, path, report)
            said.seek(0)
            last_words = _last_line(said.read())
        stage, found = journal.read(path)
        for rank in range(1, job.scenario.gpus):  # what ended another rank ended this one
            found |= {k: v for k, v in journal.read(f"{path}.{rank}")[1].items() if k in ("oom", "error")}
    row = job.row_start() | {"versions": versions} | found
    row["versions"] = versions | row["versions"]
    failure = _failure(process.returncode, hung, timeout, stage, last_words)
    if failure and "error" not in row and "oom" not in row:
        row["error"] = failure
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def _command(scenario: Scenario) -> list[str]:
    """The measuring process; of several GPUs what starts one for each."""
    several = []
    if scenario.gpus > 1:
        several = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(scenario.gpus), "-m"]
    return [sys.executable, "-m", *several, "recorder.measure"]


def _path() -> str:
    return os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH", "")]))


def _wait(process: subprocess.Popen, deadline: float, path: str, report: Callable[[str], None]) -> bool:
    """Whether the process ended by itself in time; it is ended otherwise, also when the user interrupts."""
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
                return True
            report(journal.read(path)[0] or "start")
            if time.monotonic() > deadline:
                return False
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _failure(code: int, hung: bool, timeout: float, stage: str, last_words: str) -> str:
    """Why there is no whole row; empty where there is one."""
    where = f"in stage '{stage}'" if stage else "before its first stage"
    if hung:
        return f"stopped after {timeout:g} s {where}"
    if code < 0:
        return f"ended by {signal.Signals(-code).name} {where}"
    if code > 0:
        return f"exit code {code} {where}" + (f": {last_words}" if last_words else "")
    return "" if stage in ("done", "out of memory") else f"ended early {where}"
