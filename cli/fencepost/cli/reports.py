"""Reports as text: a line per claim, what its verdict rests on, and each violation as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from fencepost.checker.subject import Subject
from fencepost.checker.traces import STORE, Trace, table
from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, Finding, Report, Verdict, worst_code
from fencepost.cli.errors import shown_place
from fencepost.cli.pins import differences, read_pins, verdicts_of
from fencepost.cli.text import WIDTH, echo, table_width, wrapped
from fencepost.model import Protocol, Scope
from fencepost.properties import Claim

_KINDS = {"always": "in a state", "each_step": "on a step"}


@dataclass(frozen=True, slots=True)
class Told:
    """One report, and what is printed above and below it."""

    report: Report
    protocol: Protocol
    heading: list[str]
    footing: list[str]


def finish(
    told: Sequence[Told],
    *,
    as_json: bool = False,
    expect: str = "",
    saved: Mapping[str, str] | None = None,
) -> int:
    """Print reports, or their JSON, and give the exit code. Runs that break a claim are saved as traces.

    `saved` are tokens of runs by claim name, where the caller has saved them in a form of its own.
    """
    pins = read_pins(expect) if expect else None
    reports = [t.report for t in told]
    tokens = [save_traces(r) if saved is None else saved for r in reports]
    different = differences(reports, pins) if pins is not None else []
    code = worst_code(r.exit_code for r in reports)
    if pins is not None:
        code = EXIT_REFUTED if different else EXIT_OK
    if as_json:
        each = [{**r.as_json(), "replay": dict(names)} for r, names in zip(reports, tokens, strict=True)]
        verdicts = {name: verdict.value for name, verdict, _ in verdicts_of(reports)}
        several = {"command": reports[0].command, "verdicts": verdicts, "reports": each}
        data = {**(each[0] if len(each) == 1 else several), "exit_code": code}
        if pins is not None:
            data["differences"] = different
        click.echo(json.dumps(data, indent=1, ensure_ascii=False))
        return code
    for number, (one, names) in enumerate(zip(told, tokens, strict=True)):
        if number:
            click.echo()
        _print(one, names)
    if pins is not None:
        echo([f"as {expect} says" if not different else f"not as {expect} says:"])
        echo(f"  {line}" for line in different)
    return code


def _print(told: Told, tokens: Mapping[str, str]) -> None:
    report = told.report
    echo(told.heading)
    click.echo()
    echo(verdict_lines(report.findings))
    for finding in report.findings:
        if finding.trace is not None:
            click.echo()
            echo(violation(finding, told.protocol, report.subject, tokens.get(finding.claim.name, "")))
    click.echo()
    echo(summary_lines(report))
    echo(told.footing)


def save_traces(report: Report) -> dict[str, str]:
    """Save the runs of a report; their tokens by claim name. What cannot be saved is still reported."""
    tokens = {}
    for finding in report.findings:
        if finding.trace is not None:
            with unsaved_is_told():
                tokens[finding.claim.name] = finding.trace.save().stem
    return tokens


@contextmanager
def unsaved_is_told() -> Iterator[None]:
    """Where a run cannot be saved, in a directory that nobody may write to perhaps, say so and go on."""
    try:
        yield
    except OSError as error:
        click.echo(f"fencepost: the run is not saved in {STORE}: {error.strerror}", err=True)


def verdict_lines(findings: Iterable[Finding]) -> list[str]:
    """A line per claim: verdict, id, name, and what it rests on where that is not the same for all."""
    listed = list(findings)
    shared = _shared(listed)
    verdict_width = max((len(f.verdict.value) for f in listed), default=0)
    id_width = max((len(_id(f)) for f in listed), default=0)
    name_width = max((len(f.claim.name) for f in listed), default=0)
    lines = []
    for f in listed:
        start = f"{f.verdict.value:<{verdict_width}}  " + (f"{_id(f):<{id_width}}  " if id_width else "")
        if shared.get(f.verdict) == f.why or not f.why:
            lines.append(start + f.claim.name)
        elif len(start) + name_width + 2 + len(f.why) <= WIDTH:
            lines.append(f"{start}{f.claim.name:<{name_width}}  {f.why}")
        else:
            lines.append(start + f.claim.name)
            lines += wrapped(f.why, " " * len(start))
    return lines


def _id(finding: Finding) -> str:
    return finding.claim.id if finding.claim.id != finding.claim.name else ""


def _shared(findings: list[Finding]) -> dict[Verdict, str]:
    """What all findings of a verdict rest on, where there are several and it is the same for all."""
    shared = {}
    for verdict in Verdict:
        whys = [f.why for f in findings if f.verdict is verdict]
        if len(whys) > 1 and len(set(whys)) == 1:
            shared[verdict] = whys[0]
    return shared


def summary_lines(report: Report) -> list[str]:
    """How many claims have which verdict, on what grounds, and in what time."""
    shared = _shared(list(report.findings))
    lines = []
    for verdict in Verdict:
        count = sum(f.verdict is verdict for f in report.findings)
        if count:
            lines += wrapped(
                f"{count} {verdict.value}" + (f": {shared[verdict]}" if verdict in shared else ""), "  "
            )
    for note in report.notes:
        lines += wrapped(f"note: {note}", "  ")
    return lines


def violation(finding: Finding, protocol: Protocol, subject: str, token: str) -> list[str]:
    """One violation: the claim, its sentence, where it was found, the run as a table, and why it breaks."""
    trace = finding.trace
    assert trace is not None  # noqa: S101  # the caller has looked
    claim = finding.claim
    indent = " " * (len(finding.verdict.value) + 2)
    title = (
        f"{finding.verdict.value}  {claim.id} {claim.name}"
        if _id(finding)
        else f"{finding.verdict.value}  {claim.name}"
    )
    kind = f"{_KINDS.get(claim.kind.value, claim.kind.value)}; {finding.why}"
    lines = (
        [f"{title}  {kind:>{max(0, WIDTH - len(title) - 2)}}"]
        if len(title) + len(kind) + 2 <= WIDTH
        else [title, indent + kind]
    )
    lines += wrapped(claim.sentence, indent)
    lines += wrapped(f"{subject} · {trace.scope.describe()}", indent)
    lines += wrapped(" · ".join(_places(finding, trace, protocol)), indent)
    lines.append("")
    lines += [f"  {line}" for line in table(trace, protocol, width=table_width() - 2)]
    if "answers" in finding.details:
        from fencepost.conformance.report import answers_table

        lines += ["", *answers_table(finding)]
    elif finding.details.get("statements"):
        from fencepost.conformance.report import statements_table

        lines += ["", *statements_table(finding)]
    sentences = [*trace.explanation, *_needed_off(finding.claim, trace.scope)]
    if sentences:
        lines.append("")
    for sentence in sentences:
        lines += wrapped(sentence, "    ", "  ")
    if token:
        lines += [
            "",
            f"  as a test    fencepost replay {token} --as pytest",
            f"  again        fencepost replay {token}",
        ]
    return lines


def _needed_off(claim: Claim, scope: Scope) -> Iterator[str]:
    """That a claim promises nothing against a fault that is on: its refutation is no fault of a protocol."""
    switches = [s for s in claim.needs_off if s in scope.switches]
    if switches:
        name = claim.id if claim.id != claim.name else claim.name
        yield (
            f"{name} needs {' and '.join(switches)} off: with {'it' if len(switches) == 1 else 'them'} on it "
            "promises nothing, and this run is no fault of the protocol"
        )


def _places(finding: Finding, trace: Trace, protocol: Protocol) -> list[str]:
    places = [f"claim: {shown_place(finding.claim.place)}"]
    action = protocol.actions.get(trace.steps[-1].action) if trace.steps else None
    if action is not None:
        places.append(f"last step: {shown_place(f'{action.site.file}:{action.site.line}')}")
    return places


def subject_line(subject: Subject) -> str:
    """What is checked: the protocol, its variant, the user's file."""
    name = subject.name if not subject.file or subject.unbroken is not None else subject.protocol.name
    return f"{name} with {subject.file}" if subject.file else name


def seconds(report: Report) -> str:
    """The time a report took."""
    return f"{report.figures.get('seconds', 0.0):.1f} s"


def json_of(data: Any) -> str:
    """Plain data as JSON."""
    return json.dumps(data, indent=1, ensure_ascii=False)
