"""What there is, as tables and as explanations: claims, actions, scopes, variants, refusals, switches."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from fencepost.checker.subject import Subject, UsageError
from fencepost.cli.errors import shown_place
from fencepost.cli.text import amount
from fencepost.model.lint import helpers_by_name
from fencepost.model.protocol import Action, did_you_mean
from fencepost.properties import REFUSALS, REGISTRY, Claim, Kind

if TYPE_CHECKING:
    from fencepost.model.variants import Variant

Table = tuple[Sequence[str], list[Sequence[str]]]


def claims_table(subject: Subject) -> Table:
    """The promises, then the supporting invariants and the witnesses."""
    rows = [(c.id, c.name, c.kind.value, c.section, _said(c)) for c in subject.claims.promises()]
    others = subject.claims.of_kind(Kind.SUPPORTING, Kind.SOMETIMES)
    rows += [("", c.name, c.kind.value, c.section, _said(c)) for c in others]
    return ("id", "name", "kind", "section", "sentence"), list(rows)


def _said(claim: Claim) -> str:
    """The sentence, and the switches against which it promises nothing."""
    return f"{claim.sentence} Needs off: {', '.join(claim.needs_off)}." if claim.needs_off else claim.sentence


def variants_of(subject: Subject) -> Mapping[str, Variant]:
    """The built-in variants of the protocol that a subject is, or varies."""
    return {} if subject.built_in is None else subject.built_in.variants


def actions_table(subject: Subject) -> Table:
    """Every action in reading order, with the refusals that it can answer."""
    rows = [
        (
            a.name,
            a.actor,
            "yes" if a.is_operation else "no",
            a.switch or "",
            f"{a.doc} {_answers(codes)}" if (codes := refusal_codes(a)) else a.doc,
        )
        for a in subject.protocol.actions.values()
    ]
    return ("name", "actor", "operation", "switch", "what happens"), list(rows)


def _answers(codes: Sequence[str]) -> str:
    return f"Refusals, in order: {', '.join(codes)}."


GROUP = "these scopes together, since none alone has everything"


def scopes_table(subject: Subject) -> Table:
    """Every scope with its bounds, its switches and its reason; before them the groups of scopes."""
    rows = [(name, ", ".join(scopes), "", GROUP) for name, scopes in subject.groups.items() if scopes]
    rows += [
        (s.name, s.describe(), ", ".join(sorted(s.switches)), s.why) for s in subject.protocol.scopes.values()
    ]
    return ("name", "bounds", "switches on", "why"), list(rows)


def variants_table(subject: Subject) -> Table:
    """The built-in variants."""
    claims = subject.claims.claims

    def breaks(name: str, steps: int) -> str:
        return f"{claims[name].id if name in claims else name} ({steps})"

    variants = variants_of(subject).values()
    own = any(getattr(v, "scope", "") for v in variants)
    rows = [
        (
            v.name,
            *([getattr(v, "scope", "")] * own),
            ", ".join(breaks(*b) for b in v.breaks.items()) or "nothing",
            v.story,
        )
        for v in variants
    ]
    return ("name", *(["scope"] * own), "breaks (steps)", "story"), list(rows)


def refusals_table(subject: Subject) -> Table:
    """The registry of refusals, in order of precedence."""
    del subject
    yes = {True: "yes", False: "no"}
    rows = [(r.code, yes[r.definite], yes[r.retryable], f"{r.meaning} {r.sequel}") for r in REGISTRY]
    return ("code", "definite", "may succeed later", "meaning, and what the caller does next"), list(rows)


def switches_table(subject: Subject) -> Table:
    """The switches of the world, with the scopes that have them on."""
    scopes = subject.protocol.scopes.values()
    rows = [
        (name, ", ".join(s.name for s in scopes if name in s.switches), meaning)
        for name, meaning in subject.protocol.switches.items()
    ]
    return ("name", "on in scope", "meaning"), list(rows)


TABLES: Mapping[str, Callable[[Subject], Table]] = {
    "claims": claims_table,
    "actions": actions_table,
    "scopes": scopes_table,
    "variants": variants_table,
    "refusals": refusals_table,
    "switches": switches_table,
}


def names(subject: Subject, kind: str) -> list[str]:
    """The names of one kind; of claims, the ids of the promises."""
    if kind == "claims":
        return list(subject.claims.ids())
    _, rows = TABLES[kind](subject)
    return [row[0] for row in rows]


def refusal_codes(action: Action) -> list[str]:
    """The codes that an action can be refused with, in the order in which they are asked."""
    return list(dict.fromkeys(_codes(action.function, ())))


def _codes(function: Callable[..., Any], callers: tuple[CodeType, ...]) -> Iterator[str]:
    """The codes in a function's text, and at the place of each helper those in the text of that one."""
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType) or plain.__code__ in callers:
        return
    helpers: dict[str, list[Callable[..., Any]]] = {}
    for name, helper in helpers_by_name(plain):
        helpers.setdefault(name, []).append(helper)
    for found in _words(plain.__code__):
        if found in REFUSALS:
            yield found
        for helper in helpers.get(found, ()):
            yield from _codes(helper, (*callers, plain.__code__))


