"""A saved run as a pytest test to paste: it fails as long as the claim breaks along the run."""

from __future__ import annotations

import json
from typing import Any

from fencepost.checker.subject import DEFAULT, Subject
from fencepost.checker.traces import Trace
from fencepost.properties import Claim


def as_pytest(trace: Trace, subject: Subject, claim: Claim, token: str) -> str:
    """The text of a test that asserts the claim along the run.

    A step that ends otherwise by now does not stop it, so a mended model passes. If the run stops before its
    last step, the test is skipped, visibly, since it says little then.
    """
    scope = trace.scope
    steps = "\n".join(
        f"    ({_text(s.action)}, {s.arguments!r}),  # {s.label}: {s.outcome}" for s in trace.steps
    )
    over_steps = claim.over_steps
    check = (
        "runner.holds_step(claim.predicate, state, made)"
        if over_steps
        else "runner.holds(claim.predicate, made.state)"
    )
    variant = subject.variant if not subject.file or subject.variant == trace.source.get("variant") else ""
    return f'''\
"""A run that broke {claim.name}: `fencepost replay {token} --as pytest`."""

import pytest

from fencepost.checker.subject import load
from fencepost.model import Scope
from fencepost.model.run import Runner

SCOPE = Scope(
    {_text(scope.name)},
    sizes={_text(dict(scope.sizes))},
    bounds={_text(dict(scope.bounds))},
    switches=frozenset({_text(sorted(scope.switches))}),
)
STEPS = [
{steps}
]


def test_{claim.name}_along_run_{token}() -> None:
    """{_sentence(claim)}"""
    subject = {_loading(subject, variant)}
    claim = subject.claims.claims[{_text(claim.name)}]
    runner = Runner(subject.protocol, SCOPE)
    state = runner.initial()
    for number, (action, arguments) in enumerate(STEPS, 1):
        made = runner.step(state, action, arguments)
        if isinstance(made, str):  # the model does not go this way any more
            if number < len(STEPS):
                pytest.skip(f"step {{number}}, {{action}}, is {{made}} now; the run says nothing any more")
            return
        assert {check}, f"step {{number}}, {{made.label}}: not so"
        state = made.state
'''


def _loading(subject: Subject, variant: str) -> str:
    """The call that loads the subject again; the core is what `load` takes by itself."""
    base = subject.built_in
    given = [_text(subject.file)] if subject.file else []
    built_in = base is not None and variant in base.variants
    if built_in and base is not None and base.variants[variant].protocol is subject.protocol:
        given.append(f"variant={_text(variant)}")
    elif base is not None and base.name != DEFAULT and base.protocol is subject.protocol:
        given.append(f"model={_text(base.name)}")
    return f"load({', '.join(given)})"


def _text(value: Any) -> str:
    """Plain data as Python source, with the quotes of the house."""
    return json.dumps(value, ensure_ascii=False)


def _sentence(claim: Claim) -> str:
    return claim.sentence.replace("\\", "\\\\").replace('"""', "'''")
