"""What a downstream cannot do is not asked of it, and what it is declared to do and does not is found."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import Verdict
from fencepost.conformance import Ability, Capability, Downstream, Surroundings, read_run, replay_run, verify
from fencepost.conformance import effects as mapped
from fencepost.conformance.counterparts import stored_variables
from fencepost.conformance.runs import run_from_json
from fencepost.conformance.subjects import EFFECTS_SUBJECT
from fencepost.model.effects import effects
from fencepost.model.effects.state import DOWNSTREAM
from fencepost.reference.adapter import SqliteAdapter, make_sqlite

from .effects_support import CLASSES, DictEffects, verified_effects
from .support import refuted


@dataclass(frozen=True)
class Misdeclared(SqliteAdapter):
    """A downstream that is declared to do one thing, and does another."""

    really: frozenset[Ability] = frozenset()
    asked: Counter[str] = field(default_factory=Counter)

    def open_downstream(self, world: Any, surroundings: Surroundings) -> Any:
        honest = make_sqlite(downstream=self.really)
        return Counting(honest.open_downstream(world, surroundings), self.asked)


@dataclass(frozen=True)
class Counting:
    """A downstream whose calls are counted."""

    inner: Downstream
    asked: Counter[str]

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self.inner, name)

    def apply(self, *given: Any) -> Any:
        self.asked["apply"] += 1
        return self.inner.apply(*given)

    def close(self) -> None:
        self.inner.close()


def misdeclared(declared: set[Ability], really: set[Ability]) -> Misdeclared:
    details = vars_of(make_sqlite(downstream=declared))
    return Misdeclared(**details, really=frozenset(really))


def vars_of(adapter: SqliteAdapter) -> dict[str, Any]:
    return {name: getattr(adapter, name) for name in SqliteAdapter.__dataclass_fields__}


@pytest.mark.parametrize(
    ("declared", "really", "breaks"),
    [
        ({Ability.FENCED}, set(), "every_step_is_the_models"),
        ({Ability.KEYED}, set(), "every_step_is_the_models"),
        pytest.param({Ability.REVISIONED}, set(), "every_step_is_the_models", marks=pytest.mark.slow),
        pytest.param({Ability.QUERYABLE}, set(), "every_step_is_the_models", marks=pytest.mark.slow),
        (set(), {Ability.KEYED}, "every_step_is_the_models"),
    ],
    ids=str,
)
def test_what_is_declared_and_not_so_is_found(
    declared: set[Ability], really: set[Ability], breaks: str
) -> None:
    found = refuted(verify(misdeclared(declared, really), subject=EFFECTS_SUBJECT, examples=0))
    assert breaks in found


def test_what_a_downstream_cannot_do_is_never_asked_of_it() -> None:
    adapter = misdeclared(set(), set())
    adapter = replace(adapter, downstream=frozenset())  # nor does it restart or decline
    report = verify(adapter, subject=EFFECTS_SUBJECT, examples=0)
    assert set(adapter.asked) == {"apply"}
    assert "restart_downstream: done" not in report.figures["kinds"]
    assert "decide_call: declined" not in report.figures["kinds"]


def test_an_adapter_that_declares_no_effects_is_told_what_to_write() -> None:
    with pytest.raises(UsageError, match=r"declare Capability\.EFFECTS"):
        verify(make_sqlite(), subject=EFFECTS_SUBJECT)


def test_without_rereading_the_rest_is_still_held_and_strictly() -> None:
    adapter = DictEffects(capabilities=frozenset({Capability.CODES, Capability.LOG, Capability.EFFECTS}))
    report = verify(adapter, subject=EFFECTS_SUBJECT, examples=0)
    assert report.figures["kinds"].get("reread: done", 0) == 0
    assert report.of("S8").verdict is Verdict.HELD
    assert report.of("S8-revision").verdict is Verdict.NOT_EXERCISED


def test_each_action_and_each_variable_of_effects_is_mapped_and_nothing_else() -> None:
    assert set(mapped.PERFORMANCES) == set(effects.actions)
    history = {"landings", "landed_as"}
    kept = {name for name, v in effects.variables.items() if v.home in ("store", DOWNSTREAM)}
    assert set(mapped.STORED) == set(stored_variables(effects)) == kept | history


def test_each_switch_of_an_ability_is_one_of_the_model() -> None:
    for abilities in CLASSES.values():
        assert mapped.scope_of(frozenset(abilities)).switches <= set(effects.switches)


def test_a_saved_run_of_effects_is_made_again_with_the_model_of_effects(tmp_path: Any) -> None:
    kind, broken = "keyed", "tombstone-not-looked-at"
    data = verified_effects(kind, broken).of("S19").details["run"]
    path = run_from_json(data).save(tmp_path)
    assert read_run(path).protocol == "effects"
    mended = make_sqlite(downstream=CLASSES[kind], name=broken)
    again = replay_run(path, mended)
    assert (again.fails, again.changed) == (False, "")
