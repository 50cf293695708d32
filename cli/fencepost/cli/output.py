"""Standard output and error whose reader may leave before the end, or which cannot take any more.

A closed pipe (``fencepost check … | head -1``) ends nothing: from then on output goes nowhere, the command
finishes in silence, and the exit code is that of its verdict, as if all had been read. A code of its own, 141
say, would hide a verdict that is known; and 0 or 1 would be one that nobody gave. Only a command that is
ended before its verdict is known has another code. An output that fails otherwise, such as a full disk, is an
`OutputError`, exit code 4: whoever reads it later must not take half of a report for all of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any


class OutputError(Exception):
    """Something could not be printed, and not because nobody reads it any more."""


class _Output:
    """A text stream that takes no offence at a closed pipe."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._failed = ""

    def write(self, text: str) -> int:
        """Write, unless nobody reads any more."""
        with self._until_closed():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, unless nobody reads any more."""
        with self._until_closed():
            self._stream.flush()

    @contextlib.contextmanager
    def _until_closed(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._to_nowhere()
        except OSError as error:
            self._to_nowhere()
            self._failed = f"the output cannot be written ({error.strerror})"
        if self._failed:  # each time: click tries a stream out, and takes no notice
            raise OutputError(self._failed)

    def _to_nowhere(self) -> None:
        """What is still in the buffer, and all that follows up to the end of the process, is dropped."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def kept_open() -> Iterator[None]:
    """Within this, standard output and error may be closed by their reader, or have been from the start."""
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        # Output first: a number that was closed at the start is taken by what is opened first.
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:
                stream = opened.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
            setattr(sys, name, _Output(stream))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
