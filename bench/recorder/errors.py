# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can do something about, in the form that every program of the project prints."""

USAGE = 2  # wrong options
INPUT = 3  # a file that cannot be read, or a model that is not supported
FAILED = 1  # a scenario ended with an error


class RecorderError(Exception):
    """`error: WHERE: WHAT` and `hint: HINT`, and the exit code that goes with it."""

    def __init__(self, where: str, what: str, hint: str, code: int = INPUT) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what
        self.hint = hint
        self.code = code

    def text(self) -> str:
        """The two lines for stderr."""
        return f"error: {self.where}: {self.what}\nhint: {self.hint}"
