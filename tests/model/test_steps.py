"""A claim over steps, made for all commands at once, is what substitution makes of it for each alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fencepost.checker.subject import BUILT_IN
from fencepost.model import terms as t
from fencepost.model.ground import GroundCommand, GroundModel, ground_model
from fencepost.model.steps import WORD, step_word
from fencepost.model.trace import PRIME

if TYPE_CHECKING:
    from collections.abc import Callable


def alone(model: GroundModel, command: GroundCommand, term: t.Term) -> t.Term:
    """By the plain definition: each cell after the step is what the command makes of it, or as before."""
    replaced = {}
    for variable in t.variables_of([term]):
        name = str(variable.payload)
        if name.startswith(WORD):
            replaced[variable] = t.boolean(step_word(name, command.source))
        elif name.endswith(PRIME):
            cell = model.grounder.cells[name.removesuffix(PRIME)]
            replaced[variable] = command.updates.get(cell.name, cell.term)
    return t.substitute(term, replaced)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("order", [list, lambda claims: list(claims)[::-1]], ids=["forth", "back"])
def test_each_claim_over_steps(name: str, order: Callable[[object], list[object]]) -> None:
    subject = BUILT_IN[name].subject()
    model = ground_model(subject.protocol, subject.scope(subject.sweep_scopes[0]))
    claims = [c for c in subject.claims.claims.values() if c.over_steps]
    different = 0
    for claim in order(claims):
        term = model.grounder.boolean(model.traced(claim.predicate))
        made = model.step_claim(claim.predicate)
        assert len(made) == len(model.commands)
        for command, found in zip(model.commands, made, strict=True):
            assert found is alone(model, command, term), f"{claim.name} after {command.label}"
        different += len(set(made)) > 1
    assert different, "no claim says anything else of one command than of another"
