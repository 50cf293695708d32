"""The checks of an implementation as a class of tests for pytest: one import, one class, one attribute."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from fencepost.checker.subject import Subject, UsageError
from fencepost.checker.verdicts import EXIT_OK, Finding, Verdict
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.counterparts import reach_of, subjects_had
from fencepost.conformance.report import UNTELLABLE, Conformance, finding_lines, joined
from fencepost.conformance.runs import LOCK_STEP
from fencepost.conformance.saving import name_of, save_finding
from fencepost.conformance.statements import verify_statements
from fencepost.conformance.verify import verify_all
from fencepost.model import FencepostError

if TYPE_CHECKING:
    import pytest

CALLS, STATEMENTS = "calls", "statements"


class ConformanceSuite:
    """The tests of one implementation. A subclass says which, under a name that pytest collects.

    All that it takes is::

        from fencepost.conformance import ConformanceSuite

        class TestMine(ConformanceSuite):
            adapter = staticmethod(make)

    `adapter` is a function without arguments, or a class, that makes the adapter; or override `make_adapter`.

    There is a test for each claim id and one for the comparison with the model, both by whole calls (grade
    O), and one that goes statement by statement (grade S). Two runs of the checks are behind them, each made
    once for a class, by the first test that needs it. With pytest-xdist, ``--dist loadscope`` keeps the tests
    of a class in one process; otherwise each process makes them for itself.

    A test passes if its claim is HELD. It is an expected failure if the adapter declares that the claim does
    not hold and it is seen to break, and a failure if that is declared and not seen. It is skipped only where
    no run of any implementation could tell. All else fails: REFUTED, and just as well UNDETERMINED and NOT
    EXERCISED. What failed is saved in ``.fencepost`` and replayed by the last line of the failure.

    Asynchronous adapters are not supported: the methods of workers are called as they are.
    """

    adapter: ClassVar[Callable[[], Adapter] | None] = None
    """Makes the adapter."""
    claims: ClassVar[Sequence[str]] = ()
    """Ids or names of the claims to test; empty, all. The comparison with the model is always made."""
    examples: ClassVar[int] = 100
    """Random runs, after those that go straight to what can go wrong."""
    steps: ClassVar[int] = 25
    """Moves of a run, at most."""
    seed: ClassVar[int] = 0
    """The same seed gives the same runs."""
    budget_s: ClassVar[float | None] = None
    """Seconds for each of the two runs of the checks; what is not known then is UNDETERMINED, and fails."""
    faults: ClassVar[bool] = True
    """Statement by statement: with deaths, pauses and lost replies at each."""

    _found: ClassVar[dict[str, Conformance | FencepostError]] = {}

    def __init_subclass__(cls, **named: Any) -> None:
        """Each class has reports of its own."""
        super().__init_subclass__(**named)
        cls._found = {}

    def make_adapter(self) -> Adapter:
        """The adapter that is tested."""
        make = self._maker()
        if make is None:
            raise UsageError(
                f"{type(self).__name__} does not say what to test; write in it\n"
                "    adapter = staticmethod(make)\n"
                "where `make` is a function without arguments that makes an adapter, or override "
                "`make_adapter`; see fencepost.conformance.adapter"
            )
        return make()

    # -- what pytest calls

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test for each claim id."""
        import pytest

        try:
            adapter = self.make_adapter()
            missing = [n for n in ("fresh_world", "open_worker", "observe") if not hasattr(adapter, n)]
            if missing:
                raise UsageError(
                    f"{type(self).__name__}: {adapter!r} is no adapter, it has no {', '.join(missing)}; "
                    "see fencepost.conformance.adapter"
                )
            if "claim_id" in metafunc.fixturenames:
                metafunc.parametrize("claim_id", self._ids(adapter))
        except FencepostError as error:
            raise pytest.Collector.CollectError(str(error)) from error

    def test_claim(self, claim_id: str, record_property: Callable[[str, object], None]) -> None:
        """The claims with an id hold in all runs of whole calls, or break as declared."""
        self._settle(claim_id, record_property)

    def test_lock_step(self, record_property: Callable[[str, object], None]) -> None:
        """Every call is answered, and changes what is stored, as the model says."""
        self._settle(LOCK_STEP.id, record_property)

    def test_statements(self, record_property: Callable[[str, object], None]) -> None:
        """All claims hold, and every call is as the model's, however two workers' statements mix."""
        report = self._report(STATEMENTS)
        for finding in report.findings:
            record_property(finding.claim.name, f"{finding.verdict.value}, {finding.method}")
        if report.exit_code == EXIT_OK:
            return
        declared = report.declared
        refuted = [f for f in report.refuted if f.claim.id not in declared]
        if refuted:
            first, *others = sorted(refuted, key=lambda f: f.claim.id == LOCK_STEP.id)  # a claim says more
            names = ", ".join(_label(f) for f in (first, *others))
            lines = [f"statement by statement, {len(refuted)} refuted: {names}", "", *self._shown(first)]
            for other in others:
                lines += ["", _line(other), *(f"  {line}" for line in self._again(other)[-1:])]
            _fail(lines)
        unseen = [f for f in report.findings if _unknown(f)]
        seen = {f.claim.id for f in report.refuted}
        lines = [_line(f) for f in unseen]
        lines += [_not_seen(i, reason) for i, reason in declared.items() if i not in seen and _has(report, i)]
        _fail([f"statement by statement, not known: {lines[0]}", *lines[1:], *report.notes])

    # -- how

    @classmethod
    def _maker(cls) -> Callable[[], Adapter] | None:
        """The function in `adapter`, also where it is given without `staticmethod`."""
        found = inspect.getattr_static(cls, "adapter", None)
        made: Callable[[], Adapter] | None = found.__func__ if isinstance(found, staticmethod) else found
        return made

    def _subjects(self, adapter: Adapter) -> list[Subject]:
        return subjects_had(adapter)

    def _ids(self, adapter: Adapter) -> list[str]:
        """The ids of the claims to test."""
        subjects = self._subjects(adapter)
        wanted = [c for c in self.claims if c not in (LOCK_STEP.id, LOCK_STEP.name)]
        found = dict.fromkeys(
            c.id for s in subjects for c in s.claims.promises() if not wanted or {c.id, c.name} & {*wanted}
        )
        for one in wanted:
            if not any(s.has(one) for s in subjects):
                subjects[0].chosen([one])  # which says what there is
        return list(found)

    def _report(self, which: str) -> Conformance:
        """One of the two reports, made by the first test that asks for it."""
        found = self._found
        if which not in found:
            try:
                found[which] = self._by_calls() if which == CALLS else self._by_statements()
            except FencepostError as error:
                found[which] = error
        report = found[which]
        if isinstance(report, FencepostError):
            _fail([str(report)])
        return report

    def _by_calls(self) -> Conformance:
        return verify_all(
            self.make_adapter(),
            examples=self.examples,
            steps=self.steps,
            seed=self.seed,
            budget_s=self.budget_s,
            claims=[*self.claims, LOCK_STEP.id] if self.claims else (),
        )

    def _by_statements(self) -> Conformance:
        adapter = self.make_adapter()
        reports: list[Conformance] = []
        for subject in self._subjects(adapter):
            if reach_of(adapter, subject.protocol).starts is None:
                continue
            asked = [c for c in self.claims if subject.has(c)]
            if self.claims and not asked and reports:
                continue
            reports.append(
                verify_statements(
                    adapter,
                    claims=[*asked, LOCK_STEP.id] if self.claims else (),
                    faults=self.faults,
                    seed=self.seed,
                    budget_s=self.budget_s,
                    subject=subject,
                )
            )
        return joined(reports)

    def _settle(self, claim_id: str, record_property: Callable[[str, object], None]) -> None:
        """Pass, fail, or say why neither, as the findings on an id are."""
        import pytest

        report = self._report(CALLS)
        found = [f for f in report.findings if f.claim.id == claim_id]
        for f in found:
            record_property(f.claim.name, f"{f.verdict.value}, {f.method}; {f.bound}; {f.why}")
        refuted = [f for f in found if f.verdict is Verdict.REFUTED]
        reason = report.declared.get(claim_id)
        if reason is not None and not refuted:
            _fail([_not_seen(claim_id, reason), *map(_line, found)])
        if refuted and reason is None:
            _fail([line for f in refuted for line in (*self._shown(f), "")])
        unknown = [f for f in found if _unknown(f)]
        if unknown or not found:
            _fail([*map(_line, unknown), *report.notes] or [f"{claim_id}: nothing was found out"])
        if reason is not None:
            pytest.xfail(f"{claim_id} is REFUTED, as declared: {reason}")
        elif all(UNTELLABLE in f.details for f in found):
            pytest.skip(f"{claim_id} cannot be told from runs: {found[0].why}")

    def _shown(self, finding: Finding) -> list[str]:
        """A finding as the report has it, and how to replay it."""
        return finding_lines(finding, again=self._again(finding))

    def _again(self, finding: Finding) -> list[str]:
        """The lines that replay a finding, once it is saved."""
        maker = self._maker()
        made_by = name_of(maker) if maker is not None else ""
        made_by = made_by or name_of(type(self))
        try:
            token = save_finding(finding, made_by)
        except OSError as error:
            return [f"not saved: {error}"]
        if not token:
            return []
        command = f"fencepost replay {token}" + ("" if made_by else " --adapter PACKAGE.MODULE:MAKE")
        return [f"as a test    {command} --as pytest", f"again        {command}"]


def _fail(lines: Sequence[str]) -> NoReturn:
    import pytest

    pytest.fail("\n".join(lines).rstrip(), pytrace=False)


def _label(finding: Finding) -> str:
    return f"{finding.claim.id} {finding.claim.name}"


def _line(finding: Finding) -> str:
    return f"{finding.verdict.value}  {_label(finding)}" + (f": {finding.why}" if finding.why else "")


def _unknown(finding: Finding) -> bool:
    known = finding.verdict in (Verdict.HELD, Verdict.REFUTED)
    return not known and UNTELLABLE not in finding.details


def _has(report: Conformance, claim_id: str) -> bool:
    return any(f.claim.id == claim_id for f in report.findings)


def _not_seen(claim_id: str, reason: str) -> str:
    return (
        f"{claim_id} is declared not to hold ({reason}), but nothing broke it; "
        "take it out of the adapter's `deviations`"
    )
