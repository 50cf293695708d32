"""Starts, stops and ends the processes of a run: each by its number, and none but those started here.

All of them are children of the nursery, which is in a process group of its own: an interruption from the
keyboard reaches the supervisor alone, and the supervisor ends the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from fencepost.cli.killing.fates import Act
from fencepost.cli.killing.work import Settings
from fencepost.model.errors import FencepostError
from fencepost.reference import Owner

PATIENCE_SECONDS: Final = 30.0
"""How long a process may take to begin, on a busy machine; nothing waits that long otherwise."""

INCARNATIONS_AT_ONCE: Final = 1_000


class ProcessesError(FencepostError):
    """The system does not let processes be started, stopped or reached; the message says what to do."""


class Incarnations:
    """Numbers that no process of these files had before: the file holds one that is above all of them.

    The file is written once for each thousand, before any of the thousand is given out. So after the death of
    the supervisor some numbers are left out, and none is given twice.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._next = int(path.read_text(encoding="ascii")) if path.exists() else 1
        self._kept = self._next

    def __next__(self) -> int:
        """A new number."""
        if self._next == self._kept:
            self._kept += INCARNATIONS_AT_ONCE
            with self._path.open("w", encoding="ascii") as file:
                file.write(str(self._kept))
                file.flush()
                os.fsync(file.fileno())
        self._next += 1
        return self._next - 1


class Nursery:
    """The process that forks all others; to be closed, or used in a `with`, and then none is left."""

    def __init__(self, settings: Settings) -> None:
        if not hasattr(os, "fork") or not hasattr(signal, "SIGSTOP"):
            raise ProcessesError(
                "this system cannot fork, or stop and continue, processes; run it on Linux or macOS"
            )
        self._control, theirs = socket.socketpair()
        # -P: nothing in the working directory may hide a module. What can be imported here can be there too.
        command = [sys.executable, "-P", "-m", "fencepost.cli.killing.nursery", str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with theirs:
            self._process: Final = subprocess.Popen(  # noqa: S603  # our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        try:
            self._control.settimeout(PATIENCE_SECONDS)
            self._ordered(asdict(settings))
        except BaseException:
            self.close()
            raise

    def start(self, what: str, *ends: int, **order: Any) -> int:
        """Fork a child that is a worker, the downstream or people; its number."""
        return int(self._ordered({"start": what, **order}, *ends)["pid"])

    def end(self, pid: int) -> None:
        """Kill a child, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)  # it is there, dead or alive: only the nursery waits for it, when told
        self._ordered({"wait": pid})

    def _ordered(self, order: dict[str, Any], *ends: int) -> dict[str, Any]:
        try:
            message = json.dumps(order).encode() + b"\n"
            sent = socket.send_fds(self._control, [message], list(ends))
            self._control.sendall(message[sent:])
            answer = b""
            while not answer.endswith(b"\n"):
                piece = self._control.recv(4096)
                if not piece:
                    raise ConnectionError("it has ended")
                answer += piece
        except OSError as error:
            raise ProcessesError(
                f"the process that starts workers does not answer: {error}; what it printed says why"
            ) from error
        made: dict[str, Any] = json.loads(answer)
        return made

    def close(self) -> None:
        """End the nursery, and with it all that it started."""
        self._control.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process: who it is, its line, and what is known of where it stands.

    `point` is where it waits for leave, if it does; `instance` what it has a lease on, as far as it told;
    `answer` is what its last request for an effect was answered. `held_back` is where and how it was stopped,
    until the first answer after that. `ended` and `failed` are what it told at its end.
    """

    pid: int
    owner: Owner
    line: socket.socket
    point: str | None = None
    instance: str | None = None
    lease_version: int = 0
    answer: str | None = None
    held_back: tuple[str, Act] | None = None
    ended: bool = False
    failed: str | None = None
    gone: bool = False
    _unread: bytes = field(default=b"")

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it has told since the last time; at the end of its line it is gone."""
        while not self.gone:
            try:
                piece = self.line.recv(65_536)
            except BlockingIOError:
                break
            except ConnectionError:
                piece = b""
            self.gone = not piece
            self._unread += piece
        *whole, self._unread = self._unread.split(b"\n")
        for line in whole:
            yield json.loads(line)

    def leave(self) -> None:
        """Let it go on from the point where it waits."""
        self.point = None
        with contextlib.suppress(ConnectionError):
            self.line.send(b"g")

    def stop(self) -> None:
        """Take the processor from it, for as long as it is not continued."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Give the processor back."""
        os.kill(self.pid, signal.SIGCONT)


def start_worker(nursery: Nursery, owner: Owner, port: int) -> Worker:
    """A new worker process."""
    ours, theirs = socket.socketpair()
    with theirs:
        pid = nursery.start(
            "worker", theirs.fileno(), worker=owner.worker, incarnation=owner.incarnation, port=port
        )
    ours.settimeout(0.0)
    return Worker(pid, owner, ours)


def start_people(nursery: Nursery, instances: int) -> Worker:
    """A new process of those who cancel, approve and decide; it has a line like a worker's."""
    ours, theirs = socket.socketpair()
    with theirs:
        pid = nursery.start("people", theirs.fileno(), instances=instances)
    ours.settimeout(0.0)
    return Worker(pid, Owner("people", 0), ours)


class DownstreamProcess:
    """The downstream: a process that serves its ledger over HTTP, at one port whenever it runs."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery: Final = nursery
        self._pid = 0
        self._held = -1
        self.port = 0
        self.start()

    def start(self) -> None:
        """Begin to serve. The former port may not be free at once: a connection may still be closing."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (said := self._begun()).isdigit():
            self.kill()
            if time.monotonic() > deadline:
                where = f"port {self.port}" if self.port else "any port"
                raise ProcessesError(
                    f"the downstream cannot serve at {where} of this machine: {said or 'it ended'}; "
                    "end what uses it, and begin again"
                )
            time.sleep(0.05)
        self.port = int(said)

    def _begun(self) -> str:
        """Start the process; the port that it serves at, or else what went wrong."""
        (their_in, self._held), (our_out, their_out) = os.pipe(), os.pipe()
        try:
            self._pid = self._nursery.start("downstream", their_in, their_out, port=self.port)
        finally:
            os.close(their_in)
            os.close(their_out)
        with os.fdopen(our_out, encoding="utf-8") as output:
            readable, _, _ = select.select([output], [], [], PATIENCE_SECONDS)
            return output.readline().strip() if readable else "it does not begin to serve"

    def kill(self) -> None:
        """Kill it; what it has answered is in its ledger."""
        self._nursery.end(self._pid)
        self.close()

    def close(self) -> None:
        """Give up the pipe that it would end with; twice is harmless."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
