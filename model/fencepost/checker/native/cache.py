"""Machine code kept between runs: small files in the user's cache directory, each checked before it is used.

The directory is `$FENCEPOST_CACHE`, or `fencepost` in `$XDG_CACHE_HOME`, or `~/.cache/fencepost`; an empty
`$FENCEPOST_CACHE` means that nothing is kept. Whatever goes wrong with it only costs time. Code from a
directory that others can write to is never run.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

LIMIT_BYTES = 64 << 20
"""Beyond this the files that were not used for longest are removed: some hundred models."""

_MAGIC = b"fencepost code 1\n"


class CodeCache:
    """Objects by the text they are made from. `target` names processor and compiler."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._directory = _directory()

    def get(self, kind: str, text: str) -> bytes | None:
        """The object of that kind for `text`, if it is kept and whole."""
        if self._directory is None:
            return None
        path = self._path(kind, text)
        try:
            content = path.read_bytes()
            digest, made = content[len(_MAGIC) : len(_MAGIC) + 32], content[len(_MAGIC) + 32 :]
            if not content.startswith(_MAGIC) or hashlib.sha256(made).digest() != digest:
                path.unlink()
                return None
            os.utime(path)
        except OSError:
            return None
        return made

    def put(self, kind: str, text: str, made: bytes) -> None:
        """Keep an object."""
        if self._directory is None:
            return
        with suppress(OSError):
            handle, temporary = tempfile.mkstemp(dir=self._directory, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(made).digest() + made)
                Path(temporary).replace(self._path(kind, text))
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._shrink()

    def _path(self, kind: str, text: str) -> Path:
        assert self._directory is not None  # noqa: S101
        key = f"{_generator()}\n{self._target}\n{kind}\n{text}"
        return self._directory / f"{hashlib.sha256(key.encode()).hexdigest()}.code"

    def _shrink(self) -> None:
        assert self._directory is not None  # noqa: S101
        files = []
        for path in self._directory.iterdir():
            with suppress(OSError):  # another process may have removed it
                files.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= LIMIT_BYTES:
                return
            total -= size
            with suppress(OSError):
                path.unlink()


def _directory() -> Path | None:
    """Where code is kept, made if need be; None where it cannot be kept, or not safely."""
    chosen = os.environ.get("FENCEPOST_CACHE")
    if chosen == "":
        return None
    try:
        if chosen is not None:
            directory = Path(chosen)
        else:
            directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fencepost"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
    except (OSError, RuntimeError):  # no home directory
        return None
    if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return directory


@functools.cache
def _generator() -> str:
    """A digest of the modules that write code: another version of them makes other code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
