"""A downstream as a process of its own, over HTTP on this machine, and the client for it (§2, §6, §7).

It follows the conventions of the `Idempotency-Key` header, which are not yet a standard: the key comes in
that header, another fingerprint is 422, and a first request still being decided is 409. The answer is always
JSON; a refusal has its code in there, since a status alone does not say enough.

The client takes an answer for a refusal only if it can be read to its end and says so in a way that both
sides know. Anything else, a timeout or a lost connection above all, is `Unknown`: the effect may have
happened.

    python -m fencepost.reference.downstream_http --database ledger.db --port 0

prints its port on the first line. It ends when it is told to (SIGTERM, SIGINT), or when its standard input
is a pipe and is closed, so that it does not outlive the program that started it.
With `--broken NAME` it is one of `BROKEN_DOWNSTREAMS`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from fencepost.reference import downstream_values as words
from fencepost.reference.downstream import Decline, Downstream
from fencepost.reference.downstream_values import (
    Capabilities,
    DownstreamAnswer,
    EffectRequest,
    Held,
    NotFound,
    Receipt,
    Record,
    RecordedRefusal,
    Tombstone,
    Unknown,
)
from fencepost.reference.values import ArgumentError, Ok, Refused, StoreError, text, whole

KEY_HEADER: Final = "Idempotency-Key"
LOOPBACK: Final = "127.0.0.1"

LARGEST_BODY_BYTES: Final = 65_536
"""The longest request that is read: far more than an intent needs.

It counts the request as JSON. The parameters are a text in there: each of their quotes takes two bytes, each
letter beyond ASCII six or twelve.
"""

LONGEST_KEY_BYTES: Final = 60_000
"""The longest key that is sent, as it is encoded: no server of Python reads much longer lines."""

MALFORMED_STATUSES: Final = (400, 404, 411, 413)
"""The statuses under which a request made no sense, and nothing was done."""

STATUS_OF_REFUSAL: Final = {
    words.STALE_TOKEN: 409,
    words.IN_PROGRESS: 409,
    words.KEY_CONFLICT: 422,
    words.TOMBSTONED: 410,
    words.KEY_EXPIRED: 410,
    words.WRONG_REVISION: 412,
    words.DECLINED: 403,
}
"""The HTTP status of each refusal; the code in the body is what counts."""

KINDS: Final[dict[str, type[Receipt | Tombstone | RecordedRefusal | NotFound]]] = {
    "receipt": Receipt,
    "tombstone": Tombstone,
    "refusal": RecordedRefusal,
    "not-found": NotFound,
}
"""What an answer's value may be, by the word for it in the body."""


