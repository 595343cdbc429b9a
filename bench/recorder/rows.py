# SPDX-License-Identifier: Apache-2.0
"""The file of rows: read to know what is done, appended to after each scenario."""

import json
import os
from collections.abc import Mapping

from recorder.errors import RecorderError
from recorder.fields import check
from recorder.scenario import Scenario, from_row

# What makes two runs of one scenario different runs.
VERSIONS = ("torch", "cuda", "transformers", "peft", "driver", "flash-linear-attention", "causal-conv1d")

Key = tuple


def key(model: str, digest: str, scenario: Scenario, versions: Mapping[str, str]) -> Key:
    """Equal for two runs that would measure the same. peft counts only where adapters are used."""
    used = {n: versions.get(n) for n in VERSIONS if n != "peft" or scenario.lora}
    return model, digest, scenario, tuple(sorted(used.items()))


def row_key(row: Mapping) -> Key:
    """The key of a row."""
    return key(row.get("model"), row.get("config_sha256"), from_row(row), row.get("versions", {}))


class RowFile:
    """JSON lines, one a row. A last line that a kill cut off does not count as done; the next row replaces it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: dict[Key, dict] = {}
        self._keep: int | None = None  # bytes of whole lines, where something follows them
        if os.path.exists(path):
            self._read()

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as f:
                content = f.read()
        except OSError as e:
            raise RecorderError(self._path, str(e), "name another --output") from e
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._keep = whole
        for i, line in enumerate(content[:whole].splitlines()):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                self._rows[row_key(row)] = row
            except (ValueError, TypeError, AttributeError) as e:
                hint = "the output must be a file of this program; name another one"
                raise RecorderError(f"{self._path}: line {i + 1}", "not a row", hint) from e

    def done(self, wanted: Key, retry: bool) -> bool:
        """Whether the scenario has a row; with `retry`, one without an error."""
        row = self._rows.get(wanted)
        return row is not None and not (retry and "error" in row)

    def append(self, row: dict) -> None:
        """Writes the row as one line, on the disk when this returns."""
        check(row)
        line = json.dumps(row) + "\n"
        folder = os.path.dirname(self._path)
        try:
            if folder:
                os.makedirs(folder, exist_ok=True)
            if self._keep is not None:
                os.truncate(self._path, self._keep)
            with open(self._path, "a", encoding="utf-8") as f:
                f.write(line)
                f.flush()
                os.fsync(f.fileno())
        except OSError as e:
            hint = "name a file that can be written with --output"
            raise RecorderError(self._path, e.strerror or str(e), hint) from e
        self._keep = None
        self._rows[row_key(row)] = row
