"""The guards of the SQL are the refusals of the model, in the order of the registry."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.core import core
from fencepost.properties.refusals import precedence
from fencepost.reference import STATEMENTS
from fencepost.reference.codes import PRECEDENCE
from fencepost.reference.guards import guards_of

OPERATIONS = {"acquire": "acquire", "renew": "renew", "release": "release", "decide_commit": "commit"}
"""The operations of the model, and what the store calls them."""

ONLY_THE_STORE = {
    "no-such-instance": "the model has one instance, and it is there",
    "instance-exists": "likewise",
    "lease-version-exhausted": "the model's versions have no end; where a scope ends them is a cut, no guard",
    "state-version-exhausted": "likewise",
}
"""Codes that only the store has, each with the reason."""


def refusals_in_the_model(function: Callable[..., Any]) -> list[str]:
    """The codes of an operation's `refuse_unless`, in the order of its lines and of the helpers it calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [
        (node.lineno, node.func.id, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    codes: list[str] = []
    for _, name, call in sorted(calls, key=lambda found: found[0]):
        if name == "refuse_unless":
            codes.append(ast.literal_eval(call.args[1]))
        elif name.startswith("refuse_"):
            codes += refusals_in_the_model(function.__globals__[name])
    return codes


def guards_of_the_store(operation: str) -> list[str]:
    """The codes of an operation's guards, in the order of its lines."""
    return [guard.code for guard in guards_of(getattr(STATEMENTS, operation))]


def test_each_operation_of_the_model_is_listed() -> None:
    assert set(OPERATIONS) == {name for name, action in core.actions.items() if action.is_operation}


@pytest.mark.parametrize(("action", "operation"), OPERATIONS.items())
def test_the_store_refuses_what_the_model_refuses_in_the_same_order(action: str, operation: str) -> None:
    shared = [code for code in guards_of_the_store(operation) if code not in ONLY_THE_STORE]
    assert shared == refusals_in_the_model(core.actions[action].function)


@pytest.mark.parametrize(("action", "operation"), OPERATIONS.items())
def test_the_order_is_that_of_the_registry(action: str, operation: str) -> None:
    model = refusals_in_the_model(core.actions[action].function)
    assert model == sorted(model, key=precedence)
    store = [code for code in PRECEDENCE[operation] if code not in ONLY_THE_STORE]
    assert store == sorted(store, key=precedence)


def test_each_code_that_only_the_store_has_is_used_by_it_and_unknown_to_the_model() -> None:
    used = {code for codes in PRECEDENCE.values() for code in codes}
    answers = {member.name for member in core.answers.members} if core.answers is not None else set()
    assert set(ONLY_THE_STORE) <= used
    assert set(ONLY_THE_STORE) & answers == set()


@pytest.mark.parametrize("operation", PRECEDENCE)
def test_each_code_of_the_store_is_registered_and_the_registry_has_its_order(operation: str) -> None:
    found = [code for code in PRECEDENCE[operation] if code not in ONLY_THE_STORE]
    assert found == sorted(found, key=precedence)
