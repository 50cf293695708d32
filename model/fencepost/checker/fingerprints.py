"""What a protocol does, as a hash: by it a trace or a cached result knows that the model has changed."""

from __future__ import annotations

import hashlib

from fencepost.model import Protocol
from fencepost.model import terms as t
from fencepost.model.domains import INTEGER


def fingerprint(protocol: Protocol) -> str:
    """A hash of what a protocol does."""
    from fencepost.model.errors import NeedsFiniteError
    from fencepost.model.trace import trace_action

    digest = hashlib.sha256()
    for variable in protocol.variables.values():
        digest.update(repr((variable.name, variable.index, variable.domain, variable.initially)).encode())
    for action in protocol.actions.values():
        digest.update(repr((action.name, action.actor, action.switch, action.parameters)).encode())
        try:
            for command in trace_action(protocol, action):
                guard = [canonical(term) for term in command.guard]
                updates = [(name, canonical(term)) for name, term in sorted(command.updates.items())]
                digest.update(repr((command.outcome, guard, updates)).encode())
        except NeedsFiniteError:
            digest.update(action.function.__code__.co_code)
    return digest.hexdigest()[:16]


def canonical(term: t.Term) -> str:
    """A hash of what a term says, whatever was read before it.

    An equality has its operands in the order in which terms were first made, and a constant that is added on
    either side of it.
    """
    known: dict[t.Term, str] = {}

    def visit(x: t.Term) -> str:
        if x not in known:
            if x.op == "eq" and t.kind(x.args[0].domain) is INTEGER:
                sides = [(visit(rest), number) for rest, number in map(t.without_constant, x.args)]
                (left, n), (right, m) = sorted(sides)
                said: tuple[object, ...] = ("eq", left, right, m - n)
            elif x.op == "eq":
                said = ("eq", *sorted(map(visit, x.args)))
            else:
                said = (x.op, *map(visit, x.args)) if x.args else (x.op, t.show(x))
            known[x] = hashlib.sha256(repr(said).encode()).hexdigest()
        return known[x]

    return visit(term)
