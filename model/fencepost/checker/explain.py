"""Why a claim is false in a state or on a step: the smallest false parts of its term, with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import Boolean, LeafDomain
from fencepost.model.ground import show_code
from fencepost.model.run import Runner, Transition
from fencepost.model.trace import PRIME

Values = Mapping[str, int]
"""Codes by cell name; cells after a step have a name that ends in '."""


def evaluate(term: t.Term, values: Values) -> int:
    """The value of a ground term: the plain meaning of its operations."""
    op, args = term.op, term.args
    if op == "const":
        return int(term.payload or 0)
    if op == "var":
        return values[str(term.payload)]
    if op == "not":
        return 1 - evaluate(args[0], values)
    if op == "and":
        return int(all(evaluate(a, values) for a in args))
    if op == "or":
        return int(any(evaluate(a, values) for a in args))
    if op == "eq":
        return int(evaluate(args[0], values) == evaluate(args[1], values))
    if op == "le":
        return int(evaluate(args[0], values) <= evaluate(args[1], values))
    if op == "add":
        return sum(evaluate(a, values) for a in args)
    if op == "neg":
        return -evaluate(args[0], values)
    if op == "ite":
        return evaluate(args[1] if evaluate(args[0], values) else args[2], values)
    raise ValueError(f"{op} is no operation of ground terms")


def false_parts(term: t.Term, values: Values, *, wanted: bool = True) -> list[str]:
    """What makes `term` differ from `wanted`: a few leaves of its structure, as a person reads them."""
    if bool(evaluate(term, values)) is wanted:
        return []
    if term.op == "not":
        return false_parts(term.args[0], values, wanted=not wanted)
    if (term.op == "and") is wanted and term.op in ("and", "or"):
        for part in term.args:
            found = false_parts(part, values, wanted=wanted)
            if found:
                return found
    if term.op in ("and", "or"):  # of an implication the conclusion comes last: say it first
        parts = (x for part in reversed(term.args) for x in false_parts(part, values, wanted=wanted))
        return list(dict.fromkeys(parts))[:4]
    if term.op == "ite" and isinstance(term.domain, Boolean):
        chosen = term.args[1] if evaluate(term.args[0], values) else term.args[2]
        return false_parts(chosen, values, wanted=wanted)
    return [_sentence(term, values)]


def _sentence(term: t.Term, values: Values) -> str:
    if term.op in ("eq", "le"):
        sign = {"eq": ("is", "is not"), "le": ("is at most", "is above")}[term.op]
        true = bool(evaluate(term, values))
        a, b = term.args
        if term.op == "eq" and not t.is_const(b):  # they stand in the order in which they were first made
            a, b = sorted((a, b), key=lambda x: _name(x, values))
        return f"{_named(a, values)} {sign[0] if true else sign[1]} {_named(b, values, other=a)}"
    word = str(term.payload)
    if word.startswith("step "):
        _, what, *name = word.split(" ", 2)
        negation = "" if evaluate(term, values) else "not "
        return f"the step is {negation}{'refused' if what == 'refused' else name[0]}"
    value = "yes" if evaluate(term, values) else "no"
    return f"{_name(term, values)} is {value}"


def _name(term: t.Term, values: Values) -> str:
    while term.op == "ite":  # a family indexed by a state value: name the cell that it is here
        term = term.args[1] if evaluate(term.args[0], values) else term.args[2]
    text = t.show(term)
    return f"{text.replace(PRIME, '')} after" if PRIME in text else text


def _named(term: t.Term, values: Values, other: t.Term | None = None) -> str:
    domain = term.domain
    code = evaluate(term, values)
    if term.op == "const":
        if other is not None and isinstance(other.domain, LeafDomain):
            return show_code(other.domain, code)
        return show_code(domain, code) if isinstance(domain, LeafDomain) else str(code)
    shown = show_code(domain, code) if isinstance(domain, LeafDomain) else str(code)
    return f"{_name(term, values)} ({shown})"


def why_false(term: t.Term, before: Values, after: Values, step: Mapping[str, int]) -> list[str]:
    """Why a ground term is false: `before` and `after` are codes, the same ones for a claim over states."""
    values = {**before, **{f"{k}{PRIME}": v for k, v in after.items()}, **step}
    return false_parts(term, values)


def step_words(transition: Transition, term: t.Term) -> dict[str, int]:
    """The truth of the words about a step that occur in a claim's term."""
    found: dict[str, int] = {}
    for variable in t.variables_of([term]):
        name = str(variable.payload)
        if name == "step refused":
            found[name] = int(transition.refused)
        elif name.startswith("step action "):
            found[name] = int(name.removeprefix("step action ") == transition.action.name)
        elif name.startswith("step outcome "):
            found[name] = int(name.removeprefix("step outcome ") == transition.outcome)
    return found


def against_unbroken(unbroken: Runner, state: Any, transition: Transition) -> str:
    """What the unbroken model does at the step that broke the claim, in a sentence; empty if the same."""
    if transition.action.name not in unbroken.protocol.actions:
        return f"the unbroken model has no action {transition.action.name}"
    made = unbroken.step(state, transition.action.name, transition.codes)
    if isinstance(made, str):
        what = "not possible" if made == "disabled" else made
        return f"in the unbroken model {transition.label} is {what} here"
    if made.outcome != transition.outcome:
        if made.refused:
            return f"the guard that would have refused {transition.label}: {made.outcome}"
        return f"in the unbroken model {transition.label} ends {made.outcome}"
    if made.state != transition.state:
        before, after = unbroken.codes(made.state), unbroken.codes(transition.state)
        different = [k for k in before if before[k] != after[k]]
        return f"in the unbroken model {transition.label} leaves {', '.join(different[:4])} otherwise"
    return ""
