"""Fresh ids are interchangeable: no action and no claim may name one."""

from __future__ import annotations

import pytest

from fencepost.model import BOOLEAN, Element, Family, ModelError, Protocol, Sort, State, some, when
from fencepost.model.trace import trace_action, trace_claim

ids = Sort("id")


def tickets() -> Protocol:
    p = Protocol("tickets")
    p.variable("used", Family(ids, of=BOOLEAN), False, home="store", meaning="ids given out")

    @p.action("clerk", i=p.fresh(ids, unless="used"))
    def give(s: State, i: Element) -> None:
        s.used[i] = True

    return p


def test_a_claim_that_names_a_fresh_id_is_refused() -> None:
    def first_is_used(s: State) -> object:
        return s.used[ids.element(0)]

    with pytest.raises(ModelError, match=r"i1 is named.*every"):
        trace_claim(tickets(), first_is_used)


def test_an_action_that_names_a_fresh_id_is_refused() -> None:
    p = tickets()

    @p.action("clerk")
    def take_back(s: State) -> None:
        when(s.used[ids.element(1)])
        s.used[ids.element(1)] = False

    with pytest.raises(ModelError, match=r"i2 is named"):
        trace_action(p, p.actions["take_back"])


def test_a_claim_over_all_ids_is_fine() -> None:
    def one_is_used(s: State) -> object:
        return some(ids, lambda i: s.used[i])

    trace_claim(tickets(), one_is_used)
