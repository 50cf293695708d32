"""What a command looks at: which protocols, which of their claims, in which scopes.

A claim, a scope or a switch chooses the protocols that have it. Where several have it, all of them are looked
at; ``--model`` names one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.checker.subject import Subject, UsageError, load_all, refuse_unknown
from fencepost.cli.scopes import changes_in, chosen_scope
from fencepost.model import Scope
from fencepost.model.protocol import did_you_mean, listed


@dataclass(frozen=True, slots=True)
class Selected:
    """A protocol, the claims that were asked for (none means all), and the scopes to look in."""

    subject: Subject
    claims: tuple[str, ...]
    scopes: tuple[Scope, ...]


def selected(
    *,
    file: str = "",
    variant: str = "",
    model: str = "",
    claims: Sequence[str] = (),
    scope_text: str = "",
    on: Sequence[str] = (),
    off: Sequence[str] = (),
    sweeps: bool = False,
    for_evidence: bool = False,
) -> list[Selected]:
    """What is asked for; UsageError with close names for what no protocol has.

    Without a scope's name each protocol is looked at in its own, for checks or for `sweeps`. The table of
    `evidence` has only some protocols, unless a model or a file names another.
    """
    subjects = load_all(file, variant=variant, model=model)
    if for_evidence and not (file or model):
        subjects = tuple(s for s in subjects if s.built_in is None or s.built_in.in_evidence)
    refuse_unknown(claims, subjects)
    with_claims = [(s, tuple(c for c in claims if s.has(c))) for s in subjects]
    among = [(s, own) for s, own in with_claims if own or not claims]
    fitting = _fitting([s for s, _ in among], scope_text, (*on, *off))
    _refuse_lost(claims, among, fitting, scope_text or ", ".join((*on, *off)))
    return [
        Selected(s, own, tuple(_scopes(s, scope_text, on, off, sweeps=sweeps)))
        for s, own in among
        if s in fitting
    ]


def _fitting(subjects: list[Subject], scope_text: str, switches: Iterable[str]) -> list[Subject]:
    """The subjects that have the scope, the sizes and the switches that were asked for."""
    fitting = subjects
    name = scope_text.partition(":")[0]
    if name:
        fitting = [s for s in fitting if s.scopes_named(name)]
        if not fitting:
            if len(subjects) == 1:
                subjects[0].scope(name)
            known = [n for s in subjects for n in (*s.groups, *s.protocol.scopes)]
            names = listed(s.protocol.name for s in subjects)
            remedy = did_you_mean(name, dict.fromkeys(known), empty="it has none")
            raise UsageError(f"no scope {name!r} in {names}: {remedy}")
    for switch in switches:
        fitting = _having(fitting, switch, [s.protocol.switches for s in fitting], "switch")
    for change in changes_in(scope_text):
        sizes = [{n for c in s.protocol.scopes.values() for n in (*c.sizes, *c.bounds)} for s in fitting]
        fitting = _having(fitting, change, sizes, "size or bound")
    return fitting


def _having(subjects: list[Subject], name: str, known: Sequence[Iterable[str]], what: str) -> list[Subject]:
    """Those that have a name. Of one subject it is looked up later, where the message can say more."""
    found = [s for s, names in zip(subjects, known, strict=True) if name in names]
    if found or len(subjects) == 1:
        return found or subjects
    everything = dict.fromkeys(n for names in known for n in names)
    models = listed(s.protocol.name for s in subjects)
    raise UsageError(
        f"no {what} {name!r} in {models}; {did_you_mean(name, everything, empty='there is none')}"
    )


def _refuse_lost(
    claims: Iterable[str], among: list[tuple[Subject, tuple[str, ...]]], fitting: list[Subject], asked: str
) -> None:
    """UsageError for a claim that only protocols without the scope or switch have."""
    for claim in claims:
        owners = [s for s, own in among if claim in own]
        if not any(s in fitting for s in owners):
            names = listed(s.protocol.name for s in owners)
            scopes = ", ".join(dict.fromkeys(n for s in owners for n in s.protocol.scopes))
            raise UsageError(
                f"{claim} is a claim of {names}, which does not have {asked!r}; its scopes are {scopes}"
            )


def _scopes(
    subject: Subject, text: str, on: Sequence[str], off: Sequence[str], *, sweeps: bool
) -> Iterator[Scope]:
    group, colon, changes = text.partition(":")
    if group:
        names = subject.scopes_named(group) or (group,)
    else:
        names = subject.sweep_scopes if sweeps else subject.default_scopes or ("small",)
    for name in names:
        yield chosen_scope(subject, f"{name}{colon}{changes}", on=on, off=off)
