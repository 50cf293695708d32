"""Fresh ids in finite readings: why it is enough to try the smallest unused one, as a condition on states.

It is enough as long as unused ids cannot be told apart. A model can break that, by writing about an id
that nobody took, or by remembering one that was given back; then a search that tries the smallest has not
looked at everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.model import terms as t
from fencepost.model.domains import Sort
from fencepost.model.ground import GroundModel
from fencepost.model.protocol import Fresh


def unused_are_alike(model: GroundModel) -> t.Term:
    """That elements which a fresh parameter may take cannot be told apart, over the cells of `model`.

    Every cell of an unused element is as in the beginning, and no other cell names it.
    """
    fresh = {d for a in model.protocol.actions.values() for _, d in a.parameters if isinstance(d, Fresh)}
    parts = []
    for domain in sorted(fresh, key=lambda d: (d.sort.name, d.used)):
        for number, cell in enumerate(model.grounder.used_cells(domain)):
            parts.append(t.or_((cell.term, t.and_(_tells_of(model, domain.sort, number)))))
    return t.and_(parts)


def _tells_of(model: GroundModel, sort: Sort, number: int) -> Iterator[t.Term]:
    kept = {c.name for c in model.cells}
    for variable in model.protocol.variables.values():
        places = list(model.grounder.indices(variable.index))
        for suffix, domain in variable.domain.leaves():
            cells = model.grounder.by_leaf[f"{variable.name}{suffix}"]
            for place, cell in zip(places, cells, strict=True):
                if cell.name not in kept:
                    continue
                if any(d == sort and i == number for d, i in zip(variable.index, place, strict=True)):
                    yield t.eq(cell.term, t.constant(model.initial[cell.name], domain))
                elif domain == sort:
                    there = model.grounder.cells.get(cell.name.removesuffix(suffix) + ".present")
                    named = t.eq(cell.term, t.constant(number, domain))
                    yield t.not_(t.and_((there.term, named)) if there is not None else named)
