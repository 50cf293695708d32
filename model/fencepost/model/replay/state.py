"""The state of replay: one history of commands and results, and workers that run one workflow over it.

A command has a name, which stands for its type as well, the fingerprint of its arguments, and the definition
that made it. Arguments are made of the value that the workflow was given last, so that one wrong value shows
in the next command. Values are numbers that only compare; 0 is the input of the run.

Left out, and why that is safe: leases (workers may replay at any time, all at once, which no lease makes
worse), sleeping (a worker that does nothing for a while is a behaviour anyway), lost answers of the store
(the worker begins anew, as after a crash), implicit inputs (recorded they are part of the input, unrecorded
they are values from outside), and what a person finds out about an activity whose outcome is unknown (that is
recorded under the same guard as any result).
"""

from __future__ import annotations

from typing import Any

from fencepost.model.core.state import STORE, WORKER, workers
from fencepost.model.domains import BOOLEAN, Counter, Element, Enumeration, Family, Optional, Record
from fencepost.model.language import State, absent, derived
from fencepost.model.protocol import HISTORY, Protocol

CODE = "code"
"""Keeps what workflows are: the text of a definition, which does not change."""

positions = Counter("position")
values = Counter("value")
definitions = Counter("definition")

Name = Enumeration("Name", "draw", "call", "send", "finish")
"""`draw` gives a time, a random number or an identifier; `call` is an activity, `send` an idempotent one."""

Standing = Enumeration(
    "Standing", "down", "idle", "running", "performing", "performed", "unknown", "stopped", "done"
)
"""Where a worker stands; `performing`: the start of an activity is recorded, and it has not acted yet."""

Command = Record("Command", what=Name, fingerprint=values, definition=definitions)

Answer = Enumeration("Answer", "ok", "position-taken", "result-recorded")

replay = Protocol("replay", answers=Answer)

_variable = replay.variable
# The history: what the store keeps.
_variable("command", Family(positions, of=Optional(Command)), absent, home=STORE,
          meaning="the command recorded at this position")  # fmt: skip
_variable("result", Family(positions, of=Optional(values)), absent, home=STORE,
          meaning="the value that this command gave")  # fmt: skip
_variable(
    "settled",
    positions,
    0,
    home=STORE,
    meaning="commands with a result; one more may be recorded",
)
# What the code of a definition does.
_variable("plan", Family(definitions, positions, of=Optional(Name)), absent, home=CODE,
          meaning="the command that it makes here, settled when it first comes so far")  # fmt: skip
# What each worker does and has read: gone when it crashes.
_variable("standing", Family(workers, of=Standing), Standing.idle, home=WORKER, meaning="what it is doing")
_variable("code", Family(workers, of=definitions), 0, home=WORKER, meaning="the definition that it runs")
_variable("at", Family(workers, of=positions), 0, home=WORKER, meaning="the position it has come to")
_variable("got", Family(workers, of=values), 0, home=WORKER, meaning="the value that it was given last")
_variable("asks", Family(workers, of=Optional(Command)), absent, home=WORKER,
          meaning="the command that its workflow makes at this position")  # fmt: skip
_variable("brings", Family(workers, of=Optional(values)), absent, home=WORKER,
          meaning="what its activity gave, not recorded yet")  # fmt: skip
_variable("known", Family(workers, of=positions), 0, home=WORKER,
          meaning="positions with a result, as it has read or made them")  # fmt: skip
_variable("pending", Family(workers, of=BOOLEAN), False, home=WORKER,
          meaning="whether it has read a command without a result after them")  # fmt: skip
# What only claims read.
_variable("acted", Family(positions, of=BOOLEAN), False, home=HISTORY,
          meaning="whether an activity has acted for this position")  # fmt: skip

replay.switch("crash", "a worker's process dies and loses all it knew; it may start again")
replay.switch("direct_call", "the workflow calls a model, a clock or a file directly, and goes by the answer")
replay.switch("definition_changed", "a worker gets other code while runs are under way")


@derived
def makes(s: State, w: Element) -> object:
    """Whether the workflow of worker `w` has made a command that is not dealt with yet."""
    return s.standing[w] == Standing.running and s.asks[w].present


@derived
def planned(s: State, w: Element) -> Any:
    """The command that the code of worker `w` makes at its position, by name, if it is settled."""
    return s.plan[s.code[w], s.at[w]]
