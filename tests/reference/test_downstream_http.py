"""The downstream over HTTP: the same answers as by a call, and never a refusal that nobody gave (§2, §7)."""

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    ArgumentError,
    Capabilities,
    Downstream,
    EffectRequest,
    Ended,
    NotFound,
    Owner,
    StepStatus,
    StoreError,
    Tombstone,
    Unknown,
    observe_downstream,
    open_downstream,
    open_store,
    run_once,
)
from fencepost.reference.downstream_http import (
    LARGEST_BODY_BYTES,
    LONGEST_KEY_BYTES,
    STATUS_OF_REFUSAL,
    DownstreamServer,
    HttpDownstream,
)
from fencepost.reference.downstream_values import PRECEDENCE

from .serving import served
from .support import FINGERPRINT, LEASE_MS, Clock, code, ok, request
from .worlds import STEPS

KEY = request().key
HERE = {"instance": "order-1", "resource": "payment"}
EVERYTHING = Capabilities(fenced=True, keyed=True, queryable=True, revisioned=False)


@contextmanager
def serving(downstream: Downstream) -> Iterator[int]:
    """Serve a downstream of this process, in a thread; its port."""
    with DownstreamServer(downstream) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def port(downstream: Downstream) -> Iterator[int]:
    with serving(downstream) as found:
        yield found


@pytest.fixture
def client(port: int) -> HttpDownstream:
    return HttpDownstream(port, timeout_ms=60_000)


# Answers.


Calls = dict[str, Callable[[Any], Any]]

CALLS: Calls = {
    "applied": lambda d: d.apply(request()),
    "deduplicated": lambda d: d.apply(request(token=2)),
    "conflict": lambda d: d.apply(request(token=2, fingerprint="another")),
    "stale": lambda d: d.apply(request(token=1, key="other")),
    "raised": lambda d: d.raise_fence(**HERE, token=3),
    "stale fence": lambda d: d.raise_fence(**HERE, token=2),
    "found": lambda d: d.query(KEY),
    "not found": lambda d: d.query("never seen"),
    "given up": lambda d: d.tombstone("gone", FINGERPRINT, **HERE, token=3),
    "tombstoned": lambda d: d.apply(request(token=3, key="gone")),
    "tombstone": lambda d: d.query("gone"),
    "too late": lambda d: d.tombstone(KEY, FINGERPRINT, **HERE, token=3),
    "declined": lambda d: d.apply(request(token=3, key="much", parameters='{"cents":900}')),
    "recorded": lambda d: d.query("much"),
    "wrong revision": lambda d: d.apply(request(token=3, key="late", expected_revision=7)),
    "right revision": lambda d: d.apply(request(token=3, key="next", expected_revision=1)),
    "odd key": lambda d: d.apply(request(token=3, key='é "quoted" % %41 \n\t \\ ;,=')),
    "found odd key": lambda d: d.query('é "quoted" % %41 \n\t \\ ;,='),
    "not that key": lambda d: d.query("é %22quoted%22"),
}


def too_much(request: EffectRequest) -> str | None:
    return "above the limit" if "9" in request.parameters else None


def test_the_answers_are_those_of_a_call(tmp_path: Path, clock: Clock) -> None:
    def opened(name: str) -> Downstream:
        return open_downstream(
            tmp_path / name, clock_ms=clock, synchronous="OFF", revisioned=True, decline=too_much
        )

    with opened("direct.db") as direct, opened("served.db") as behind, serving(behind) as port:
        client = HttpDownstream(port, timeout_ms=60_000)
        assert client.capabilities == direct.capabilities
        for name, call in CALLS.items():
            assert call(client) == call(direct), name
        clock.now_ms += 1
        assert direct.expire_records(before_ms=clock.now_ms) == behind.expire_records(before_ms=clock.now_ms)
        for call in (CALLS["found"], CALLS["deduplicated"]):
            assert code(call(client)) in ("key-expired", "stale-token")
            assert call(client) == call(direct)
    assert observe_downstream(tmp_path / "direct.db") == observe_downstream(tmp_path / "served.db")