def _words(code: CodeType) -> Iterator[str]:
    """The texts and the outside names of some code, and of code nested in it, in order."""
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, CodeType):
            yield from _words(instruction.argval)
        elif instruction.opname in ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF"):
            yield from [instruction.argval] if isinstance(instruction.argval, str) else []


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say about one thing: its title, its sentences, labelled facts, and source text."""

    title: str
    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    source: str = ""
    place: str = ""
    run: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        facts: dict[str, list[str]] = {}
        for label, text in self.facts:
            facts.setdefault(label, []).append(text)
        return {
            "title": self.title,
            "sentences": list(self.sentences),
            "facts": facts,
            "source": self.source,
            "place": self.place,
            "run": list(self.run),
        }


def explain(subjects: Sequence[Subject], name: str) -> list[Explanation]:
    """All that goes by a name: claims by id or name, refusals, variants, actions, scopes, switches."""
    found: list[Explanation] = []
    if name in REFUSALS:
        found.append(_refusal(subjects, name))
    for subject in subjects:
        here = _in_subject(subject, name)
        if len(subjects) > 1:
            here = [replace(e, facts=(("protocol", subject.protocol.name), *e.facts)) for e in here]
        found += here
    if not found:
        known = [*REFUSALS]
        for subject in subjects:
            known += [*subject.claims.ids(), *subject.claims.claims, *variants_of(subject)]
            protocol = subject.protocol
            known += [*protocol.actions, *subject.groups, *protocol.scopes, *protocol.switches]
        remedy = did_you_mean(name, known, "see `fencepost list`").split("; known:")[0]
        raise UsageError(f"nothing is called {name!r}: {remedy}")
    return found


def _in_subject(subject: Subject, name: str) -> list[Explanation]:
    protocol = subject.protocol
    found = [_claim(subject, c) for c in subject.claims.claims.values() if name in (c.id, c.name)]
    if name in variants_of(subject):
        found.append(_variant(variants_of(subject)[name]))
    if name in protocol.actions:
        found.append(_action(protocol.actions[name]))
    if name in protocol.scopes:
        found.append(_scope(subject, name))
    elif subject.groups.get(name):
        found.append(_group(subject, name))
    if name in protocol.switches:
        found.append(_switch(subject, name))
    return found


def _claim(subject: Subject, claim: Claim) -> Explanation:
    everything = subject.claims.claims
    facts = [("kind", claim.kind.value)]
    if claim.section:
        facts.append(("section", claim.section))
    for witness in claim.witnesses:
        sentence = everything[witness].sentence if witness in everything else "not declared"
        facts.append(("witness", f"{witness}: {sentence}"))
    if claim.kind is Kind.SOMETIMES:
        facts += [
            ("witness of", f"{c.id} {c.name}") for c in everything.values() if claim.name in c.witnesses
        ]
    for other in subject.supporting():
        if claim.id in other.supports and claim.kind is not Kind.SUPPORTING:
            facts.append(("supported by", f"{other.name}: {other.sentence}"))
    if claim.supports:
        facts.append(("supports", ", ".join(claim.supports)))
    for switch in claim.needs_off:
        meaning = subject.protocol.switches.get(switch, "not declared")
        facts.append(("needs off", f"{switch}: {meaning}"))
    if claim.by_shape:
        facts.append(("cannot break", claim.by_shape))
    for variant in variants_of(subject).values():
        steps = variant.breaks.get(claim.name, variant.breaks.get(claim.id))
        if steps is not None:
            facts.append(("broken by", f"{variant.name}, in {amount(steps, 'step')}: {variant.story}"))
    title = f"{claim.id} {claim.name}" if claim.id != claim.name else claim.name
    return Explanation(
        title,
        (claim.sentence,),
        tuple(facts),
        _source(claim.predicate),
        shown_place(claim.place),
        _ways(subject, claim),
    )


def _ways(subject: Subject, claim: Claim) -> tuple[str, ...]:
    if claim.kind not in (Kind.ALWAYS, Kind.EACH_STEP):
        return ()
    file = f" --with {subject.file}" if subject.file else ""
    ways = [f"fencepost check {claim.id}{file}", f"fencepost prove {claim.id}{file}"]
    ways += [f"fencepost check {claim.id}{file} --on {switch}" for switch in claim.needs_off[:1]]
    return tuple(ways)


def _refusal(subjects: Sequence[Subject], code: str) -> Explanation:
    refusal = REFUSALS[code]
    facts = [
        ("definite", "yes: this call changed nothing" if refusal.definite else "no: it may have happened"),
        ("may succeed later", "yes" if refusal.retryable else "no"),
        ("precedence", f"{[r.code for r in REGISTRY].index(code) + 1} of {len(REGISTRY)}"),
    ]
    for subject in subjects:
        where = f" of {subject.protocol.name}" if len(subjects) > 1 else ""
        actions = subject.protocol.actions.values()
        facts += [("answered by", f"{a.name}{where}") for a in actions if code in refusal_codes(a)]
    return Explanation(f"refusal {code}", (refusal.meaning, refusal.sequel), tuple(facts))


def _variant(variant: Variant) -> Explanation:
    name = variant.name
    facts = [("breaks", f"{claim}, in {amount(steps, 'step')}") for claim, steps in variant.breaks.items()]
    if scope := variant.scope:
        facts.append(("in scope", scope))
    if variant.faults:
        facts.append(("stands for", ", ".join(variant.faults)))
    return Explanation(
        f"variant {name}", (variant.story,), tuple(facts), run=(f"fencepost check --variant {name}",)
    )


def _action(action: Action) -> Explanation:
    facts = [("actor", action.actor)]
    if action.home is not None:
        facts.append(("operation", f"decided by the {action.home} in one transaction"))
    if action.switch is not None:
        facts.append(("only with", f"the switch {action.switch}"))
    codes = refusal_codes(action)
    if codes:
        facts.append(("refusals, in order", ", ".join(codes)))
    place = shown_place(f"{action.site.file}:{action.site.line}")
    return Explanation(f"action {action.name}", (action.doc,), tuple(facts), _source(action.function), place)


def _scope(subject: Subject, name: str) -> Explanation:
    scope = subject.protocol.scopes[name]
    facts = [("bounds", scope.describe()), ("switches on", ", ".join(sorted(scope.switches)) or "none")]
    run = f"fencepost check --scope {name} --model {subject.model}"
    return Explanation(f"scope {name}", (scope.why,), tuple(facts), run=(run,))


def _group(subject: Subject, name: str) -> Explanation:
    scopes = [subject.protocol.scopes[n] for n in subject.groups[name]]
    facts = [(s.name, s.why) for s in scopes]
    run = f"fencepost check --scope {name} --model {subject.protocol.name}"
    return Explanation(f"scopes {name}", (f"{GROUP[0].upper()}{GROUP[1:]}.",), tuple(facts), run=(run,))


def _switch(subject: Subject, name: str) -> Explanation:
    protocol = subject.protocol
    facts = [("on in scope", s.name) for s in protocol.scopes.values() if name in s.switches]
    facts += [("action", f"{a.name}: {a.doc}") for a in protocol.actions.values() if a.switch == name]
    if needing := dict.fromkeys(c.id for c in subject.claims.promises() if name in c.needs_off):
        facts.append(("needed off by", ", ".join(needing)))
    somewhere = any(name in s.switches for s in protocol.scopes.values())
    run = f"fencepost check {'--off' if somewhere else '--on'} {name}"
    return Explanation(f"switch {name}", (protocol.switches[name],), tuple(facts), run=(run,))


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(inspect.unwrap(function)).rstrip()
    except OSError:
        return ""
