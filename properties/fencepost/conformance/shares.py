"""A search through schedules that is shared by several processes, where the system can fork.

Each process has every so-manyth start, a world of its own and its own processor. What they found is put
together as one process would have found it: counts are added, and of several tapes the smallest is kept.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from fencepost.conformance.gate import GateError

Found = TypeVar("Found")
Item = TypeVar("Item")


def can_fork() -> bool:
    """Whether this system has what `in_processes` needs."""
    return "fork" in multiprocessing.get_all_start_methods()


def in_processes(
    work: Sequence[Item], jobs: int, search: Callable[[Sequence[Item], int], Found]
) -> list[Found]:
    """What `search` gives for each share of the work, with the number of the share.

    The first share is this process's own. An error in another process is raised here as a GateError that
    tells it; a process that ends without a word is one, too.
    """
    shares = [work[number::jobs] for number in range(max(1, min(jobs, len(work))))]
    if len(shares) == 1 or not can_fork():
        return [search(work, 0)]
    context = multiprocessing.get_context("fork")
    with ExitStack() as stack:
        others = []
        for number, share in enumerate(shares[1:], 1):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_run, args=(search, share, number, there), daemon=True)
            process.start()
            there.close()
            stack.callback(_end, process)
            others.append((number, here))
        found = [search(shares[0], 0)]
        for number, here in others:
            found.append(_received(number, here))
    return found


def _run(search: Callable[[Any, int], Any], share: Any, number: int, there: Connection) -> None:
    """In another process: search, and send what was found or the error."""
    try:
        found, error = search(share, number), ""
    except BaseException as raised:  # noqa: BLE001  # told to the process that asked
        found, error = None, f"{type(raised).__name__}: {raised}"
    there.send((found, error))
    there.close()


def _received(number: int, here: Connection) -> Any:
    try:
        found, error = here.recv()
    except EOFError:
        raise GateError(f"the process with share {number} of the schedules ended without a word") from None
    if error:
        raise GateError(f"the process with share {number} of the schedules failed: {error}")
    return found


def _end(process: Any) -> None:
    """End a process that is not needed any more; one that has sent all is at its end."""
    process.join(1.0)
    if process.is_alive():
        process.terminate()
        process.join()
