"""DB-API connections, mappings and locks of Python that stop at the gate before each statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from fencepost.conformance.sqlite_driver import split

if TYPE_CHECKING:
    from fencepost.conformance.drivers import Port

_CLOSES = ("close",)
"""What a dead worker may still do."""


class LockedError(Exception):
    """A lock of Python that another worker holds."""


# -- DB-API connections


class _Proxy:
    """Whatever is not a statement goes straight through, while the worker is alive."""

    def __init__(self, raw: Any, port: Port) -> None:
        self.__dict__.update(_raw=raw, _port=port)

    def __getattr__(self, name: str) -> Any:
        raw, port = self.__dict__["_raw"], self.__dict__["_port"]
        if not hasattr(raw, name):
            raise AttributeError(f"{type(raw).__name__} has no {name!r}", name=name, obj=raw)
        found = getattr(raw, name)
        if name in _CLOSES or not callable(found) or getattr(found, "__self__", None) is not raw:
            return found

        def method(*arguments: Any, **named: Any) -> Any:
            port.check()
            return found(*arguments, **named)

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        self._port.check()
        setattr(self._raw, name, value)

    def executescript(self, script: str) -> Any:
        """Each statement of a script is a step. Few drivers have this; for others use `execute`."""
        if not hasattr(self._raw, "executescript"):
            raise AttributeError(f"{type(self._raw).__name__} has no executescript")
        for statement in split(script):
            self._port.pass_on(statement, lambda text=statement: self._raw.execute(text))
        return self


class WatchedConnection(_Proxy):
    """A DB-API connection."""

    def cursor(self, *arguments: Any, **named: Any) -> WatchedCursor:
        """A cursor whose statements stop at the gate."""
        self._port.check()
        return WatchedCursor(self._raw.cursor(*arguments, **named), self._port, self)

    def execute(self, text: str, *arguments: Any, **named: Any) -> Any:
        """Some drivers have this short form."""
        return self._cursor_of(text, lambda: self._raw.execute(text, *arguments, **named))

    def executemany(self, text: str, *arguments: Any, **named: Any) -> Any:
        """Some drivers have this short form: one step."""
        return self._cursor_of(text, lambda: self._raw.executemany(text, *arguments, **named))

    def _cursor_of(self, text: str, perform: Callable[[], Any]) -> Any:
        made = self._port.pass_on(text, perform)
        return WatchedCursor(made, self._port, self) if hasattr(made, "fetchone") else made

    def commit(self) -> None:
        """End the transaction."""
        self._port.pass_on("commit", self._raw.commit)

    def rollback(self) -> None:
        """Give the transaction up."""
        self._port.pass_on("rollback", self._raw.rollback)

    def transaction(self, *arguments: Any, **named: Any) -> WatchedTransaction:
        """Some drivers have this block: its begin and its end are steps."""
        self._port.check()
        return WatchedTransaction(self._raw.transaction(*arguments, **named), self._port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.commit() if error[0] is None else self.rollback()


class WatchedTransaction(_Proxy):
    """A transaction as a block."""

    def __enter__(self) -> Any:
        return self._port.pass_on("begin", self._raw.__enter__)

    def __exit__(self, *error: object) -> Any:
        word = "commit" if error[0] is None else "rollback"
        return self._port.pass_on(word, lambda: self._raw.__exit__(*error))


class WatchedCursor(_Proxy):
    """A DB-API cursor."""

    def __init__(self, raw: Any, port: Port, connection: WatchedConnection) -> None:
        super().__init__(raw, port)
        self.__dict__["connection"] = connection

    def execute(self, text: str, *arguments: Any, **named: Any) -> WatchedCursor:
        """Run a statement."""
        self._port.pass_on(text, lambda: self._raw.execute(text, *arguments, **named))
        return self

    def executemany(self, text: str, *arguments: Any, **named: Any) -> WatchedCursor:
        """Run a statement for each of several rows: one step."""
        self._port.pass_on(text, lambda: self._raw.executemany(text, *arguments, **named))
        return self

    def callproc(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Run a procedure: one step."""
        return self._port.pass_on(f"call {name}", lambda: self._raw.callproc(name, *arguments, **named))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw)

    def __next__(self) -> Any:
        return next(self._raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()


# -- mappings and locks


class WatchedMapping(MutableMapping[Any, Any]):
    """A mapping: each read and each write is a statement, as are `get`, `setdefault`, `pop` and `update`.

    Mappings inside of it are watched too. Other values that can change, such as lists, are not. For
    `isinstance` it is what it watches, such as a `dict`.
    """

    def __init__(self, raw: MutableMapping[Any, Any], port: Port, name: str = "") -> None:
        self._raw, self._port, self._name = raw, port, name

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What `isinstance` takes it for."""
        return type(self._raw)

    def _do(self, text: str, perform: Callable[[], Any]) -> Any:
        found = self._port.pass_on(text, perform)
        return self._inside(text, found)

    def _inside(self, text: str, value: Any) -> Any:
        return WatchedMapping(value, self._port, text) if isinstance(value, MutableMapping) else value

    def _place(self, key: Any) -> str:
        return f"{self._name}[{key!r}]"

    def __getitem__(self, key: Any) -> Any:
        return self._do(self._place(key), lambda: self._raw[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._port.pass_on(f"{self._place(key)} = {value!r}", lambda: self._raw.__setitem__(key, value))

    def __delitem__(self, key: Any) -> None:
        self._port.pass_on(f"del {self._place(key)}", lambda: self._raw.__delitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._port.pass_on(f"iter({self._name})", lambda: list(self._raw)))

    def __len__(self) -> int:
        return self._port.pass_on(f"len({self._name})", lambda: len(self._raw))

    def __contains__(self, key: object) -> bool:
        return self._port.pass_on(f"{key!r} in {self._name}", lambda: key in self._raw)

    def get(self, key: Any, default: Any = None) -> Any:
        """One read."""
        return self._do(self._place(key), lambda: self._raw.get(key, default))

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """One step: a read, and a write where nothing is."""
        text = f"{self._name}.setdefault({key!r}, {default!r})"
        return self._do(text, lambda: self._raw.setdefault(key, default))

    def pop(self, key: Any, *default: Any) -> Any:
        """One step: a read and a removal."""
        return self._do(f"{self._name}.pop({key!r})", lambda: self._raw.pop(key, *default))

    def popitem(self) -> tuple[Any, Any]:
        """One step: a read and a removal."""
        key, value = self._port.pass_on(f"{self._name}.popitem()", self._raw.popitem)
        return key, self._inside(self._place(key), value)

    def update(self, *others: Any, **named: Any) -> None:
        """One step: several writes."""
        others = tuple(dict(o) for o in others)
        shown = ", ".join([repr(o) for o in others] + [f"{k}={v!r}" for k, v in named.items()])
        self._port.pass_on(f"{self._name}.update({shown})", lambda: self._raw.update(*others, **named))

    def clear(self) -> None:
        """One step."""
        self._port.pass_on(f"{self._name}.clear()", self._raw.clear)

    def keys(self) -> Any:
        """One read of all keys."""
        return self._port.pass_on(f"{self._name}.keys()", lambda: list(self._raw.keys()))

    def values(self) -> Any:
        """One read of all values."""
        text = f"{self._name}.values()"
        found = self._port.pass_on(text, lambda: list(self._raw.values()))
        return [self._inside(text, value) for value in found]

    def items(self) -> Any:
        """One read of everything."""
        text = f"{self._name}.items()"
        found = self._port.pass_on(text, lambda: list(self._raw.items()))
        return [(key, self._inside(self._place(key), value)) for key, value in found]

    def copy(self) -> Any:
        """One read of everything; what comes back is the worker's own."""
        found = self._port.pass_on(f"{self._name}.copy()", self._raw.copy)  # type: ignore[attr-defined]
        for key, value in found.items():
            if isinstance(value, MutableMapping):
                found[key] = self._inside(self._place(key), value)
        return found

    def __copy__(self) -> Any:
        return self.copy()

    def __or__(self, other: Any) -> Any:
        return {**dict(self.items()), **dict(other.items())}

    def __ror__(self, other: Any) -> Any:
        return {**dict(other.items()), **dict(self.items())}

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"watched {self._raw!r}"


@dataclass(slots=True)
class Held:
    """A watched lock that is held: by which handle, and how many times."""

    lock: Any
    by: Port
    times: int = 1


class WatchedLock:
    """A lock of Python: taking it is a yield point, and a worker that waits for it is blocked.

    The lock itself is never taken, since one worker's step may run in another's thread; who holds it is kept
    beside it. A dead worker's locks are given up.
    """

    def __init__(self, raw: Any, port: Port) -> None:
        self._raw, self._port = raw, port
        self._again = hasattr(raw, "_is_owned")

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Take the lock. Without `blocking`, or with a time to wait, False when another worker holds it."""
        waits = blocking and timeout < 0
        try:
            self._port.pass_on("acquire the lock", lambda: self._take(waits=waits))
        except _NotWaitingError:
            return False
        return True

    def _take(self, *, waits: bool) -> None:
        locks = self._port.locks
        held = locks.get(id(self._raw))
        if held is None:
            locks[id(self._raw)] = Held(self._raw, self._port)
        elif held.by is self._port and self._again:
            held.times += 1
        else:
            raise LockedError if waits else _NotWaitingError

    def release(self) -> None:
        """Give the lock up: no yield point, since nobody else can tell when it happens."""
        if self._port.dead or (self._port.task is not None and self._port.task.dying):
            return
        held = self._port.locks.get(id(self._raw))
        if held is None or (self._again and held.by is not self._port):
            raise RuntimeError("release of a lock that is not held")
        held.times -= 1
        if held.times == 0:
            del self._port.locks[id(self._raw)]
            self._port.gate.unblock()

    def locked(self) -> bool:
        """Whether anybody holds it."""
        return id(self._raw) in self._port.locks

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class _NotWaitingError(Exception):
    """The lock is held, and the worker goes on without it."""


WATCHED = (_Proxy, WatchedMapping, WatchedLock)
"""What `watched` makes, but for the classes of SQLite, which have all that theirs have."""
