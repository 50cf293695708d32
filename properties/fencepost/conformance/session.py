"""One run of an implementation beside the model: moves go in, steps come out.

Where the run stands is a state of the model whose stored variables are those that were *observed*; the others
(who believes what, what is on its way) follow from calls and answers by the model's own updates. Each step is
compared with what the model does from that very state, and the claims are asked about the step that was
really made. So a run can go on after a difference: from where the implementation is, not from where it should
be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from fencepost.conformance import compare
from fencepost.conformance.adapter import (
    Ability,
    Adapter,
    Answer,
    Capability,
    Commit,
    Downstream,
    EffectsAdapter,
    Observation,
    Ok,
    Owner,
    Surroundings,
    Unknown,
    Worker,
)
from fencepost.conformance.counterparts import (
    Reach,
    abilities_of,
    counterpart_of,
    embedded,
    observed_variables,
    part_of,
    performance_of,
    reach_of,
)
from fencepost.conformance.mapping import Lease, Performance
from fencepost.conformance.oracle import Cut, Moves, Oracle, Rest, Transition
from fencepost.conformance.vocabulary import (
    CannotEmbedError,
    Landing,
    MappingError,
    Names,
    Seen,
    has_downstream,
)
from fencepost.conformance.watchdog import watching
from fencepost.model import FencepostError, ModelError
from fencepost.model.concrete import RunningState, values_of
from fencepost.model.core.state import WORKER, workers
from fencepost.model.domains import Element
from fencepost.model.ground import label_of
from fencepost.properties import REFUSALS, Claim

START_MS = 1_000
LEASE_MS = 10

WAIT = "wait"
"""A move that no action of the model makes: time passes, no lease ends, and nothing may change."""

RESTART = "restart_downstream"
"""Another one: the downstream is closed and opened again, and nothing may change.

In the model it is a fault, since there the records are lost by it.
"""

LAST_MOMENT_MS = 1_000_000
"""A wait longer than any lease: it lasts until the last millisecond in which the lease is live."""


@dataclass(frozen=True, slots=True)
class Move:
    """What is done next: an action with the codes of its arguments, and the time that goes with it.

    `wait_ms` passes before the action, but never so much that a live lease ends; when the action is that the
    lease runs out, it is how long after the end the clock then stands. `lease_ms` is asked for when a lease
    is.
    """

    action: str
    arguments: tuple[int, ...] = ()
    wait_ms: int = 0
    lease_ms: int = LEASE_MS


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a move.

    `told` is the whole answer as it came; `transition` is None where the model has no such state.
    `difference` is the first difference from the model, as a sentence; `broken` are the names of the claims
    that the step breaks, and `witnessed` those of the witnesses that it reaches.
    """

    move: Move
    label: str
    now_ms: int
    expected: str
    answered: str
    told: Answer | None
    observation: Observation
    transition: Transition | None = None
    difference: str = ""
    broken: tuple[str, ...] = ()
    witnessed: tuple[str, ...] = ()

    @property
    def record(self) -> tuple[Any, ...]:
        """What the implementation did: to be the same when the same moves are made again."""
        return (self.label, self.now_ms, self.answered, self.told, self.observation)


class _NoSuchStateError(Exception):
    """The implementation is where the model has no state, so the run cannot go on."""


@dataclass(slots=True)
class Plan:
    """What the runs of one adapter have in common: the model, the claims and the witnesses."""

    adapter: Adapter
    oracle: Oracle
    claims: tuple[Claim, ...] = ()
    witnesses: tuple[Claim, ...] = ()
    performances: Mapping[str, Performance] = field(init=False)
    """How each action is done that the scope allows and the implementation offers."""
    observed: list[str] = field(init=False)
    """The stored variables that the implementation shows; others are taken to be as the model says."""

    def __post_init__(self) -> None:
        """Find the mapping of each action and of each stored variable; MappingError when one is missing."""
        protocol = self.oracle.protocol
        self.adapter = part_of(self.adapter, protocol)
        offered = self.adapter.capabilities
        self.observed = observed_variables(protocol, offered)
        found = {a.name: performance_of(protocol, a) for a in protocol.actions.values()}
        allowed = {a.name for a in self.oracle.actions()}
        self.performances = {
            name: how
            for name, how in found.items()
            if name in allowed and (how.needs is None or how.needs in offered)
        }

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the downstream can do, where the model and the adapter have one."""
        return abilities_of(self.adapter, self.oracle.protocol)

    @property
    def reach(self) -> Reach:
        """How far runs go by default. UsageError when the adapter lacks what the protocol is about."""
        return reach_of(self.adapter, self.oracle.protocol)

    @property
    def others(self) -> tuple[str, ...]:
        """The moves that no action of the model makes."""
        restarts = Ability.RESTARTS in self.abilities and RESTART not in self.performances
        return (WAIT, RESTART) if restarts else (WAIT,)

    def judged(
        self, before: Rest, made: Transition, landed: Sequence[Landing] = ()
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the claims that a step breaks, and of the witnesses that it reaches.

        `landed` are the effects that took place in it; any beyond the first of a request breaks what two
        steps with an effect each would break.
        """
        true = self.oracle.true_of(self.claims, before, made)
        landed_again = counterpart_of(self.oracle.protocol).landed_again
        for again in landed_again(self.oracle, made, landed) if landed and landed_again else ():
            true &= self.oracle.true_of(self.claims, *again)
        broken = tuple(c.name for c in self.claims if c.name not in true)
        reached = self.oracle.true_of(self.witnesses, before, made)
        return broken, tuple(w.name for w in self.witnesses if w.name in reached)


