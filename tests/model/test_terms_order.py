"""What a term looks like does not depend on which terms a process made before it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from fencepost.checker.subject import built_in
from fencepost.model.ground import Readings

order = {"forth": list, "back": lambda items: list(items)[::-1]}[sys.argv[2]]
subject = built_in(sys.argv[1]).subject()
protocol, scope = subject.protocol, subject.scope(subject.sweep_scopes[0])

readings, lines = Readings(protocol), []
for claim in order(subject.chosen()):
    lines.append(f"{claim.name}: {readings.claim(claim.predicate, scope)!r}")
for action in order(protocol.actions.values()):
    for command in readings.action(action, scope):
        lines.append(f"{action.name}: {command.guard!r} {command.updates!r}")
print("\\n".join(sorted(lines)))
"""


def printed(model: str, order: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, model, order], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("model", ["recovery", "core"])
def test_claims_and_actions_read_alike_in_whatever_order_they_are_read(model: str) -> None:
    forth, back = printed(model, "forth"), printed(model, "back")
    assert len(forth) > 20
    assert back == forth


EQUALITIES = """
import sys
from fencepost.model import terms as t
from fencepost.model.domains import INTEGER

order = {"forth": list, "back": lambda items: list(items)[::-1]}[sys.argv[1]]
made = {name: t.variable(name, INTEGER) for name in order(["a", "b", "c"])}
a, b, c = (made[name] for name in "abc")
one, two = t.integer(1), t.integer(2)
pairs = [(a, b), (a, t.add(b, one)), (t.add(a, two), t.add(b, one)), (t.add(a, b), c), (t.add(a, one), c)]
shown = [f"{t.eq(*order(pair))!r}" for pair in order(pairs)]
print("\\n".join(sorted(shown)))
"""


def test_an_equality_reads_alike_whichever_operand_was_made_first() -> None:
    shown = [
        subprocess.run(
            [sys.executable, "-c", EQUALITIES, order], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        for order in ("forth", "back")
    ]
    assert shown[0] == shown[1]
    assert "-1" not in shown[0], "an equality adds on the side where that is positive"
