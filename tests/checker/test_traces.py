"""Traces are concrete, portable, and never replayed in silence on a changed model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.explain import false_parts
from fencepost.checker.explore import check, replayed
from fencepost.checker.fingerprints import canonical
from fencepost.checker.subject import Subject
from fencepost.checker.traces import FORMAT, ReplayError, Trace, _digest, from_json, read, replay, table
from fencepost.model import Counter
from fencepost.model import terms as t


def sealed(data: Any) -> Any:
    """Altered data with the digest that fits them: what a forger would write."""
    data["digest"] = _digest({k: v for k, v in data.items() if k != "digest"})
    return data


def places_in(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every value inside plain data, as what holds it and its key."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from places_in(data[key])


STRANGE = (None, True, 5, -1, 2.5, 10**7, "x", "a\nb", [], {}, [1], ["a"], {"worker": 0}, {"a": {"b": 1}})


@pytest.fixture(scope="module")
def broken() -> Subject:
    """The lock that can be taken while it is held."""
    return Subject(lock(broken=True), lock_claims(), variant="broken", unbroken=lock())


@pytest.fixture(scope="module")
def trace(broken: Subject) -> Trace:
    """A shortest run that breaks ONE."""
    found = check(broken, scope="two", claims=["ONE"]).of("ONE").trace
    assert found is not None
    return found


def test_a_saved_trace_is_read_back_as_it_was(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path)
    assert read(trace.token, tmp_path).as_json() == trace.as_json()
    assert read(str(path)).as_json() == trace.as_json()


def test_the_same_run_has_the_same_token(broken: Subject, trace: Trace) -> None:
    again = check(broken, scope="two", claims=["ONE"]).of("ONE").trace
    assert again is not None
    assert again.token == trace.token


def test_a_replay_still_breaks_the_claim_on_the_broken_model(broken: Subject, trace: Trace) -> None:
    assert replayed(trace, broken)


def test_a_replay_on_a_mended_model_is_reported_with_its_step(trace: Trace) -> None:
    with pytest.raises(
        ReplayError, match=r"step 2, take\(w2\): the model says disabled here; the model has changed"
    ):
        list(replay(trace, lock()))


def test_a_damaged_file_is_no_trace(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ReplayError, match="damaged"):
        read(str(path))
    path.write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(ReplayError, match="no trace"):
        read(str(path))
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(ReplayError, match="another version"):
        read(str(path))


def test_an_unknown_token_is_answered_with_those_that_exist(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path)
    with pytest.raises(ReplayError, match=trace.token):
        read("nonesuch", tmp_path)


def test_a_changed_value_in_a_saved_state_is_reported(broken: Subject, trace: Trace, tmp_path: Path) -> None:
    data = trace.as_json()
    data["steps"][0]["changes"]["ticket"] = 2
    sealed(data)
    path = tmp_path / "t.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ReplayError, match="ticket differ"):
        list(replay(read(str(path)), broken.protocol))


def test_the_table_has_a_column_per_changed_cell_and_marks_changes(broken: Subject, trace: Trace) -> None:
    assert table(trace, broken.protocol) == [
        "step         inside[w1]  inside[w2]  held_by  ticket",
        "0  start             no          no        -       0",
        "1  take(w1)         yes*         no       w1*      1*",
        "2  take(w2)         yes         yes*      w2*      2*",
    ]


def test_a_narrow_table_is_split_and_loses_nothing(broken: Subject, trace: Trace) -> None:
    lines = table(trace, broken.protocol, width=34)
    assert max(len(x) for x in lines) <= 34
    text = "\n".join(lines)
    assert all(name in text for name in ("held_by", "ticket", "inside[w1]", "inside[w2]"))


def test_the_explanation_names_the_false_part_and_what_the_unbroken_model_says(trace: Trace) -> None:
    text = " ".join(trace.explanation)
    assert "inside[w1]" in text
    assert "in the unbroken model take(w2) is not possible here" in text


def test_any_altered_value_is_told_from_what_was_saved(trace: Trace) -> None:
    whole = trace.as_json()
    for place in range(len(list(places_in(whole)))):
        for strange in STRANGE:
            data = deepcopy(whole)
            holder, key = list(places_in(data))[place]
            if type(holder[key]) is type(strange) and holder[key] == strange:
                continue
            holder[key] = strange
            with pytest.raises(ReplayError):
                from_json(data, "it")


def test_a_value_of_a_wrong_type_is_named_even_where_the_digest_fits(trace: Trace) -> None:
    whole = trace.as_json()
    for place in range(len(list(places_in(whole)))):
        for strange in STRANGE:
            data = deepcopy(whole)
            holder, key = list(places_in(data))[place]
            if type(holder[key]) is type(strange):
                continue
            holder[key] = strange
            with pytest.raises(ReplayError, match=r"is no trace|is damaged"):
                from_json(sealed(data) if key != "digest" else data, "it")


@pytest.mark.parametrize("key", ["format", "scope", "initial", "steps", "claim", "source", "digest"])
def test_a_missing_part_is_named(trace: Trace, key: str) -> None:
    data = trace.as_json()
    del data[key]
    with pytest.raises(ReplayError, match=f"it has no '{key}'"):
        from_json(data, "it")


def test_a_trace_whose_steps_were_taken_out_or_doubled_is_damaged(trace: Trace) -> None:
    for steps in ([], trace.as_json()["steps"][:-1], trace.as_json()["steps"] * 2):
        with pytest.raises(ReplayError, match="is damaged"):
            from_json({**trace.as_json(), "steps": steps}, "it")


@pytest.mark.parametrize(
    ("table", "name", "number"),
    [
        ("sizes", "worker", 65),
        ("sizes", "worker", 0),
        ("bounds", "ticket", 10**6 + 1),
        ("bounds", "ticket", -1),
    ],
)
def test_a_scope_beyond_the_limits_is_refused_before_it_is_laid_out(
    trace: Trace, table: str, name: str, number: int
) -> None:
    data = trace.as_json()
    data["scope"][table][name] = number
    with pytest.raises(ReplayError, match=f"{name}={number} is no {table[:-1]} from"):
        from_json(sealed(data), "it")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"[1]", b"null", b'"text"', b"", b"\x00"]
)
def test_a_file_that_holds_anything_else_is_a_replay_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(ReplayError):
        read(str(path))


def test_a_store_that_is_a_file_and_a_name_that_no_file_can_have_are_replay_errors(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_text("")
    for token in ("nonesuch", "x" * 5000, "a\0b"):
        with pytest.raises(ReplayError, match="no trace"):
            read(token, store)


READ_BEFORE = """
import sys
from fencepost.checker.fingerprints import fingerprint
from fencepost.checker.subject import BUILT_IN
from fencepost.model.trace import trace_action
for name, built_in in BUILT_IN.items():
    actions = list(built_in.protocol.actions.values())
    for action in {"": [], "forwards": actions, "backwards": actions[::-1]}[sys.argv[1]]:
        trace_action(built_in.protocol, action, next(iter(built_in.protocol.scopes.values())))
    print(name, fingerprint(built_in.protocol))
