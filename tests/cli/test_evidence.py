"""The table of how each claim is known: its exit code, its budget, its parts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.cli import evidence as module
from fencepost.cli.evidence import (
    EXPLORED,
    KEPT,
    PARTS,
    PROVED,
    SQLITE,
    SWEEP,
    EvidenceReport,
    Part,
    evidence,
)
from fencepost.cli.evidence_table import conclusion, note_lines, table_lines
from fencepost.cli.parts import PROTOCOL, report_from_json
from fencepost.conformance import LOCK_STEP
from fencepost.properties import CORE, EFFECTS, Claim

from .support import fencepost, users_file

S1 = CORE.claims["stale_worker_never_overrides"]
L3 = CORE.claims["no_stuck_state"]

FIGURES = {
    PROVED: {"bound": "any number of workers", "obligations": 3, "seconds": 0.1},
    EXPLORED: {
        "scope": "small", "bound": "2 workers", "states": 7, "transitions": 9, "depth": 2, "cut": 1,
        "switches": ["none"], "seconds": 0.2,
    },
    SWEEP: {
        "scope": "quick", "bound": "2 workers", "changes": 141, "tried": 20, "enough": 3,
        "most_states": 1000, "seconds": 0.3,
    },
    SQLITE: {"grade": "lock-step, grade O", "bound": "5 runs", "runs": 5, "seed": 0, "seconds": 0.3},
}  # fmt: skip


def said(part: str, verdict: Verdict, *, claim: object = S1, method: str = "", **details: object) -> Report:
    bound, why = "2 workers", "because"
    finding = Finding(
        claim, verdict, method or part, bound, why, None, 0.0, details  # type: ignore[arg-type]
    )  # fmt: skip
    figures = {**FIGURES[part], "declared": details.get("declares", ())}
    return Report(part, "core", (finding,), figures)


def reported(part: str, verdict: Verdict, **details: object) -> Part:
    return Part(part, reports=(said(part, verdict, **details),), done=True)  # type: ignore[arg-type]


def at_grades(*verdicts: tuple[str, Verdict]) -> Part:
    """What is said about S1 by each of some methods."""
    reports = tuple(said(SQLITE, verdict, method=f"x, grade {grade}") for grade, verdict in verdicts)
    return Part(SQLITE, reports=reports, done=True)


def table(*parts: Part, required: Verdict | None = None) -> EvidenceReport:
    given = {p.name: p for p in parts}
    all_parts = {name: given.get(name, Part(name)) for name in PARTS}
    return EvidenceReport(all_parts, {"core": (S1,)}, 60.0, 1.0, required)


GOOD = (
    reported(PROVED, Verdict.PROVED),
    reported(EXPLORED, Verdict.BOUNDED),
    reported(SWEEP, Verdict.CAN_FAIL, broken_by=["a: without `b`"], tried=7),
    reported(SQLITE, Verdict.HELD, method="lock-step, grade O"),
)
WORDS = {"proved": "PROVED", "explored": "BOUNDED", "sweep": "CAN FAIL", "sqlite": "HELD"}


def test_all_that_is_required_gives_exit_code_0() -> None:
    assert table(*GOOD).exit_code == 0
    assert table(*GOOD).verdicts() == {"S1": WORDS}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (reported(EXPLORED, Verdict.REFUTED), 1),
        (reported(EXPLORED, Verdict.UNDETERMINED), 3),
        (reported(SWEEP, Verdict.UNDETERMINED, broken_by=[], tried=7), 3),
        (reported(SWEEP, Verdict.UNDETERMINED, broken_by=[], tried=0, untellable=True), 0),
        (reported(SQLITE, Verdict.NOT_EXERCISED), 3),
        (reported(SQLITE, Verdict.REFUTED), 1),
        (reported(SQLITE, Verdict.REFUTED, declares=("S1",)), 0),
        (reported(SQLITE, Verdict.NOT_EXERCISED, untellable=True), 0),
        (Part(SQLITE, error="it fell over"), 4),
        (Part(SQLITE), 3),
    ],
)
def test_one_part_that_is_not_as_required_decides_the_exit_code(part: Part, code: int) -> None:
    others = [p for p in GOOD if p.name != part.name]

    assert table(*others, part).exit_code == code


def test_require_proved_asks_for_proofs_of_all_claims() -> None:
    bounded = (reported(PROVED, Verdict.BOUNDED), *GOOD[1:])

    assert table(*GOOD, required=Verdict.PROVED).exit_code == 0
    assert table(*bounded, required=Verdict.PROVED).exit_code == 3


def test_nothing_known_is_no_pass() -> None:
    assert table().exit_code == 3
    assert "not every claim is known" in conclusion(table())


def test_each_bound_and_each_reason_is_written_out() -> None:
    report = table(*GOOD[:3], reported(SQLITE, Verdict.NOT_EXERCISED))
    notes = "\n".join(note_lines(report))

    for words in (
        "any number of workers", "7 states, 9 transitions", "1 transitions cut",
        "20 of 141 single changes", "grade O: 5 runs",
    ):  # fmt: skip
        assert words in notes
    assert "sqlite: S1 stale_worker_never_overrides: NOT EXERCISED: because" in notes
    assert "PROVED" in table_lines(report)[1]


def test_a_part_that_is_not_there_yet_is_neither_good_nor_bad() -> None:
    assert table_lines(table(GOOD[0]))[1].split()[-3:] == ["…", "…", "…"]


@pytest.mark.parametrize(
    ("verdicts", "cell", "code"),
    [
        ((("O", Verdict.HELD), ("S", Verdict.HELD)), "HELD, grade S", 0),
        ((("O", Verdict.HELD), ("S", Verdict.UNDETERMINED)), "HELD, grade O", 0),
        ((("O", Verdict.NOT_EXERCISED), ("S", Verdict.HELD)), "HELD, grade S", 0),
        ((("O", Verdict.HELD), ("S", Verdict.REFUTED)), "REFUTED", 1),
        ((("O", Verdict.NOT_EXERCISED), ("S", Verdict.UNDETERMINED)), "UNDETERMINED", 3),
    ],
)
def test_an_implementation_has_the_best_grade_at_which_it_held(
    verdicts: tuple[tuple[str, Verdict], ...], cell: str, code: int
) -> None:
    report = table(*GOOD[:3], at_grades(*verdicts))

    assert table_lines(report)[1].endswith(cell)
    assert report.exit_code == code


def test_a_grade_that_was_not_reached_is_said_below_the_table() -> None:
    notes = "\n".join(note_lines(table(at_grades(("O", Verdict.HELD), ("S", Verdict.UNDETERMINED)))))

    assert "sqlite: S1 stale_worker_never_overrides: x, grade S: UNDETERMINED: because" in notes


def test_an_id_of_several_protocols_has_a_row_and_a_name_for_each() -> None:
    ids = {"core": CORE.ids(), "effects": EFFECTS.ids()}
    both = {name: tuple(found["S25"]) for name, found in ids.items()}
    report = EvidenceReport({n: Part(n) for n in PARTS}, both, 60.0, 1.0)

    assert [(r.model, report.name_of(r)) for r in report.rows] == [
        ("core", "core:S25"), ("effects", "effects:S25"),
    ]  # fmt: skip
    assert [line for line in table_lines(report) if line in ("core", "effects")] == ["core", "effects"]


def test_a_proof_that_takes_it_that_faults_are_off_says_so_in_its_cell_and_below() -> None:
    some = replace(S1, needs_off=("record_expired", "record_volatile"))
    part = Part(PROVED, reports=(said(PROVED, Verdict.PROVED, claim=some),), done=True)
    report = replace(table(part), claims={"core": (some,)})

    assert "PROVED, some faults off" in table_lines(report)[1]
    assert "all sizes" not in table_lines(report)[1]
    notes = "\n".join(note_lines(report))
    assert "PROVED with record_expired, record_volatile off" in notes
    assert "faults off" not in table_lines(table(*GOOD))[1]


def _about(model: str, part: str, verdict: Verdict, claim: Claim, **details: object) -> Report:
    return replace(said(part, verdict, claim=claim, method="x, grade O", **details), subject=model)


def _beside(model: str, report: Report) -> Report:
    """A report about an implementation, as a part sends it and as it is read again."""
    sent = replace(report, figures={**report.figures, PROTOCOL: model})
    return report_from_json(sent.as_json(), {model: (S1,)})


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("bad", [Verdict.UNDETERMINED, Verdict.REFUTED, Verdict.NOT_EXERCISED])
def test_claims_of_one_name_in_two_protocols_are_told_apart(part: str, bad: Verdict) -> None:
    one, other = replace(S1, id="K1", name="same"), replace(S1, id="K2", name="same")
    good = WORDS[part]
    for order in (1, -1):
        reports = (
            _about("core", part, Verdict(good), one, broken_by=["a: without `b`"], tried=7),
            _about("effects", part, bad, other, broken_by=[], tried=7),
        )
        parts = {n: Part(n, reports=reports[::order] if n == part else (), done=True) for n in PARTS}
        report = EvidenceReport(parts, {"core": (one,), "effects": (other,)}, 60.0, 1.0)

        assert report.verdicts() == {"K1": {part: good}, "K2": {part: bad.value}}
        assert report.exit_code != 0


def test_a_part_that_is_read_again_speaks_of_the_claims_of_its_own_protocol() -> None:
    one, other = replace(S1, id="K1"), replace(S1, id="K2")
    sent = _about("effects", PROVED, Verdict.PROVED, other).as_json()

    again = report_from_json(sent, {"core": (one,), "effects": (other,)})
    assert again.findings[0].claim is other


@pytest.mark.parametrize("bad", [Verdict.UNDETERMINED, Verdict.REFUTED])
def test_the_steps_of_each_protocol_have_a_row_of_their_own(bad: Verdict) -> None:
    reports = [
        _beside("core", _about("sqlite", SQLITE, bad, LOCK_STEP)),
        _beside("effects", _about("sqlite", SQLITE, Verdict.HELD, LOCK_STEP, declares=(LOCK_STEP.id,))),
    ]
    parts = {n: Part(n, reports=tuple(reports) if n == SQLITE else (), done=True) for n in PARTS}
    report = EvidenceReport(parts, {"core": (), "effects": ()}, 60.0, 1.0)

    name = LOCK_STEP.id
    assert report.verdicts() == {
        f"core:{name}": {SQLITE: bad.value}, f"effects:{name}": {SQLITE: "HELD"},
    }  # fmt: skip
    assert report.exit_code == (1 if bad is Verdict.REFUTED else 3)
    assert [line for line in table_lines(report) if line in ("core", "effects")] == ["core", "effects"]


def _given(run: module._Run, name: str, monkeypatch: pytest.MonkeyPatch, at_s: float) -> float:
    monkeypatch.setattr(module.time, "monotonic", lambda: run.started + at_s)
    return run._budget_s(name)


def _played(lanes: int, uses: float, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """When each part starts and what it is given, where each uses so much of what it is given."""
    run = module._Run({}, 60.0, lanes, None, None)
    free = [0.0] * lanes
    ends: dict[str, float] = {}
    told = {}
    for name in module.STARTED:
        at_s = min(free)
        run.processes = {n: None for n, end in ends.items() if end > at_s}  # type: ignore[misc]
        given = _given(run, name, monkeypatch, at_s)
        told[name] = (at_s, given)
        ends[name] = free[free.index(at_s)] = at_s + given * uses
        run.parts[name] = replace(run.parts[name], running=True)
    return told


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
@pytest.mark.parametrize("uses", [0.1, 0.5, 1.0])
def test_no_part_is_starved_by_those_before_it_and_all_end_in_time(
    lanes: int, uses: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (at_s, given) in _played(lanes, uses, monkeypatch).items():
        assert given >= 60 * KEPT[name] * module.WORKING_SHARE / lanes - 0.01
        assert at_s + given <= 60


def test_the_first_parts_may_use_what_the_others_can_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _played(2, 0.3, monkeypatch)

    assert min(told[PROVED][1], told[EXPLORED][1]) > 45
    assert told[SQLITE][1] > 30


@pytest.mark.slow  # its table is on a page, which the short run compares
def test_evidence_of_the_core_is_complete() -> None:
    seen: list[EvidenceReport] = []
    report = evidence(model="core", scope="quick", budget_s=120, on_update=seen.append)

    assert report.exit_code == 0, "\n".join(note_lines(report))
    rows = {row.id: row for row in report.rows}
    assert set(CORE.ids()) <= set(rows)
    assert rows["S3"].verdict(PROVED) is Verdict.PROVED
    assert rows["S3"].verdict(EXPLORED) is Verdict.BOUNDED
    assert rows["S3"].verdict(SWEEP) is Verdict.CAN_FAIL
    assert rows["S3"].verdict(SQLITE) is Verdict.HELD
    assert rows["L3"].verdict(SQLITE) is None
    first = next(r for r in seen if any(p.ended for p in r.parts.values()))
    assert not all(p.ended for p in first.parts.values())


def test_a_part_that_runs_out_of_its_share_is_undetermined() -> None:
    report = evidence(budget_s=1.0)

    assert report.exit_code == 3
    words = {word for cells in report.verdicts().values() for word in cells.values()}
    assert "UNDETERMINED" in words
    assert "REFUTED" not in words


def test_a_part_that_fails_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARTS", (PROVED,))
    monkeypatch.setattr(module.sys, "executable", "false")
    report = evidence(budget_s=30)

    assert report.exit_code == 4
    assert "ended with code" in report.parts[PROVED].error


def test_claims_of_ones_own_have_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARTS", (PROVED,))
    report = evidence(file=users_file("holds"), budget_s=60)

    assert report.verdicts()["M1"] == {PROVED: "PROVED"}


def test_a_mistake_in_ones_own_file_is_shown_as_ever() -> None:
    Path("own.py").write_text(
        "from fencepost.properties import Claims\n\nmine = Claims('mine')\n\n\n@mine.always()\ndef own(s):\n"
        "    '''A claim.'''\n    return s.owner is None\n",
        encoding="utf-8",
    )
    done = fencepost("evidence", "--with", "own.py", "--jobs", "1")

    assert (done.code, done.out) == (2, "")
    assert "own.py:9: in own: `is None`" in done.err
    assert "9 |     return s.owner is None" in done.err


def test_a_changed_protocol_has_no_evidence_beside_sqlite() -> None:
    done = fencepost("evidence", "--with", users_file("changed_guard"))

    assert done.code == 2
    assert "changes the protocol, and evidence is about the built-in ones" in done.err


def test_wrong_names_are_reported_before_anything_runs() -> None:
    assert "did you mean 'small'?" in fencepost("evidence", "--scope", "smal").err


def test_the_command_prints_the_table_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.cli.evidence.evidence", lambda **_: table(*GOOD))
    text, data = fencepost("evidence"), fencepost("evidence", "--json")

    assert (text.code, data.code) == (0, 0)
    assert "S1  stale_worker_never_overrides  PROVED, all sizes  BOUNDED, small  by 1 of 7" in text.out
    assert json.loads(data.out)["verdicts"]["S1"][SQLITE] == "HELD"


@pytest.mark.parametrize(
    ("pins", "code", "says"),
    [
        (json.dumps({"S1": WORDS}), 0, "as pins.json says"),
        (json.dumps({"S1": {**WORDS, "explored": "REFUTED"}}), 1, "pinned as REFUTED"),
        ('{"S2": "PROVED"}', 1, "S1, proved: PROVED, not pinned"),
    ],
)
def test_the_table_is_compared_with_pins(
    pins: str, code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.cli.evidence.evidence", lambda **_: table(*GOOD))
    Path("pins.json").write_text(pins, encoding="utf-8")
    done = fencepost("evidence", "--expect", "pins.json")

    assert done.code == code
    assert says in done.out
