"""The nursery: a lean process that has imported everything and opened nothing, and forks workers.

A fork costs milliseconds where a new interpreter costs a tenth of a second or more, and what it makes is a
process like any other. The nursery does as it is told over a socket: each order is one JSON line, with the
ends of the child's own connections, and is answered by one line. It waits for a child only when it is told
to, so that no number of a child is given to another process while somebody may still send it a signal. When
the socket closes, because its supervisor has ended in whatever way, it kills what is left and ends.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from fencepost.cli.killing.orders import declines
from fencepost.cli.killing.people import ask
from fencepost.cli.killing.work import Settings, work
from fencepost.reference import Owner, downstream_http

MOST_ENDS: Final = 2


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next order, with the file descriptors that came with it; None when there are no more."""
    text, ends = b"", list[int]()
    while not text.endswith(b"\n"):
        piece, more, _, _ = socket.recv_fds(control, 65_536, MOST_ENDS)
        ends += more
        if not piece:
            return None
        text += piece
    order: dict[str, Any] = json.loads(text)
    return order, ends


def forked(body: Callable[[], None], control: socket.socket) -> int:
    """The number of a new process that runs the body, and nothing after it."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        control.close()  # or the supervisor would not notice that the nursery is gone
        body()
        code = 0
    finally:
        os._exit(code)  # whatever happens, no child goes on as the nursery
    raise AssertionError


def be_worker(settings: Settings, order: dict[str, Any], ends: list[int]) -> None:
    """What a child does that was started as a worker."""
    (connection,) = ends
    owner = Owner(order["worker"], order["incarnation"])
    work(settings, owner, order["port"], socket.socket(fileno=connection))


def be_people(settings: Settings, order: dict[str, Any], ends: list[int]) -> None:
    """What a child does that was started as those who cancel, approve and decide."""
    (connection,) = ends
    ask(settings, order["instances"], socket.socket(fileno=connection))


def be_downstream(settings: Settings, order: dict[str, Any], ends: list[int]) -> None:
    """What a child does that was started as the downstream; an error is told where the port would be."""
    for end, number in zip(ends, (0, 1), strict=True):
        os.dup2(end, number)
        os.close(end)
    arguments = ["--database", settings.ledger, "--port", str(order["port"]), "--synchronous", "OFF"]
    for name, able in asdict(settings.capabilities).items():
        arguments.append(f"--{name}" if able else f"--no-{name}")
    if settings.broken_downstream:
        arguments += ["--broken", settings.broken_downstream]
    try:
        downstream_http.main(arguments, decline=declines)
    except Exception as error:  # noqa: BLE001  # it is told to the supervisor, which raises it
        os.write(1, f"{type(error).__name__}: {error}\n".encode())


BODIES: Final = {"worker": be_worker, "people": be_people, "downstream": be_downstream}


def serve(control: socket.socket, settings: Settings) -> None:
    """Do as told until nobody tells any more; then no child is left."""
    children = set[int]()
    try:
        while (received := receive(control)) is not None:
            order, ends = received
            if "start" in order:
                pid = forked(partial(BODIES[order["start"]], settings, order, ends), control)
                children.add(pid)
                for end in ends:
                    os.close(end)
                answer = {"pid": pid}
            else:
                os.waitpid(order["wait"], 0)
                children.discard(order["wait"])
                answer = {}
            control.sendall(json.dumps(answer).encode() + b"\n")
    except ConnectionError:
        return
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main() -> None:
    """What runs as ``python -m fencepost.cli.killing.nursery SOCKET``."""
    control = socket.socket(fileno=int(sys.argv[1]))
    received = receive(control)
    if received is None:
        return
    settings = Settings(**received[0])
    control.sendall(b"{}\n")  # ready: everything is imported
    gc.freeze()  # what is here is shared with all children, and never collected
    serve(control, settings)


if __name__ == "__main__":
    main()