class MalformedError(Exception):
    """A request that no downstream could make sense of: the status to answer with, and what is wrong."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status: Final = status
        self.why: Final = why


class DownstreamServer(ThreadingHTTPServer):
    """Serves one downstream, a thread for each connection. Port 0 takes a free one: see `server_port`."""

    daemon_threads = True

    def __init__(self, downstream: Downstream, *, port: int = 0, host: str = LOOPBACK) -> None:
        self.downstream: Final = downstream
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show what broke. That a client is gone before its answer is no error of this side."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One request after the other of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = 10.0  # seconds for a client to send the rest of its request

    @property
    def _downstream(self) -> Downstream:
        return cast("DownstreamServer", self.server).downstream  # nothing else makes a handler

    def do_GET(self) -> None:
        self._answer({"/records": self._query, "/capabilities": self._capabilities})

    def do_POST(self) -> None:
        self._answer({"/effects": self._apply, "/tombstones": self._tombstone, "/fences": self._raise_fence})

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # the base class's name
        """Say nothing: answers are for clients, and standard error for what breaks."""

    def _answer(self, routes: dict[str, Callable[[], tuple[int, dict[str, Any]]]]) -> None:
        try:
            status, body = routes.get(self.path, self._nowhere)()
        except MalformedError as error:
            status, body = error.status, {"code": words.MALFORMED, "why": error.why}
        except ArgumentError as error:
            status, body = 400, {"code": words.MALFORMED, "why": str(error)}
        except StoreError as error:
            status, body = 503, {"code": "unknown", "why": str(error)}
        content = json.dumps(body).encode()
        self.close_connection = True  # one request each: no answer is ever taken for another request's
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _nowhere(self) -> tuple[int, dict[str, Any]]:
        raise MalformedError(404, f"there is no {self.command} {self.path}")

    def _capabilities(self) -> tuple[int, dict[str, Any]]:
        can = self._downstream.capabilities
        return 200, {name: getattr(can, name) for name in Capabilities.__slots__}

    def _apply(self) -> tuple[int, dict[str, Any]]:
        members = self._members(
            {
                "instance": str,
                "resource": str,
                "operation": str,
                "parameters": str,
                "fingerprint": str,
                "token": int,
            },
            {"expected_revision": int},
        )
        return _told(self._downstream.apply(EffectRequest(key=self._key(), **members)))

    def _tombstone(self) -> tuple[int, dict[str, Any]]:
        members = self._members({"fingerprint": str, "instance": str, "resource": str, "token": int}, {})
        return _told(self._downstream.tombstone(self._key(), **members))

    def _raise_fence(self) -> tuple[int, dict[str, Any]]:
        members = self._members({"instance": str, "resource": str, "token": int}, {})
        return _told(self._downstream.raise_fence(**members))

    def _query(self) -> tuple[int, dict[str, Any]]:
        return _told(self._downstream.query(self._key()))

    def _key(self) -> str:
        given = self.headers.get_all(KEY_HEADER) or []
        if len(given) != 1:
            raise MalformedError(400, f"{KEY_HEADER} is given {len(given)} times; give it once")
        quoted = given[0].strip()
        if len(quoted) < 3 or quoted[0] != '"' or quoted[-1] != '"':
            raise MalformedError(400, f'{KEY_HEADER} is {quoted}; give a string in quotes, as in "order-42"')
        try:
            return unquote(quoted[1:-1], errors="strict")
        except UnicodeDecodeError as error:
            raise MalformedError(400, f"{KEY_HEADER} {quoted} is not percent-encoded UTF-8") from error

    def _members(self, required: dict[str, type], optional: dict[str, type]) -> dict[str, Any]:
        body = self._body()
        kinds = required | optional
        for name in (*required, *body):
            if name not in body:
                raise MalformedError(400, f"the body has no {name!r}; give one")
            if name not in kinds:
                raise MalformedError(400, f"the body has {name!r}; there are {', '.join(kinds)}")
            value, kind = body[name], kinds[name]
            if isinstance(value, bool) or not isinstance(value, kind):
                raise MalformedError(400, f"{name} is {value!r}; it must be of type {kind.__name__}")
        return body

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise MalformedError(411, "the body has no Content-Length; give it in bytes")
        if len(length) > 9 or int(length) > LARGEST_BODY_BYTES:
            if len(length) <= 7:
                self.rfile.read(int(length))  # or the connection breaks before the answer is read
            raise MalformedError(413, f"the body has {length} bytes; at most {LARGEST_BODY_BYTES} are read")
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise MalformedError(400, f"the body has {len(content)} bytes, and {length} were announced")
        try:
            body = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise MalformedError(400, f"the body is no JSON: {error}") from error
        if not isinstance(body, dict):
            raise MalformedError(400, f"the body is a JSON {type(body).__name__}; send an object")
        return body


def _told(answer: Ok[Any] | Refused[Held]) -> tuple[int, dict[str, Any]]:
    """Status and body for an answer."""
    if isinstance(answer, Refused):
        return STATUS_OF_REFUSAL[answer.code], {"code": answer.code, "observed": _fields(answer.observed)}
    value = answer.value
    for word, kind in KINDS.items():
        if isinstance(value, kind):
            return 200, {"code": "ok", "kind": word, "value": _fields(value)}
    return 200, {"code": "ok", "kind": "token", "value": value}


def _fields(value: Any) -> dict[str, Any] | None:
    return None if value is None else {name: getattr(value, name) for name in value.__slots__}


class HttpDownstream:
    """The client: a downstream that is somewhere else. Each call has a connection of its own.

    `timeout_ms` bounds each wait for the network within a call. `capabilities` are what the downstream is
    known to do; without them it is asked once, now, which raises `StoreError` if there is no answer. An
    operation raises `ArgumentError` for a request that the downstream cannot make sense of, and that did
    nothing. One of more than `LARGEST_BODY_BYTES` is not even sent.
    """

    def __init__(
        self,
        port: int,
        *,
        host: str = LOOPBACK,
        timeout_ms: int = 5_000,  # far longer than a healthy downstream on this machine needs
        capabilities: Capabilities | None = None,
    ) -> None:
        self._address: Final = (host, whole("HttpDownstream", "port", port, lowest=1, highest=65_535))
        whole("HttpDownstream", "timeout_ms", timeout_ms, lowest=1)
        self._timeout_seconds: Final = timeout_ms / 1_000
        self.capabilities: Final = capabilities or self._ask_capabilities()

    def apply(self, request: EffectRequest) -> DownstreamAnswer[Receipt]:
        """Apply an effect, or give the receipt of the one that its key stands for (§6)."""
        body = {name: getattr(request, name) for name in EffectRequest.__slots__ if name != "key"}
        if request.expected_revision is None:
            del body["expected_revision"]
        return self._call("POST", "/effects", (Receipt,), key=request.key, body=body)

    def tombstone(
        self, key: str, fingerprint: str, *, instance: str, resource: str, token: int
    ) -> DownstreamAnswer[Record]:
        """Give an intent up, unless it was decided before; what its key holds from now on (§7)."""
        body = {"fingerprint": fingerprint, "instance": instance, "resource": resource, "token": token}
        kinds = (Receipt, Tombstone, RecordedRefusal)
        return self._call("POST", "/tombstones", kinds, key=key, body=body)

    def query(self, key: str) -> DownstreamAnswer[Record | NotFound]:
        """What the key holds (§7)."""
        return self._call("GET", "/records", tuple(KINDS.values()), key=key)

    def raise_fence(self, instance: str, resource: str, *, token: int) -> DownstreamAnswer[int]:
        """Record a token without any other effect (§7)."""
        body = {"instance": instance, "resource": resource, "token": token}
        return self._call("POST", "/fences", (int,), body=body)

    def _call(
        self,
        method: str,
        path: str,
        kinds: tuple[type, ...],
        *,
        key: str | None = None,
        body: dict[str, Any] | None = None,
    ) -> DownstreamAnswer[Any]:
        headers = {}
        if key is not None:
            # Printable ASCII as it is, but for what would end or change the string.
            safe = "!#$&'()*+,/:;<=>?@[]^`{|}~"
            quoted = quote(text("HttpDownstream", "key", key), safe=safe)
            _fits("key", len(quoted), LONGEST_KEY_BYTES, "give the instance and its steps shorter names")
            headers[KEY_HEADER] = f'"{quoted}"'
        content = None if body is None else json.dumps(body)  # ASCII: a character is a byte
        if content is not None:
            _fits("request", len(content), LARGEST_BODY_BYTES, "put less into the parameters or the message")
        try:
            status, answer = self._exchange(method, path, headers, content)
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            return Unknown(f"{method} {path}: {type(error).__name__}: {error}")
        try:
            return _understood(status, answer, kinds)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            return Unknown(f"{method} {path}: nobody can read the answer {status} {answer!r}")

    def _exchange(
        self, method: str, path: str, headers: dict[str, str], content: str | None
    ) -> tuple[int, Any]:
        connection = HTTPConnection(*self._address, timeout=self._timeout_seconds)
        try:
            connection.request(method, path, body=content, headers=headers)
            response = connection.getresponse()
            content_length = whole("answer", "length", response.length, highest=2 * LARGEST_BODY_BYTES)
            content_read = response.read()
            if len(content_read) != content_length:
                raise ValueError("the answer is cut off")
            return response.status, json.loads(content_read)
        finally:
            connection.close()

    def _ask_capabilities(self) -> Capabilities:
        try:
            status, answer = self._exchange("GET", "/capabilities", {}, None)
            if status == 200:
                return Capabilities(**{name: answer[name] is True for name in Capabilities.__slots__})
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"no downstream answers at {self._address}: {error}; is it started?") from error
        raise StoreError(f"what answers at {self._address} is no downstream: status {status}")


def _fits(what: str, length: int, most: int, advice: str) -> None:
    if length > most:
        raise ArgumentError(
            f"HttpDownstream: the {what} has {length:,} bytes, and at most {most:,} are read; "
            f"nothing was sent; {advice}"
        )


def _understood(status: int, answer: Any, kinds: tuple[type, ...]) -> DownstreamAnswer[Any]:
    """The answer that status and body together are; raises what a wrong shape makes Python raise."""
    code = answer["code"]
    if status == 200 and code == "ok":
        value = answer["value"]
        if answer["kind"] != "token":
            made: Any = KINDS[answer["kind"]](**value)
            if isinstance(made, kinds):
                return Ok(made)
        elif int in kinds and isinstance(value, int):
            return Ok(value)
        raise ValueError
    if code == words.MALFORMED and status in MALFORMED_STATUSES:
        raise ArgumentError(f"the downstream cannot make sense of the request: {answer['why']}")
    if STATUS_OF_REFUSAL[code] != status:
        raise ValueError
    observed = answer["observed"]
    return Refused(code, None if observed is None else Held(**observed))


def main(arguments: list[str] | None = None, *, decline: Decline | None = None) -> None:
    """Serve a downstream until told to end. The arguments are those of the command line.

    `decline` is its business, as in `open_downstream`; there is no option for it.
    """
    import argparse
    import os
    import signal
    import stat
    import threading
    import time

    from fencepost.reference.database import SYNCHRONOUS
    from fencepost.reference.downstream import open_downstream
    from fencepost.reference.downstream_broken import BROKEN_DOWNSTREAMS
    from fencepost.reference.downstream_sql import DOWNSTREAM_STATEMENTS

    parser = argparse.ArgumentParser(prog="fencepost.reference.downstream_http")
    parser.add_argument("--database", required=True, help="the file of the ledger; made if there is none")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    for name, default in (("fenced", True), ("keyed", True), ("queryable", True), ("revisioned", False)):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=default)
    parser.add_argument("--synchronous", choices=SYNCHRONOUS, default="FULL", help="SQLite's level")
    parser.add_argument("--broken", choices=BROKEN_DOWNSTREAMS, help="serve one with something wrong")
    options = parser.parse_args(arguments)
    with open_downstream(
        options.database,
        clock_ms=lambda: time.time_ns() // 1_000_000,
        fenced=options.fenced,
        keyed=options.keyed,
        queryable=options.queryable,
        revisioned=options.revisioned,
        decline=decline,
        synchronous=options.synchronous,
        statements=BROKEN_DOWNSTREAMS[options.broken] if options.broken else DOWNSTREAM_STATEMENTS,
    ) as downstream:
        server = DownstreamServer(downstream, port=options.port)

        def end(*_: object) -> None:
            threading.Thread(target=server.shutdown, daemon=True).start()  # not from within serve_forever

        def end_with_standard_input() -> None:
            while os.read(0, 4096):  # not through sys.stdin, whose lock would be missed at the very end
                pass
            end()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        if sys.stdin is not None and stat.S_ISFIFO(os.fstat(0).st_mode):
            threading.Thread(target=end_with_standard_input, daemon=True).start()
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        with server:
            server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
