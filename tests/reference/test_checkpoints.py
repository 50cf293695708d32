"""Checkpoints (§14): whatever becomes of one, it is found out, and never read as none."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.reference import (
    BadCheckpointError,
    Checkpoints,
    Definition,
    Intent,
    Problem,
    Row,
    StepRow,
    StepStatus,
    Stored,
)
from fencepost.reference.checkpoint import CHECKS, FORMAT, MEMBERS, content_of, steps_of
from fencepost.reference.values import ArgumentError

from .checkpoints import KEY, rehashed
from .support import BOB, intent

KEYED = Checkpoints(mac_key=KEY)
PLAIN = Checkpoints()


def step(name: str = "charge", **changes: Any) -> StepRow:
    whole: dict[str, Any] = {field.name: None for field in fields(StepRow)} | {
        "instance": "order-1",
        "step": name,
        "status": StepStatus.SUCCEEDED,
        "attempt": 1,
        "intent": intent(),
        "intent_lease_version": 1,
        "receipt": "receipt-1",
        "state_version": 4,
        "depends_on": (),
        "needs_approval": False,
        "attested": False,
        "undo_attempt": 0,
        "succeeded_at_version": 4,
    }
    return StepRow(**(whole | changes))


ROW = Row(
    instance="order-1",
    owner=BOB,
    lease_version=3,
    expires_at_ms=2_000,
    state_version=4,
    status="running",
    steps=(step(), step("ship", status=StepStatus.PENDING, intent=None, depends_on=("charge",))),
    definition=Definition("order", "code-1"),
)


def stored(checkpoint: bytes | None, row: Row = ROW, lease_version: int = 2) -> Stored:
    """What bob finds, whose lease is version 3: the commit that made his row was made under 2."""
    return Stored(row, lease_version, checkpoint)


def sealed(kept: Checkpoints = KEYED, row: Row = ROW, lease_version: int = 2) -> bytes:
    return kept.sealed(row, lease_version=lease_version)


def problem(kept: Checkpoints, found: Stored) -> BadCheckpointError:
    with pytest.raises(BadCheckpointError) as caught:
        kept.check(found)
    assert found.row.instance in str(caught.value)
    return caught.value


# What is sound.


@pytest.mark.parametrize("kept", [KEYED, PLAIN], ids=["keyed", "plain"])
def test_a_checkpoint_that_nobody_touched_is_sound_under_a_newer_lease(kept: Checkpoints) -> None:
    found = kept.check(stored(sealed(kept)))
    assert found is not None
    assert (found.format, found.instance, found.lease_version, found.state_version) == (1, "order-1", 2, 4)
    assert found.definition == ROW.definition
    assert found.content == content_of(ROW)
    assert steps_of(found) == ROW.steps
    assert (found.mac is None) == (kept is PLAIN)


def test_the_oracle_of_these_tests_writes_the_same_bytes() -> None:
    assert rehashed(sealed(), KEY) == sealed()
    assert rehashed(sealed(PLAIN)) == sealed(PLAIN)


def test_a_worker_without_the_key_reads_what_one_with_it_wrote() -> None:
    assert PLAIN.check(stored(sealed(KEYED))) is not None


def test_there_is_no_checkpoint_only_before_the_first_commit() -> None:
    assert KEYED.check(stored(None, replace(ROW, state_version=0), 0)) is None
    error = problem(KEYED, stored(None))
    assert (error.problem, error.field) == (Problem.LOST, None)
    assert str(error) == (
        "the checkpoint of 'order-1' is lost: state version 4 stands, and every commit writes one; if "
        "workers without checkpoints have run it, give them checkpoints too; compare the steps with what "
        "happened, and say that they are right with Store.vouch"
    )


def test_names_that_only_look_alike_are_told_apart() -> None:
    """Composed and decomposed: one text to a reader, two names to the store."""
    row = replace(ROW, instance="caf\u00e9")
    data = sealed(row=row)
    assert data.isascii()
    assert KEYED.check(stored(data, row)) is not None
    assert problem(KEYED, stored(data, replace(ROW, instance="cafe\u0301"))).problem is Problem.OTHER_INSTANCE


def test_what_a_checkpoint_holds_of_a_step_belongs_to_its_format() -> None:
    """Whoever adds a field raises the format version, and lists the names here."""
    names = (
        "instance step status attempt intent intent_lease_version unwinding receipt evidence former_evidence "
        "reason from_status state_version depends_on needs_approval approval_fingerprint "
        "approval_deadline_at_ms approved_by deadline_at_ms most_attempts timer_at_ms error_class result "
        "succeeded_at_version attested undo undo_lease_version undo_receipt undo_attempt"
    )
    assert [field.name for field in fields(StepRow)] == names.split()
    names = "intent_version key fingerprint resource operation parameters expected_revision compensation"
    assert [field.name for field in fields(Intent)] == names.split()
    assert FORMAT == 1


# Accidents.


@pytest.mark.parametrize("kept", [KEYED, PLAIN], ids=["keyed", "plain"])
def test_a_checkpoint_cut_short_anywhere_is_called_truncated(kept: Checkpoints) -> None:
    data = sealed(kept)
    for length in range(len(data)):
        error = problem(kept, stored(data[:length]))
        assert error.problem is Problem.TRUNCATED, (length, error)
        assert f"is cut short, after {length} bytes" in str(error)


@pytest.mark.parametrize("kept", [KEYED, PLAIN], ids=["keyed", "plain"])
def test_every_flipped_bit_of_every_byte_is_found(kept: Checkpoints) -> None:
    row = replace(ROW, steps=ROW.steps[1:])
    data = sealed(kept, row)
    seen = set()
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            seen.add(problem(kept, stored(bytes(changed), row)).problem)
    assert seen == {Problem.DAMAGED, Problem.TRUNCATED, Problem.HASH_DIFFERS, Problem.OTHER_FORMAT}


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    position=st.integers(0), byte=st.integers(0, 255), cut=st.integers(0, 40), inserted=st.binary(max_size=8)
)
def test_any_other_bytes_are_found(position: int, byte: int, cut: int, inserted: bytes) -> None:
    data = sealed()
    at = position % (len(data) + 1)
    changed = data[:at] + inserted + data[at + cut :]
    changed = changed[:at] + bytes([byte]) + changed[at + 1 :]
    if changed != data:
        problem(KEYED, stored(changed))


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(data=st.binary(max_size=60))
def test_what_is_no_checkpoint_at_all_is_never_taken_for_none(data: bytes) -> None:
    assert problem(PLAIN, stored(data)).problem in (Problem.DAMAGED, Problem.TRUNCATED)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is cut short, after 0 bytes"),
        (b"null", "is no JSON object"),
        (b"[]", "is no JSON object"),
        (b"{}", "it has no format"),
        (b'{"format":NaN}', "is no JSON in ASCII"),
        (b"[" * 100_000 + b"]" * 100_000, "is no JSON in ASCII"),
        (b"1" * 10_000, "is no JSON in ASCII"),
        (b"\xff", "is no JSON in ASCII"),
    ],
    ids=range(8),
)
def test_the_message_says_what_is_no_checkpoint(data: bytes, what: str) -> None:
    assert what in str(problem(KEYED, stored(data)))


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_that_is_missing_or_of_another_kind_is_named(name: str) -> None:
    members = json.loads(sealed())
    without = {each: value for each, value in members.items() if each != name}
    for wrong in (without, {**members, name: True}):
        data = json.dumps(wrong, sort_keys=True, separators=(",", ":")).encode()
        error = problem(KEYED, stored(data))
        assert (error.problem, error.field) == (Problem.DAMAGED, name)
        assert f" {name}" in str(error)


def test_a_member_more_is_named() -> None:
    error = problem(KEYED, stored(rehashed(sealed(), KEY, extra=1)))
    assert (error.problem, error.field) == (Problem.DAMAGED, "extra")


def test_the_same_members_in_another_form_are_damage() -> None:
    blank = sealed().replace(b",", b", ", 1)
    assert json.loads(blank) == json.loads(sealed())
    assert problem(KEYED, stored(blank)).problem is Problem.DAMAGED


@pytest.mark.parametrize(
    "name", ["instance", "lease_version", "state_version", "definition", "content", "mac"]
)
def test_damage_in_each_field_shows_in_the_hash(name: str) -> None:
    members = json.loads(sealed())
    other = {
        "instance": "order-2",
        "lease_version": 1,
        "state_version": 5,
        "definition": ["order", "code-2"],
        "content": {**members["content"], "status": "unwinding"},
        "mac": "0" * 64,
    }[name]
    data = json.dumps({**members, name: other}, sort_keys=True, separators=(",", ":")).encode()
    for kept in (KEYED, PLAIN):
        assert problem(kept, stored(data)).problem is Problem.HASH_DIFFERS


def test_another_format_is_said_before_anything_else() -> None:
    error = problem(KEYED, stored(rehashed(sealed(), KEY, format=2)))
    assert (error.problem, error.field) == (Problem.OTHER_FORMAT, "format")
    assert "has format 2, and this fencepost reads 1" in str(error)
    assert problem(KEYED, stored(b'{"format":2}')).problem is Problem.OTHER_FORMAT


# On purpose.


def steps_changed(data: bytes) -> dict[str, Any]:
    content = json.loads(data)["content"]
    content["steps"][0]["status"] = "pending"
    return {"content": content}


def test_with_a_key_who_makes_the_hash_anew_is_found_out() -> None:
    for changes in (steps_changed(sealed()), {"state_version": 4, "lease_version": 2, "instance": "order-1"}):
        data = rehashed(sealed(), **changes)
        if data != sealed():
            assert problem(KEYED, stored(data)).problem is Problem.MAC_DIFFERS
    for name in ("lease_version", "state_version"):
        assert problem(KEYED, stored(rehashed(sealed(), **{name: 9}))).problem is Problem.MAC_DIFFERS


def test_with_a_key_a_checkpoint_without_a_mac_is_refused() -> None:
    error = problem(KEYED, stored(sealed(PLAIN)))
    assert (error.problem, error.field) == (Problem.MAC_MISSING, "mac")


def test_another_key_makes_another_mac() -> None:
    other = Checkpoints(mac_key=b"another sixteen bytes")
    assert problem(other, stored(sealed())).problem is Problem.MAC_DIFFERS


def test_without_a_key_the_hash_alone_lets_pass_what_was_tampered_with() -> None:
    """Why a key is worth having: row and checkpoint are changed alike, and nobody notices."""
    row = replace(ROW, steps=(replace(ROW.steps[0], receipt="receipt-9"), ROW.steps[1]))
    tampered = rehashed(sealed(PLAIN), content=content_of(row))
    assert PLAIN.check(stored(tampered, row)) is not None
    assert (
        problem(KEYED, stored(rehashed(sealed(), content=content_of(row)), row)).problem
        is Problem.MAC_DIFFERS
    )


# Sound, and not of the row.


@pytest.mark.parametrize(
    ("found", "lease_version", "expected", "name", "words"),
    [
        (replace(ROW, instance="order-2"), 2, Problem.OTHER_INSTANCE, "instance", "is that of 'order-2'"),
        (
            replace(ROW, state_version=3), 2, Problem.OTHER_VERSIONS, "state_version",
            "is of state version 3, and the row is from a commit with 4: an older one was put back",
        ),
        (
            ROW, 1, Problem.OTHER_VERSIONS, "lease_version",
            "is of lease version 1, and the row is from a commit with 2",
        ),
        (ROW, 3, Problem.OTHER_VERSIONS, "lease_version", "is of lease version 3"),
        (
            replace(ROW, definition=Definition("order", "code-2")), 2, Problem.OTHER_DEFINITION, "definition",
            "is of definition order code-2, and the row of order code-1",
        ),
        (replace(ROW, definition=None), 2, Problem.OTHER_DEFINITION, "definition", "is of definition none"),
    ],
    ids=["instance", "older", "refused commit", "present lease", "definition", "no definition"],
)  # fmt: skip
def test_a_sound_checkpoint_of_something_else_is_refused(
    found: Row, lease_version: int, expected: Problem, name: str, words: str
) -> None:
    error = problem(KEYED, stored(sealed(row=found, lease_version=lease_version)))
    assert (error.problem, error.field) == (expected, name)
    assert words in str(error)


def changes_of_a_row() -> list[tuple[Row, str]]:
    """Each way in which a row may differ from its checkpoint, and the words for it."""
    first, second = ROW.steps
    return [
        (replace(ROW, status="unwinding"), "status"),
        (replace(ROW, unwinding_cause="withdrawn"), "unwinding_cause"),
        (replace(ROW, manual_cause="a question"), "manual_cause"),
        (replace(ROW, steps=(first,)), "step 'ship': "),
        (replace(ROW, steps=(second, first)), "what it lists"),
        (replace(ROW, steps=(replace(first, receipt="receipt-2"), second)), "step 'charge': receipt"),
        (replace(ROW, steps=(first, replace(second, depends_on=()))), "step 'ship': depends_on"),
        (
            replace(ROW, steps=(replace(first, intent=replace(intent(), parameters="{}")), second)),
            "step 'charge': intent",
        ),
    ]


@pytest.mark.parametrize(("row", "words"), changes_of_a_row(), ids=[words for _, words in changes_of_a_row()])
def test_a_row_that_was_changed_past_the_store_is_told_from_its_checkpoint(row: Row, words: str) -> None:
    error = problem(KEYED, stored(sealed(), row))
    assert error.problem is Problem.OTHER_CONTENT
    assert f"the row differs from it in {words}" in str(error)


@pytest.mark.parametrize(
    "content", [{}, {"steps": 1}, {"steps": [1]}, {"steps": [{}]}, {"steps": [{"step": []}]}]
)
def test_content_of_any_form_is_told_from_that_of_the_row(content: dict[str, Any]) -> None:
    assert problem(PLAIN, stored(rehashed(sealed(PLAIN), content=content))).problem is Problem.OTHER_CONTENT


@pytest.mark.parametrize("steps", [None, 1, [1], [{}], [{"status": "gone"}], [{"status": "running"}]])
def test_content_that_holds_no_steps_is_damage_also_for_who_resumes_from_it(steps: Any) -> None:
    """Behind the comparison with the row, which would tell before."""
    trusting = replace(PLAIN, checks=())
    found = trusting.check(stored(rehashed(sealed(PLAIN), content={"steps": steps})))
    assert found is not None
    with pytest.raises(BadCheckpointError, match="it holds no steps"):
        steps_of(found)


def test_each_check_is_needed() -> None:
    """What is found by one of them is found by no other."""
    row = replace(ROW, steps=ROW.steps[:1])
    bad = {
        "check_hash": (PLAIN, stored(sealed(PLAIN).replace(b'"mac":null', b'"mac":"' + b"0" * 64 + b'"'))),
        "check_mac": (KEYED, stored(rehashed(sealed(), content=content_of(row)), row)),
        "check_instance": (
            KEYED,
            stored(sealed(row=replace(ROW, instance="order-2", steps=())), replace(ROW, steps=())),
        ),
        "check_versions": (KEYED, stored(sealed(), replace(ROW, state_version=5))),
        "check_definition": (KEYED, stored(sealed(), replace(ROW, definition=None))),
        "check_content": (KEYED, stored(sealed(), row)),
    }
    assert list(bad) == [check.__name__ for check in CHECKS]
    for name, (kept, found) in bad.items():
        problem(kept, found)
        fewer = replace(kept, checks=tuple(check for check in CHECKS if check.__name__ != name))
        assert fewer.check(found) is not None, name


# The key.


def test_a_key_is_bytes_of_a_length_that_nobody_guesses_and_is_not_shown() -> None:
    with pytest.raises(ArgumentError, match="mac_key must be bytes, not str"):
        Checkpoints(mac_key="sixteen characters")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mac_key has 15 bytes; pass at least 16"):
        Checkpoints(mac_key=KEY[:15])
    assert "sixteen" not in repr(KEYED)