"""


def test_what_was_read_before_does_not_change_the_fingerprint_of_a_model() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", READ_BEFORE, order], capture_output=True, text=True, check=True
        ).stdout
        for order in ("", "forwards", "backwards")
    }
    assert len(said) == 1


@pytest.mark.parametrize("swapped", [False, True])
def test_an_equality_is_the_same_whichever_operand_was_made_first(*, swapped: bool) -> None:
    number, name = Counter("number"), f"of {swapped}"
    made = [t.variable(f"{x} {name}", number) for x in ("ba" if swapped else "ab")]
    a, b = sorted(made, key=t.show)
    one = canonical(t.eq(a, t.add(b, t.integer(1))))
    other = canonical(t.eq(t.add(a, t.integer(-1)), b))

    assert one == other
    assert one != canonical(t.eq(t.add(a, t.integer(1)), b))
    assert one != canonical(t.eq(a, b))


@pytest.mark.parametrize("swapped", [False, True])
def test_why_a_claim_is_false_is_told_alike_whichever_operand_was_made_first(*, swapped: bool) -> None:
    number, name = Counter("number"), f"told {swapped}"
    made = [t.variable(f"{x} {name}", number) for x in ("ba" if swapped else "ab")]
    a, b = sorted(made, key=t.show)
    values = {f"a {name}": 1, f"b {name}": 2}

    assert t.show(t.eq(b, a)) == f"(a {name} == b {name})"
    assert false_parts(t.eq(b, a), values) == [f"a {name} (1) is not b {name} (2)"]
