"""Starts a downstream as a process of its own, for tests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fencepost.reference

SOURCE = Path(fencepost.reference.__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE)}


class Server:
    """A serving process and the port it printed."""

    def __init__(self, ledger: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fencepost.reference.downstream_http",
                "--database",
                str(ledger),
                "--port",
                "0",
                *options,
            ],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        self.port = int(line)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def served(ledger: Path, *options: str) -> Iterator[Server]:
    """A serving process that is gone at the end, whatever happens."""
    server = Server(ledger, *options)
    try:
        yield server
    finally:
        server.kill()