def test_every_refusal_has_a_status() -> None:
    assert {one for order in PRECEDENCE.values() for one in order} == set(STATUS_OF_REFUSAL)
    assert STATUS_OF_REFUSAL["key-conflict"] == 422
    assert STATUS_OF_REFUSAL["in-progress"] == 409


def test_a_key_that_is_being_decided_is_in_progress(ledger: Path, clock: Clock) -> None:
    deciding, decided = threading.Event(), threading.Event()

    def slowly(_: EffectRequest) -> None:
        deciding.set()
        assert decided.wait(60)

    with (
        open_downstream(ledger, clock_ms=clock, decline=slowly) as downstream,
        serving(downstream) as port,
    ):
        client = HttpDownstream(port, timeout_ms=60_000, capabilities=EVERYTHING)
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(client.apply(request())))
        thread.start()
        assert deciding.wait(60)
        assert code(client.apply(request())) == "in-progress"
        decided.set()
        thread.join()
        assert ok(answers[0]) == ok(client.apply(request()))


# Requests that make no sense.


def raw(
    port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


QUOTED = {"Idempotency-Key": '"k"'}
GOOD = {
    "instance": "order-1",
    "resource": "payment",
    "operation": "charge",
    "parameters": "{}",
    "fingerprint": "f",
    "token": 1,
}


def body(**changes: Any) -> bytes:
    return json.dumps({name: value for name, value in (GOOD | changes).items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "status", "why"),
    [
        ("POST", "/effects", body(), {}, 400, "Idempotency-Key is given 0 times"),
        ("POST", "/effects", body(), {"Idempotency-Key": "k"}, 400, "give a string in quotes"),
        ("POST", "/effects", body(), {"Idempotency-Key": '""'}, 400, "give a string in quotes"),
        ("POST", "/effects", body(), {"Idempotency-Key": '"%ff"'}, 400, "not percent-encoded UTF-8"),
        ("POST", "/effects", b"{", QUOTED, 400, "is no JSON"),
        ("POST", "/effects", b"\xff", QUOTED, 400, "is no JSON"),
        ("POST", "/effects", b"[" * 60_000, QUOTED, 400, "is no JSON"),
        ("POST", "/effects", b"[]", QUOTED, 400, "is a JSON list; send an object"),
        ("POST", "/effects", body(token=...), QUOTED, 400, "has no 'token'"),
        ("POST", "/effects", body(tokens=1), QUOTED, 400, "has 'tokens'; there are"),
        ("POST", "/effects", body(token=[]), QUOTED, 400, "token is []; it must be of type int"),
        ("POST", "/effects", body(token=True), QUOTED, 400, "token is True; it must be of type int"),
        ("POST", "/effects", body(token=-1), QUOTED, 400, "token is -1"),
        ("POST", "/effects", body(token=2**63), QUOTED, 400, "token is 9223372036854775808"),
        ("POST", "/effects", body(resource=""), QUOTED, 400, "resource is empty"),
        ("POST", "/effects", body(resource="\ud800"), QUOTED, 400, "not valid Unicode"),
        ("POST", "/effects", body(expected_revision=None), QUOTED, 400, "expected_revision is None"),
        ("POST", "/effects", b"x" * (LARGEST_BODY_BYTES + 1), QUOTED, 413, "at most 65536 are read"),
        ("POST", "/effects", None, QUOTED | {"Content-Length": "-1"}, 411, "no Content-Length"),
        ("POST", "/effects", None, QUOTED | {"Content-Length": "9" * 30}, 413, "at most 65536 are read"),
        ("POST", "/records", body(), QUOTED, 404, "there is no POST /records"),
        ("GET", "/effects", None, QUOTED, 404, "there is no GET /effects"),
        ("GET", "/records", None, {}, 400, "is given 0 times"),
        ("POST", "/fences", b"{}", {}, 400, "has no 'instance'"),
        ("POST", "/tombstones", b"{}", QUOTED, 400, "has no 'fingerprint'"),
    ],
)
def test_a_malformed_request_is_told_so_and_changes_nothing(
    method: str,
    path: str,
    content: bytes | None,
    headers: dict[str, str],
    status: int,
    why: str,
    port: int,
    ledger: Path,
) -> None:
    found, answer = raw(port, method, path, content, headers)
    assert (found, answer["code"]) == (status, "malformed")
    assert why in answer["why"]
    assert observe_downstream(ledger).records == ()


def test_what_the_class_cannot_do_is_an_error_of_the_caller(ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, keyed=False) as downstream, serving(downstream) as port:
        client = HttpDownstream(port, timeout_ms=60_000)
        assert not client.capabilities.keyed
        with pytest.raises(ArgumentError, match="only a keyed downstream can do this"):
            client.tombstone(KEY, FINGERPRINT, **HERE, token=1)


def test_a_ledger_that_is_locked_is_an_unknown_answer(ledger: Path, clock: Clock) -> None:
    import sqlite3

    with (
        open_downstream(ledger, clock_ms=clock, busy_timeout_ms=1) as downstream,
        serving(downstream) as port,
        closing(sqlite3.connect(ledger, isolation_level=None)) as other,
    ):
        client = HttpDownstream(port, timeout_ms=60_000)
        other.execute("begin immediate")
        assert isinstance(client.apply(request()), Unknown)
        other.execute("rollback")
        ok(client.apply(request()))


LONG: Calls = {
    "parameters": lambda d: d.apply(request(parameters="x" * LARGEST_BODY_BYTES)),
    "letters": lambda d: d.apply(request(parameters="é" * (LARGEST_BODY_BYTES // 6))),
    "fence": lambda d: d.raise_fence("order-1", "x" * LARGEST_BODY_BYTES, token=1),
    "tombstone": lambda d: d.tombstone(KEY, "x" * LARGEST_BODY_BYTES, **HERE, token=1),
    "key": lambda d: d.query("x" * (LONGEST_KEY_BYTES + 1)),
    "letters of a key": lambda d: d.apply(request(key="é" * (LONGEST_KEY_BYTES // 6 + 1))),
}


@pytest.mark.parametrize("call", LONG.values(), ids=LONG)
def test_what_is_longer_than_is_read_is_not_even_sent(call: Callable[[Any], Any]) -> None:
    """Nobody listens: whoever sends anything gets no answer."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    client = HttpDownstream(port, capabilities=EVERYTHING)
    assert isinstance(client.query(KEY), Unknown)
    with pytest.raises(ArgumentError, match=r"has \d\d,\d\d\d bytes, and at most .* nothing was sent; "):
        call(client)


def test_the_longest_that_may_be_sent_is_read(client: HttpDownstream) -> None:
    around = len(body(parameters="", instance="order-1", fingerprint=FINGERPRINT))
    ok(client.apply(request(parameters="x" * (LARGEST_BODY_BYTES - around))))
    ok(client.apply(request(key="x" * LONGEST_KEY_BYTES)))
    with pytest.raises(ArgumentError):
        client.apply(request(key="one more", parameters="x" * (LARGEST_BODY_BYTES - around + 1)))


@pytest.mark.parametrize("status", [400, 404, 411, 413])
def test_a_server_that_makes_no_sense_of_a_request_did_nothing(status: int) -> None:
    with answering(response(status, b'{"code": "malformed", "why": "too long"}')) as port:
        client = HttpDownstream(port, timeout_ms=60_000, capabilities=EVERYTHING)
        with pytest.raises(ArgumentError, match="too long"):
            client.apply(request())


@pytest.mark.parametrize("decline", [lambda _: "", lambda _: 1 / 0], ids=["nothing", "raises"])
def test_a_broken_business_is_an_unknown_answer(decline: Any, ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, decline=decline) as downstream, serving(downstream) as port:
        client = HttpDownstream(port, timeout_ms=60_000)
        before = observe_downstream(ledger)
        answer = client.apply(request())
        assert isinstance(answer, Unknown)
        assert "decline" in answer.why
        assert observe_downstream(ledger) == before


# Answers that are none.


@contextmanager
def answering(content: bytes | None) -> Iterator[int]:
    """A server that answers each connection with these bytes, then closes it; with None it never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        ended = threading.Event()

        def serve() -> None:
            while True:
                connection, _ = listening.accept()
                with closing(connection):
                    if ended.is_set():
                        return
                    connection.recv(65_536)
                    if content is None:
                        ended.wait(60)
                    else:
                        connection.sendall(content)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield port
        finally:
            ended.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join()


def response(status: int, content: bytes, *, length: int | None = None) -> bytes:
    announced = len(content) if length is None else length
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, announced, content)


REFUSAL = b'{"code": "stale-token", "observed": null}'

NO_ANSWERS = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "head only": b"HTTP/1.1 409 Conflict\r\n",
    "cut off": response(409, REFUSAL[:-9], length=len(REFUSAL)),
    "cut off within a number": response(200, b'{"code": "ok", "kind": "token", "value": 1', length=50),
    "without a length": b"HTTP/1.1 409 Conflict\r\n\r\n" + REFUSAL,
    "of a proxy": response(409, b"<html>Conflict</html>"),
    "gateway timeout": response(504, b'{"code": "unknown", "why": "upstream"}'),
    "another status": response(200, REFUSAL),
    "a code nobody knows": response(409, b'{"code": "no", "observed": null}'),
    "no code": response(409, b"{}"),
    "malformed, but done": response(200, b'{"code": "malformed", "why": "?"}'),
    "malformed, from a gateway": response(502, b'{"code": "malformed", "why": "?"}'),
    "no object": response(409, b"[]"),
    "ok for something else": response(200, b'{"code": "ok", "kind": "not-found", "value": {"key": "k"}}'),
    "a receipt without members": response(200, b'{"code": "ok", "kind": "receipt", "value": {}}'),
    "a token for a receipt": response(200, b'{"code": "ok", "kind": "token", "value": 1}'),
    "deep": response(200, b"[" * 50_000),
    "long": response(200, b" " * (3 * LARGEST_BODY_BYTES) + b"{}"),
}


@pytest.mark.parametrize("content", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_complete_answer_is_unknown_never_a_refusal(content: bytes) -> None:
    with answering(content) as port:
        client = HttpDownstream(port, timeout_ms=60_000, capabilities=EVERYTHING)
        assert isinstance(client.apply(request()), Unknown)


def test_the_answer_that_these_vary_is_a_refusal() -> None:
    with answering(response(409, REFUSAL)) as port:
        client = HttpDownstream(port, timeout_ms=60_000, capabilities=EVERYTHING)
        assert code(client.apply(request())) == "stale-token"


def test_a_timeout_is_unknown() -> None:
    with answering(None) as port:
        client = HttpDownstream(port, timeout_ms=50, capabilities=EVERYTHING)
        answer = client.apply(request())
        assert isinstance(answer, Unknown)
        assert "TimeoutError" in answer.why


def test_where_nobody_listens_the_answer_is_unknown_and_capabilities_are_an_error() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    client = HttpDownstream(port, capabilities=EVERYTHING)
    for answer in (
        client.apply(request()),
        client.query(KEY),
        client.raise_fence(**HERE, token=1),
        client.tombstone(KEY, FINGERPRINT, **HERE, token=1),
    ):
        assert isinstance(answer, Unknown)
    with pytest.raises(StoreError, match="is it started"):
        HttpDownstream(port)
    with answering(response(404, b"{}")) as port, pytest.raises(StoreError, match="is no downstream"):
        HttpDownstream(port)


# The process.


def test_a_killed_and_restarted_process_gives_the_same_answers(ledger: Path) -> None:
    with served(ledger, "--revisioned") as server:
        client = HttpDownstream(server.port, timeout_ms=60_000)
        first = [
            client.apply(request(token=3)),
            client.apply(request(token=3, key="late", expected_revision=7)),
            client.tombstone("gone", FINGERPRINT, **HERE, token=3),
        ]
        server.kill()
        assert isinstance(client.query(KEY), Unknown)
    with served(ledger, "--revisioned") as server:
        client = HttpDownstream(server.port, timeout_ms=60_000)
        assert client.apply(request(token=3)) == first[0]
        assert code(client.apply(request(token=3, key="late", expected_revision=7))) == code(first[1])
        assert client.tombstone("gone", FINGERPRINT, **HERE, token=3) == first[2]
        assert client.query("gone").value == Tombstone("gone", FINGERPRINT)  # type: ignore[union-attr]
        assert code(client.apply(request(token=3, key="gone"))) == "tombstoned"
        assert code(client.apply(request(token=2, key="other"))) == "stale-token"
        assert ok(client.query("other")) == NotFound("other")
    assert len(observe_downstream(ledger).effects) == 1


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "standard input"])
def test_the_process_ends_when_it_is_told_to(how: str, ledger: Path) -> None:
    with served(ledger) as server:
        ok(HttpDownstream(server.port, timeout_ms=60_000).apply(request()))
        if how == "standard input":
            assert server.process.stdin is not None
            server.process.stdin.close()
        else:
            server.process.send_signal(getattr(signal, how))
        assert server.process.wait(60) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_the_process_serves_the_class_it_is_told(ledger: Path) -> None:
    with served(ledger, "--no-keyed", "--no-fenced", "--revisioned") as server:
        assert HttpDownstream(server.port, timeout_ms=60_000).capabilities == Capabilities(
            fenced=False, keyed=False, queryable=True, revisioned=True
        )


def test_the_process_serves_what_is_broken_if_it_is_told_to(ledger: Path) -> None:
    for _ in range(2):
        with served(ledger, "--broken", "record-in-memory", "--synchronous", "OFF") as server:
            ok(HttpDownstream(server.port, timeout_ms=60_000).apply(request()))
            ok(HttpDownstream(server.port, timeout_ms=60_000).apply(request()))
    assert len(observe_downstream(ledger).effects) == 2  # one for each process, which forgot


def test_a_client_that_is_gone_is_no_error_of_the_server(
    downstream: Downstream, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its answer is written to a connection that nobody has any more; only what breaks is shown."""
    with DownstreamServer(downstream) as server:
        for error in (BrokenPipeError(), ConnectionResetError(), ValueError("broken")):
            try:
                raise error
            except (OSError, ValueError):
                server.handle_error(None, ("127.0.0.1", 1))
    shown = capfd.readouterr().err
    assert "ValueError: broken" in shown
    assert "BrokenPipeError" not in shown
    assert "ConnectionResetError" not in shown


def test_a_worker_whose_downstream_dies_leaves_it_to_the_next(path: Path, ledger: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock, synchronous="OFF") as store:
        ok(store.create("order-1"))

        def run(owner: str, server: Any, at: Callable[[str], None] = lambda _: None) -> Ended:
            client = HttpDownstream(server.port, timeout_ms=60_000, capabilities=EVERYTHING)
            worker = Owner(owner, 0)
            ran = run_once(
                store, client, worker, "order-1", STEPS, lease_ms=LEASE_MS, monotonic_ms=clock, at=at
            )
            return ran.ended

        with served(ledger) as server:
            assert (
                run("ada", server, lambda name: server.kill() if name == "sending" else None) == "undecided"
            )
        assert ok(store.read("order-1")).steps[0].status is StepStatus.RUNNING
        with served(ledger) as server:
            assert run("bob", server) == Ended.FINISHED
    assert len(observe_downstream(ledger).effects) == 2


def test_importing_the_reference_loads_no_web_server() -> None:
    import subprocess
    import sys

    from .serving import ENVIRONMENT

    program = "import sys, fencepost.reference; print([m for m in sys.modules if m.startswith('http')])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
