"""The runs of ``docs/two-workers-race.md``: how they begin, the changed models, and how each is shown."""

from __future__ import annotations

from fencepost.model import Protocol, Scope, State, when
from fencepost.model.core.state import acts
from fencepost.model.domains import Element
from fencepost.model.effects import effects
from fencepost.model.effects.state import Knows, intent_of, under_way
from fencepost.model.effects.steps import learnt
from fencepost.model.mutate import without
from fencepost.properties.effects import EFFECTS

from .runs import Run, run

ABOUT = ("lease_version", "live", "state_version", "log", "receipt", "fence", "record", "happened", "knows")
"""What the diagrams note; the tables have the rest."""

TAKEOVER = """
    acquire(w1)
    commit(w1, running, f1)
    send_effect(w1, c1, 1, f1)
    expire
    acquire(w2)
"""
"""How each of the runs begins: the call of `w1` is on its way when `w2` takes over."""


def scope(*switches: str) -> Scope:
    """Two workers, two calls, two amounts, and a downstream that can do this."""
    base = effects.scopes["rederived"]
    return base.but(name="race", switches=frozenset(switches))


def query_that_needs_no_fence(s: State, w: Element) -> None:
    """An owner asks by the key, and takes it for proof that nothing is found."""
    when(acts(s, w))
    when(under_way(s, w))
    kept = s.record[intent_of(s, w)]

    if kept.present:
        if kept.fingerprint == s.intent[intent_of(s, w)].fingerprint:
            s.knows[w] = learnt(kept.kind)
    else:
        s.knows[w] = Knows.not_happened


SENDS_AGAIN: Protocol = without(
    effects, "sends-what-may-have-happened", send_effect=('known_undone(s, w) or switched("keyed")',)
)
TRUSTS_A_QUERY: Protocol = effects.variant("trusts-a-query", query=query_that_needs_no_fence)


def sound(made: Run) -> Run:
    """A run of the model itself: no claim is broken, and gates 1 and 2 were kept."""
    assert made.broken(EFFECTS) == []
    made.gates_held()
    return made


def after_takeover(steps: str, *switches: str, protocol: Protocol = effects) -> Run:
    """A run that begins with the takeover."""
    made = run(protocol, scope(*switches), TAKEOVER + steps)
    if protocol is effects:
        return sound(made)
    made.gates_held()
    return made


def lands(made: Run, *steps: int) -> str:
    """How often an effect takes place: in these steps and in no other."""
    assert made.changes_of("landings") == list(steps), f"effects land in {made.changes_of('landings')}"
    return {1: "once", 2: "twice"}[len(steps)]


def shown(made: Run) -> str:
    """A run as a picture and as a table."""
    return f"{made.mermaid(ABOUT)}\n{made.table()}"


def in_text(made: Run) -> str:
    """A run as lines of text and as a table."""
    return f"{made.plain(ABOUT)}\n{made.table()}"


def both_calls(made: Run) -> str:
    """What the two calls say, as rows of a table."""
    end = len(made.made)
    rows = ["| call | sent by | token | key: of intent | fingerprint |", "|---|---|---|---|---|"]
    for call in ("c1", "c2"):
        worker, _, token, _, key, fingerprint, *_ = made.value(end, f"call[{call}]").split("/")
        assert key == "1", "the calls do not share a key"
        rows.append(f"| `{call}` | {worker} | {token} | {key} | `{fingerprint}` |")
    return "\n".join(rows) + "\n"


def named(made: Run) -> str:
    """The claims that a run breaks; it must break one."""
    found = [EFFECTS.claims[name] for name in made.broken(EFFECTS)]
    assert found, "no claim is broken"
    return ", ".join(f"{claim.id} `{claim.name}`" for claim in found)


def copies_at_a_fence() -> Run:
    """Two copies of one call at a downstream that has a fence and no keys."""
    return sound(
        run(
            effects,
            scope("fenced", "request_duplicated"),
            """
            acquire(w1)
            commit(w1, running, f1)
            send_effect(w1, c1, 1, f1)
            decide_call(c1, again, whole)
            decide_call(c1, whole)
            """,
        )
    )
