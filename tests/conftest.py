"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let an interrupt interrupt: what a script runs in the background is started so as to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
