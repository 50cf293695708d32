"""Which protocols, claims and scopes a command looks at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.subject import BUILT_IN, UsageError, load, load_all
from fencepost.cli.catalogue import explain
from fencepost.cli.pins import read_pins
from fencepost.cli.selection import selected

from .support import SMALLEST, fencepost, tokens

ABOUT_EFFECTS = '''\
from fencepost.properties import Claims

mine = Claims("mine"{about})


@mine.always("M8")
def a_receipt_comes_late(s):
    """There is no receipt before the first lease."""
    return not s.receipt or s.lease_version >= 1
'''

VARIED = """\
from fencepost.model.effects import effects

forgetful = effects.variant("nobody-queries", without=["query"])
"""

TINY = ("--scope", "quick-keyed:call=1,state_version=2")
"""One request: enough for most of what a downstream with keys does, and searched in a moment."""


def having(claim: str) -> list[str]:
    """The protocols that have a claim of this id."""
    return [b.name for b in BUILT_IN.values() if any(c.id == claim for c in b.claims.promises())]


def with_switch(name: str) -> list[str]:
    return [b.name for b in BUILT_IN.values() if name in b.protocol.switches]


def with_scope(name: str) -> list[str]:
    return [b.name for b in BUILT_IN.values() if b.subject().scopes_named(name)]


def looked_at(*claims: str, **how: object) -> list[tuple[str, tuple[str, ...], list[str]]]:
    found = selected(claims=claims, **how)  # type: ignore[arg-type]
    return [(one.subject.model, one.claims, [s.name for s in one.scopes]) for one in found]


def test_without_anything_every_protocol_is_looked_at_in_its_own_scopes() -> None:
    assert looked_at() == [(b.name, (), list(b.scopes)) for b in BUILT_IN.values()]


def test_every_scope_that_the_registry_names_exists_and_says_why() -> None:
    for b in BUILT_IN.values():
        assert {*b.scopes, *b.sweep_scopes} <= set(b.protocol.scopes)
        assert all(b.protocol.scopes[n].why for n in b.scopes)


@pytest.mark.parametrize(
    ("claims", "models"),
    [
        (("S2",), having("S2")),
        (("S9",), having("S9")),
        (("every_contact_is_recorded",), ["effects"]),
        (("S25",), list(BUILT_IN)),
        (("S7", "S9"), ["core", *having("S9")]),
    ],
)
def test_a_claim_chooses_the_protocols_that_have_it(claims: tuple[str, ...], models: list[str]) -> None:
    assert [model for model, _, _ in looked_at(*claims)] == models


def test_each_protocol_gets_its_own_claims_only() -> None:
    found = {m: c for m, c, _ in looked_at("S7", "S9", "S25")}
    assert (found["core"], found["effects"]) == (("S7", "S25"), ("S9", "S25"))


@pytest.mark.parametrize(
    ("how", "models"),
    [
        ({"scope_text": "small"}, with_scope("small")),
        ({"scope_text": "small", "model": "effects"}, ["effects"]),
        ({"scope_text": "usual"}, list(BUILT_IN)),
        ({"scope_text": "usual:commit=1"}, ["core"]),
        ({"scope_text": "large"}, ["core", "workflow", "clocks"]),
        ({"scope_text": "rederived"}, ["effects"]),
        ({"scope_text": "small:commit=1"}, ["core"]),
        ({"on": ["record_expired"]}, with_switch("record_expired")),
        ({"off": ["crash"]}, with_switch("crash")),
        ({"variant": "late-commit-by-id"}, ["core"]),
        ({"variant": "fence-not-compared"}, ["effects"]),
        ({"variant": "start-ignores-a-cancel"}, ["workflow"]),
    ],
)
def test_a_scope_a_switch_or_a_variant_chooses_the_protocols_that_have_it(
    how: dict[str, object], models: list[str]
) -> None:
    assert [model for model, _, _ in looked_at(**how)] == models


def test_a_claim_decides_where_a_scope_is_in_several_protocols() -> None:
    assert looked_at("every_contact_is_recorded", scope_text="small") == [
        ("effects", ("every_contact_is_recorded",), ["small"])
    ]


@pytest.mark.parametrize("name", ["small", "usual", "large"])
def test_a_name_of_several_scopes_stands_for_each_of_them(name: str) -> None:
    for model, _, scopes in looked_at(scope_text=name):
        protocol = BUILT_IN[model].protocol
        assert scopes == [name] if name in protocol.scopes else list(BUILT_IN[model].subject().groups[name])


def test_what_changes_a_group_of_scopes_changes_each_of_them() -> None:
    ((_, _, scopes),) = looked_at(model="replay", scope_text="usual:worker=1", off=["crash"])
    assert scopes == [f"{name}, changed" for name in BUILT_IN["replay"].groups["usual"]]


def test_a_group_names_scopes_that_exist() -> None:
    for b in BUILT_IN.values():
        for scopes in b.groups.values():
            assert scopes
            assert set(scopes) <= set(b.protocol.scopes)


def test_the_library_takes_the_name_of_a_group_too() -> None:
    report = check(BUILT_IN["replay"].subject(), scope="usual", claims=["S25"], traces=False)
    assert [s["scope"] for s in report.figures["scopes"]] == list(BUILT_IN["replay"].groups["usual"])


def test_a_group_is_explained_by_what_its_scopes_are_for() -> None:
    (found,) = [e for e in explain(load_all(), "large") if "undone-late" in dict(e.facts)]
    assert dict(found.facts)["undone-late"] == BUILT_IN["workflow"].protocol.scopes["undone-late"].why


def test_a_variant_with_a_scope_of_its_own_is_looked_at_there() -> None:
    variants = BUILT_IN["effects"].variants
    name = next(iter(variants))

    assert looked_at(variant=name)[0][2] == [variants[name].scope]


def test_the_table_of_evidence_has_the_protocols_that_are_meant_for_it_unless_another_is_named() -> None:
    assert [m for m, _, _ in looked_at(for_evidence=True)] == ["core", "effects"]
    assert [m for m, _, _ in looked_at(for_evidence=True, model="workflow")] == ["workflow"]


def test_a_switch_without_a_scope_is_turned_in_each_scope_that_is_looked_at() -> None:
    ((_, _, scopes),) = looked_at(model="effects", on=["record_expired"])

    assert scopes == ["small, changed", "rederived, changed", "fenced-queryable, changed"]


def test_claims_of_ones_own_say_what_they_are_about() -> None:
    Path("own.py").write_text(ABOUT_EFFECTS.format(about=', about="effects"'), encoding="utf-8")

    assert [s.model for s in load_all("own.py")] == ["effects"]
    assert load("own.py").has("M8")
    done = fencepost("check", "M8", "--with", "own.py", *TINY)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("effects with own.py\n")


def test_claims_that_say_nothing_are_about_the_core_unless_a_model_is_named() -> None:
    Path("own.py").write_text(ABOUT_EFFECTS.format(about=""), encoding="utf-8")

    assert [s.model for s in load_all("own.py")] == ["core"]
    assert [s.model for s in load_all("own.py", model="effects")] == ["effects"]


@pytest.mark.parametrize(
    ("about", "how", "says"),
    [
        ("efects", {}, "did you mean 'effects'?"),
        ("effects", {"model": "core"}, "own.py has claims about effects, but --model says core"),
        ("core", {"variant": "fence-not-compared"}, "is one of effects; leave one of the two out"),
    ],
)
def test_claims_about_something_else_are_refused(about: str, how: dict[str, str], says: str) -> None:
    Path("own.py").write_text(ABOUT_EFFECTS.format(about=f', about="{about}"'), encoding="utf-8")
    with pytest.raises(UsageError) as said:
        load_all("own.py", **how)

    assert says in str(said.value)


def test_a_protocol_made_from_effects_has_the_claims_of_effects() -> None:
    Path("own.py").write_text(VARIED, encoding="utf-8")
    (subject,) = load_all("own.py")

    assert (subject.model, subject.name) == ("effects", "variant nobody-queries")
    assert subject.has("S8")
    assert not subject.has("S1")


def test_a_refutation_with_a_fault_that_the_claim_needs_off_says_so() -> None:
    alone = ("--off", "crash", "--off", "reply_lost", "--off", "request_lost", "--off", "declining")
    done = fencepost("check", "S8", "--scope", "keyed", "--on", "record_expired", *alone)

    assert done.code == 1
    assert "S8 needs record_expired off: with it on it promises nothing" in done.out
    (token,) = tokens(done.out)
    again = fencepost("replay", token)
    assert (again.code, again.err) == (1, "")
    assert "S8 needs record_expired off" in again.out
    assert 'load(model="effects")' in fencepost("replay", token, "--as", "pytest").out
    saved = json.loads(Path(".fencepost", f"{token}.json").read_text(encoding="utf-8"))
    assert saved["source"]["protocol"] == "effects"


def test_several_protocols_are_told_one_after_another_and_their_codes_together() -> None:
    models = list(BUILT_IN)
    pins = {f"{model}:S25": "UNDETERMINED" for model in models}
    Path("pins.json").write_text(json.dumps(pins), encoding="utf-8")
    common = ("simulate", "S25", "--runs", "2", "--steps", "2")
    text, data = fencepost(*common), json.loads(fencepost(*common, "--json").out)

    assert text.code == data["exit_code"] == 3
    assert [line for line in text.out.splitlines() if line in models] == models
    assert data["verdicts"] == pins
    assert [r["subject"] for r in data["reports"]] == models
    assert fencepost(*common, "--expect", "pins.json").code == 0


def test_an_id_of_several_protocols_may_be_pinned_once_for_all() -> None:
    Path("pins.json").write_text('{"S25": "UNDETERMINED"}', encoding="utf-8")
    common = ("simulate", "S25", "--runs", "2", "--steps", "2", "--expect", "pins.json")

    assert fencepost(*common).code == 0
    assert read_pins("pins.json") == {"S25": "UNDETERMINED"}


def test_the_list_of_claims_says_which_switches_a_claim_needs_off() -> None:
    listed = " ".join(fencepost("list", "claims", "--model", "effects").out.split())

    assert "Needs off: record_expired, record_volatile, two_transactions, key_per_retry." in listed
    assert "Needs off" not in fencepost("list", "claims", "--model", "core").out


def test_the_only_protocol_that_is_left_is_told_as_ever() -> None:
    data = json.loads(fencepost("check", "S5", "--scope", SMALLEST, "--json").out)

    assert (data["subject"], data["verdicts"]) == ("core", {"S5": "BOUNDED"})


@pytest.mark.parametrize(
    ("model", "switch"), [(b.name, s) for b in BUILT_IN.values() for s in b.protocol.switches]
)
def test_a_switch_is_explained_with_a_run_that_turns_it(model: str, switch: str) -> None:
    base = BUILT_IN[model]
    (found,) = (e for e in explain([base.subject()], switch) if e.title.startswith("switch"))
    on_anywhere = any(switch in s.switches for s in base.protocol.scopes.values())
    needing = {c.id for c in base.claims.promises() if switch in c.needs_off}

    assert found.run == (f"fencepost check --{'off' if on_anywhere else 'on'} {switch}",)
    assert {*dict(found.facts).get("needed off by", "").split(", ")} - {""} == needing
