"""Where code under test stands that does not come to an end, and how a thread that it keeps is got out."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType

from fencepost.checker.subject import UsageError

PATIENCE_S = 30.0
"""How long the worker that has the turn may take from one statement to the next. An adapter may have an
attribute `patience_s` of its own.
"""

TICKS = 10
"""Parts of the patience that are counted, so that a machine that was asleep counts as one of them."""

MOST_REFUSED = 1_000
"""Statements of a dead worker that are refused; with more of them its code never ends."""

TAKES_LONG = "if it only takes long, give the adapter an attribute `patience_s`, in seconds"

_FRAMES = 8
_OWN = Path(__file__).resolve().parent


def standing(thread: Thread | None) -> list[str]:
    """The lines of code in which a thread is now, outermost first; without those of the checks."""
    frame = None if thread is None else sys._current_frames().get(thread.ident or 0)  # noqa: SLF001
    if frame is None:
        return []
    stack = list(traceback.extract_stack(frame))
    call = max([n for n, f in enumerate(stack) if f.name == "_call" and _is_own(f.filename)], default=0)
    found = [f for f in stack[call:] if not _is_own(f.filename)]
    return [f"{f.filename}:{f.lineno} in {f.name}: {(f.line or '').strip()}" for f in found[-_FRAMES:]]


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_OWN) or path.name == "threading.py"


def got_out(thread: Thread, error: type[BaseException], wait_s: float = 1.0) -> bool:
    """Wait for a thread to end, and raise an error in it if it does not; whether it has ended.

    What waits inside of the interpreter, for a lock, cannot be got out, and is left behind.
    """
    thread.join(wait_s)
    if thread.is_alive():
        raised_in(thread, error)
        thread.join(wait_s)
    return not thread.is_alive()


def raised_in(thread: Thread, error: type[BaseException]) -> None:
    """Raise an error in another thread, once it comes to code of Python."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(error))


@dataclass(slots=True)
class _Watch:
    """A call that is watched in this process: by whom it is made, and what it is."""

    thread: Thread
    what: str
    patience_s: float
    ticks: int = 0
    said: str = ""
    hears: bool = False
    """Whether the interrupt signal gets it out, also of a wait."""


_watches: list[_Watch] = []
_watcher: list[int] = []
"""The process in which the thread that watches was started: it does not outlive a fork."""


@contextmanager
def watching(what: str, patience_s: float | None = None) -> Iterator[None]:
    """UsageError when what is done inside does not end in time: it is got out of, if that can be.

    In the main thread also what waits for a lock is got out of, in others only what goes on and on.
    """
    watch = _Watch(current_thread(), what, PATIENCE_S if patience_s is None else patience_s)
    if _watcher != [os.getpid()]:
        _watcher[:], _watches[:] = [os.getpid()], []
        Thread(target=_watch, name="fencepost-watchdog", daemon=True).start()
    with _hearing(watch):
        _watches.append(watch)
        try:
            yield
        except _TooLongError:
            raise UsageError(watch.said) from None
        finally:
            _watches.remove(watch)


@contextmanager
def _hearing(watch: _Watch) -> Iterator[None]:
    """Have the interrupt signal end a call that takes too long, and do what it did otherwise.

    The handler is installed anew also where Python's own stands: libraries in C put that back in such a way
    that the system goes on waiting after it. Where the signal is ignored, nothing would end a wait at all.
    """
    before = signal.getsignal(signal.SIGINT)
    if watch.thread is not main_thread() or before is None:
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:
        if watch.said:
            raise _TooLongError
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, before)
            signal.raise_signal(number)

    signal.signal(signal.SIGINT, heard)
    watch.hears = hasattr(signal, "pthread_kill")
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _TooLongError(BaseException):
    """Raised in the thread of a call that does not end."""


def _watch() -> None:
    while True:
        time.sleep(min([w.patience_s for w in list(_watches)] or [PATIENCE_S]) / TICKS)
        for watch in (*_watches,):
            watch.ticks += 1
            if watch.ticks < TICKS or watch.ticks % TICKS:
                continue
            first = not watch.said
            watch.said = watch.said or _does_not_end(watch)
            if not first:
                sys.stderr.write(f"{watch.said}\n")  # the code has caught what was to get out of it
            _interrupt(watch)


def _does_not_end(watch: _Watch) -> str:
    stands = [f"    {line}" for line in standing(watch.thread)]
    lines = [f"{watch.what} does not end: it takes longer than {watch.patience_s:g} s"]
    lines += ["  it stands in", *stands] if stands else []
    return "\n".join(
        [*lines, "if it only takes long, give the adapter an attribute `patience_s`, in seconds"]
    )


def _interrupt(watch: _Watch) -> None:
    if watch.hears and watch.thread.ident is not None:
        signal.pthread_kill(watch.thread.ident, signal.SIGINT)
    else:
        raised_in(watch.thread, _TooLongError)
