"""What the tests of checkpoints share: a key, and what somebody does to a checkpoint past the store."""

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from fencepost.reference import observe

KEY = b"sixteen bytes, and a few more"


def rehashed(data: bytes, key: bytes | None = None, **changes: Any) -> bytes:
    """What somebody writes who knows the format: with the hash made anew, and the MAC if they have the key.

    Written without the code under test.
    """
    members = {**json.loads(data), **changes}

    def text(value: Any) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    body = {name: value for name, value in members.items() if name not in ("hash", "mac")}
    if key is not None:
        members["mac"] = hmac.new(key, text(body), hashlib.sha256).hexdigest()
    return text({**members, "hash": hashlib.sha256(text({**body, "mac": members["mac"]})).hexdigest()})


def checkpoint(path: Path, instance: str = "order-1") -> bytes | None:
    """The bytes of a checkpoint, by the back door."""
    return dict(observe(path).checkpoints).get(instance)


def spoil(path: Path, change: Callable[[bytes], bytes | None], instance: str = "order-1") -> None:
    """Change the bytes of a checkpoint past the store; None takes it away."""
    before = checkpoint(path, instance)
    assert before is not None
    changed = change(before)
    with closing(sqlite3.connect(path)) as connection, connection:
        if changed is None:
            connection.execute("delete from checkpoints where instance = ?", (instance,))
        else:
            connection.execute(
                "update checkpoints set checkpoint = ? where instance = ?", (changed, instance)
            )
