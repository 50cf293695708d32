"""Every action of the model is done with an implementation, or it is an error that says what to write."""

import pytest

from fencepost.checker.subject import Subject
from fencepost.conformance import MappingError, verify
from fencepost.conformance.core import PERFORMANCES, STORED
from fencepost.conformance.counterparts import performance_of, stored_variables
from fencepost.model import BOOLEAN, Element, State, when
from fencepost.model.core import core
from fencepost.model.core.state import STORE, WORKER, acts, workers
from fencepost.properties import CORE
from fencepost.reference.adapter import make_sqlite


def test_the_mapping_is_complete_and_has_nothing_else() -> None:
    assert set(PERFORMANCES) == set(core.actions)
    assert set(STORED) == set(stored_variables(core))


def test_a_new_action_without_a_mapping_is_an_error_that_says_what_to_write() -> None:
    grown = core.extended("grown")

    @grown.action(WORKER, w=workers)
    def nap(s: State, w: Element) -> None:
        """A worker takes a nap."""
        when(acts(s, w))
        s.paused[w] = True

    with pytest.raises(MappingError) as found:
        verify(make_sqlite(), subject=Subject(grown, CORE))
    message = str(found.value)
    assert "the action 'nap' of grown is not mapped" in message
    assert "@performs('nap')\n    def nap(session, w):" in message
    assert "fencepost.conformance.core" in message


def test_an_action_with_another_parameter_is_an_error_that_says_what_to_change() -> None:
    changed = core.variant("changed", without=["expire"])

    @changed.action("clock", late=BOOLEAN)
    def expire(s: State, late: bool) -> None:
        """The lease's time is over."""
        when(s.live)
        s.live = late

    with pytest.raises(MappingError, match=r"change it to def expire\(session, late\)"):
        performance_of(changed, changed.actions["expire"])


def test_a_new_stored_variable_without_a_mapping_is_an_error_that_says_what_to_write() -> None:
    grown = core.extended("grown")
    grown.variable(
        "deadline_passed", BOOLEAN, initially=False, home=STORE, meaning="whether the deadline is over"
    )
    with pytest.raises(MappingError, match="'deadline_passed'"):
        verify(make_sqlite(), subject=Subject(grown, CORE))


def test_each_function_of_the_mapping_takes_the_parameters_of_its_action() -> None:
    for action in core.actions.values():
        performance_of(core, action)