@dataclass(slots=True)
class Session:
    """One run: a world of its own, its clock, the workers' handles, and where it stands."""

    plan: Plan
    now_ms: int = START_MS
    lease_ms: int = LEASE_MS
    """The lease that the move at hand asks for."""
    state: Rest = ()
    steps: list[Step] = field(default_factory=list)
    over: str = ""
    """Why the run cannot go on, if it cannot."""
    names: Names = field(init=False)
    _world: Any = field(init=False)
    _handles: dict[str, Worker] = field(default_factory=dict)
    _downstream: Downstream | None = None
    _seen: Seen = field(init=False)
    _moves: Moves = field(init=False)

    def __enter__(self) -> Self:
        oracle = self.plan.oracle
        self.names = Names(oracle.scope)
        self._stand(oracle.runner.initial())
        self._world = self.plan.adapter.fresh_world()
        try:
            self._open_all()
            self._seen = self._look()
            self._check_start()
        except BaseException:
            self.close()
            raise
        return self

    def _open_all(self) -> None:
        plan, protocol = self.plan, self.plan.oracle.protocol
        open_handles = counterpart_of(protocol).open_handles
        if open_handles is not None:
            opened = open_handles(plan.adapter, self._world, self._surroundings(), plan.oracle.scope)
            self.names.handles = opened
            return
        for w in values_of(workers, plan.oracle.scope):
            if self.model.up[w]:
                self.open(w, self.model.incarnation[w])
        if has_downstream(protocol):
            self.open_downstream()

    def _check_start(self) -> None:
        plan = self.plan
        start = plan.oracle.overlaid(self.state, embedded(plan.oracle.protocol, plan.observed, self._seen))
        wrong = compare.stored_otherwise(plan.oracle, plan.observed, start, self.state)
        if wrong:
            raise CannotEmbedError(f"{plan.adapter.name}: a fresh world is not as the model begins: {wrong}")

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up all handles and the world."""
        for handle in self._handles.values():
            with suppress(Exception):
                handle.close()
        self._handles.clear()
        if self._downstream is not None:
            with suppress(Exception):
                self._downstream.close()
        self._downstream = None
        if self.names.handles is not None:
            with suppress(Exception):
                self.names.handles.close()
        self.plan.adapter.close_world(self._world)

    # -- what moves are made of; for the mapping

    @property
    def model(self) -> RunningState:
        """The state in which the run stands, to be read."""
        return self.plan.oracle.reader(self.state)

    @property
    def world(self) -> Any:
        """The adapter's world."""
        return self._world

    def worker(self, w: Element) -> Worker:
        """The handle of a worker that runs."""
        return self._handles[w.label]

    def open(self, w: Element, incarnation: int) -> None:
        """A new handle for a worker."""
        self._handles[w.label] = self._opened(w.label, incarnation)

    def drop(self, w: Element) -> None:
        """The worker dies, and its handle with it."""
        self._handles.pop(w.label).close()

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the downstream can do."""
        return self.plan.abilities

    @property
    def downstream(self) -> Downstream:
        """The handle on the downstream."""
        if self._downstream is None:
            raise MappingError(f"{self.plan.adapter.name}: there is no downstream; add Capability.EFFECTS")
        return self._downstream

    def open_downstream(self) -> None:
        """A handle on the downstream, where the adapter has one."""
        adapter, counterpart = self.plan.adapter, counterpart_of(self.plan.oracle.protocol)
        if isinstance(adapter, EffectsAdapter) and counterpart.is_had_by(adapter):
            self._downstream = adapter.open_downstream(self._world, self._surroundings())

    def restart_downstream(self) -> None:
        """The downstream dies, and another one begins on what is left."""
        self.downstream.close()
        self._downstream = None
        self.open_downstream()

    def sender(self, c: Element) -> Owner:
        """Who sent a commit."""
        by = self.model.request[c].by
        return Owner(by.worker.label, by.incarnation)

    def commit_id(self, c: Element) -> str:
        """The id of a commit that was sent."""
        return self.names.commit_id(self.sender(c), c)

    def deliver(self, commit: Commit) -> Answer:
        """A commit arrives, by the sender's handle or, when it is dead, by a connection that outlived it."""
        model, sender = self.model, commit.owner
        for w in values_of(workers, self.plan.oracle.scope):
            if w.label == sender.worker and model.up[w] and model.incarnation[w] == sender.incarnation:
                return self.worker(w).commit(commit)
        courier = self._opened(sender.worker, sender.incarnation)
        try:
            return courier.commit(commit)
        finally:
            courier.close()

    def _opened(self, name: str, incarnation: int) -> Worker:
        return self.plan.adapter.open_worker(self._world, name, incarnation, self._surroundings())

    def _surroundings(self) -> Surroundings:
        return Surroundings(clock_ms=lambda: self.now_ms)

    def _look(self) -> Seen:
        seen = self.names.seen(self.plan.adapter.observe(self._world), self.now_ms)
        self.names.deciding = ""
        return seen

    # -- moves

    def choices(self, action: str) -> list[tuple[int, ...]]:
        """The argument codes with which an action is possible now."""
        if self.over:
            return []
        how, possible = self.plan.performances.get(action), self._moves.get(action, {})
        if how is None or how.only_if is None:
            return list(possible)
        return [codes for codes, made in possible.items() if how.is_taken(self.model, made.arguments)]

    def play(self, move: Move) -> Step | None:
        """Make a move; None when it is not possible now. What went wrong is in the step, and in `over`."""
        if self.over:
            return None
        if move.action == WAIT:
            step = self._wait(move)
        elif move.action == RESTART and RESTART in self.plan.others:
            step = self._restart(move)
        else:
            how = self.plan.performances.get(move.action)
            expected = self._moves.get(move.action, {}).get(move.arguments)
            if how is None or expected is None or not how.is_taken(self.model, expected.arguments):
                return None
            step = self._do(move, how, expected)
        self.steps.append(step)
        return step

    def _stand(self, state: Rest) -> None:
        self.state = state
        self._moves = self.plan.oracle.moves(state)

    def _wait(self, move: Move) -> Step:
        self._pass_time(move.wait_ms, runs_out=False)
        before, self._seen = self._seen, self._look()
        if self._seen.observation != before.observation:
            self.over = "time passed, no lease ended and nothing was called, and yet something else is stored"
        return Step(
            move, WAIT, self.now_ms, "done", "done", None, self._seen.observation, difference=self.over
        )

    def _restart(self, move: Move) -> Step:
        self._pass_time(move.wait_ms, runs_out=False)
        oracle, start, wrong = self.plan.oracle, self.state, ""
        broken: tuple[str, ...] = ()
        witnessed: tuple[str, ...] = ()
        try:
            self.restart_downstream()
            earlier, self._seen = self._seen, self._look()
            state = oracle.overlaid(start, embedded(oracle.protocol, self.plan.observed, self._seen))
            wrong = compare.stored_otherwise(oracle, self.plan.observed, state, start)
            wrong = wrong or compare.downstream_differs(earlier, self._seen)
            made = Transition(oracle.protocol.actions[RESTART], (), "done", state)
            if wrong:
                broken, witnessed = self.plan.judged(start, made)
                self._stand(state)
        except (CannotEmbedError, ModelError) as error:
            self.over = wrong = str(error)
        except FencepostError:
            raise
        except Exception as error:  # noqa: BLE001  # a downstream that does not come back
            self.over = wrong = f"{type(error).__name__}: {error}"
        difference = f"the downstream was restarted, and afterwards {wrong}" if wrong else ""
        return Step(
            move, f"{RESTART}()", self.now_ms, "done", "done", None, self._seen.observation, None,
            difference, broken, witnessed,
        )  # fmt: skip

    def _pass_time(self, wait_ms: int, *, runs_out: bool) -> None:
        ends_ms = self._seen.row.expires_at_ms
        if runs_out:
            self.now_ms = max(self.now_ms, self.now_ms if ends_ms is None else ends_ms) + wait_ms
        elif ends_ms is not None and self.now_ms < ends_ms:
            self.now_ms = min(self.now_ms + wait_ms, ends_ms - 1)
        else:
            self.now_ms += min(wait_ms, LEASE_MS)

    def _do(self, move: Move, how: Performance, expected: Transition) -> Step:
        self._pass_time(move.wait_ms, runs_out=how.lease is Lease.RUNS_OUT)
        self.lease_ms = move.lease_ms
        start, before = self.state, self._seen.row
        asked_for = None
        if how.asks_for:
            parameters = [name for name, _ in expected.action.parameters]
            asked_for = self.commit_id(expected.arguments[parameters.index(how.asks_for)])
        sent = how.commit_id(self.model, self.names, expected.arguments)
        told = self._call(how, expected)
        answered = self._outcome(told, expected)
        earlier, self._seen = self._seen, self._look()
        with_row = how.tells_of_row and Capability.VERSIONS in self.plan.adapter.capabilities
        wrong = (
            compare.downstream_differs(earlier, self._seen)
            or compare.answers_differ(expected, told, answered)
            or compare.told_falsely(told, self._seen, asked_for, sent, with_row=with_row)
        )
        transition = None
        broken: tuple[str, ...] = ()
        witnessed: tuple[str, ...] = ()
        try:
            state = self._followed(expected, told, answered, asked_for)
            made = how.made(self, expected, answered, state)
            wrong = wrong or how.otherwise(expected, made)
            wrong = wrong or self._stored_wrongly(expected, how, before, state, answered)
            landed = self._seen.landed[len(earlier.landed) :]
            broken, witnessed = self.plan.judged(start, made, landed)
            transition = made
            self._stand(state)
        except (_NoSuchStateError, CannotEmbedError, ModelError) as error:
            self.over = wrong = wrong or str(error)
        except Cut:
            self.over = wrong = wrong or "what is stored has numbers beyond the scope"
        label = label_of(expected.action, move.arguments)
        return Step(
            move, label, self.now_ms, expected.outcome, answered, told, self._seen.observation, transition,
            f"{label}: {wrong}" if wrong else "", broken, witnessed,
        )  # fmt: skip

    def _call(self, how: Performance, expected: Transition) -> Answer | None:
        patience_s = getattr(self.plan.adapter, "patience_s", None)
        try:
            with watching(f"{self.plan.adapter.name}: {expected.action.name}", patience_s):
                told: Any = how.function(self, *expected.arguments)
        except FencepostError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it throws is no answer
            return Unknown(f"{type(error).__name__}: {error}")
        if told is None or isinstance(told, Answer):
            return told
        return Unknown(f"{told!r} is no answer; give Ok, Refused or Unknown")

    def _outcome(self, told: Answer | None, expected: Transition) -> str:
        """How the call ended, in the model's words."""
        if told is None:
            return "done"
        if isinstance(told, Unknown):
            return "unknown"
        if isinstance(told, Ok):
            return "ok" if expected.action.is_operation else "done"
        if Capability.CODES not in self.plan.adapter.capabilities and expected.refused:
            return expected.outcome
        return told.code if told.code in REFUSALS else f"refused with the code {told.code!r}"

    def _followed(
        self, expected: Transition, told: Answer | None, answered: str, asked_for: str | None
    ) -> Rest:
        """Where the run stands after a step."""
        oracle = self.plan.oracle
        if answered != "done" and not (expected.action.is_operation and oracle.answer_known(answered)):
            raise _NoSuchStateError(f"the model has no answer {answered!r} here")
        stored = embedded(oracle.protocol, self.plan.observed, self._seen)
        as_told = stored
        if isinstance(told, Ok):
            seen = self._seen.told(told.row, told.entry, asked_for, told.held)
            as_told = embedded(oracle.protocol, self.plan.observed, seen)
        # What a worker has in memory it has after the step: no call tells it.
        known = [n for n in as_told if oracle.protocol.variables[n].home == WORKER]
        as_told = {name: value for name, value in as_told.items() if name not in known}
        return oracle.followed(
            self.state, expected, called=told is not None, outcome=answered, told=as_told, stored=stored
        )

    def _stored_wrongly(
        self, expected: Transition, how: Performance, before: Any, state: Rest, answered: str
    ) -> str:
        """The first thing that is stored and should not be, as a sentence."""
        plan = self.plan
        return (
            compare.stored_otherwise(plan.oracle, plan.observed, state, expected.state)
            or compare.entries_differ(self._seen, self.names, self.model)
            or compare.receipt_differs(self._seen, self.names)
            or compare.lease_ends_wrongly(
                before,
                self._seen.row,
                how.lease,
                accepted=answered == "ok",
                asked_until_ms=self.now_ms + self.lease_ms,
                at_most_ms=self.now_ms + self.lease_ms,
            )
        )
