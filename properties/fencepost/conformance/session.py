"""One run of an implementation beside the model: moves go in, steps come out.

Where the run stands is a state of the model whose stored variables are those that were *observed*; the others
(who believes what, what is on its way) follow from calls and answers by the model's own updates. Each step is
compared with what the model does from that very state, and the claims are asked about the step that was
really made. So a run can go on after a difference: from where the implementation is, not from where it should
be.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from fencepost.conformance import compare, timers
from fencepost.conformance.adapter import (
    Ability,
    Answer,
    Capability,
    Commit,
    Downstream,
    EffectsAdapter,
    Ok,
    Owner,
    Surroundings,
    Unknown,
    Worker,
)
from fencepost.conformance.adapter_workflow import Definition, Requester, WorkflowAdapter
from fencepost.conformance.counterparts import counterpart_of, embedded
from fencepost.conformance.mapping import Lease, Performance
from fencepost.conformance.moves import LEASE_MS, RESTART, START_MS, WAIT, Move, Step
from fencepost.conformance.oracle import Cut, Rest, Transition
from fencepost.conformance.plans import Plan
from fencepost.conformance.vocabulary import (
    CannotEmbedError,
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
from fencepost.model.language import reading
from fencepost.properties import REFUSALS


class _NoSuchStateError(Exception):
    """The implementation is where the model has no state, so the run cannot go on."""


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
    _requester: Requester | None = None
    _model: tuple[Rest, RunningState] | None = None
    _seen: Seen = field(init=False)

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
        counterpart = counterpart_of(protocol)
        if counterpart.open_handles is not None:
            opened = counterpart.open_handles(
                plan.adapter, self._world, self._surroundings(), plan.oracle.scope
            )
            self.names.handles = opened
            return
        for w in values_of(workers, plan.oracle.scope):
            if self.model.up[w]:
                self.open(w, self.model.incarnation[w])
        if has_downstream(protocol):
            self.open_downstream()
        if counterpart.begin is not None:
            counterpart.begin(self)

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
        for outside in (self._downstream, self._requester, self.names.handles):
            if outside is not None:
                with suppress(Exception):
                    outside.close()
        self._downstream = self._requester = None
        self.plan.adapter.close_world(self._world)

    # -- what moves are made of; for the mapping

    @property
    def model(self) -> RunningState:
        """The state in which the run stands, to be read."""
        known = self._model
        if known is None or known[0] is not self.state:
            known = self._model = self.state, self.plan.oracle.reader(self.state)
        return known[1]

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

    def begin(self, definition: Definition) -> None:
        """The world's instance is another one, with this definition."""
        self._workflows().begin(self._world, definition)

    @property
    def requester(self) -> Requester:
        """The handle of those who have no lease."""
        if self._requester is None:
            self._requester = self._workflows().open_requester(self._world, self._surroundings())
        return self._requester

    def _workflows(self) -> WorkflowAdapter:
        adapter = self.plan.adapter
        if not isinstance(adapter, WorkflowAdapter):
            raise MappingError(f"{adapter.name}: there are no workflows; write what WorkflowAdapter names")
        return adapter

    @property
    def seen(self) -> Seen:
        """What was seen last."""
        return self._seen

    def reach(self, moment_ms: int) -> None:
        """The clock comes to a moment. Whose lease would run out meanwhile renews it."""
        row = self._seen.row
        if row.owner is not None and row.live(self.now_ms) and (row.expires_at_ms or 0) <= moment_ms:
            courier = self._opened(row.owner.worker, row.owner.incarnation)
            try:
                courier.renew(row.lease_version, lease_ms=moment_ms - self.now_ms + LEASE_MS)
            finally:
                courier.close()
        self.now_ms = max(self.now_ms, moment_ms)

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
        how = self.plan.performances.get(action)
        found = self.plan.oracle.moves(self.state).get(action, {})
        return [codes for codes, made in found.items() if how is None or self._sensible(how, made)]

    def _sensible(self, how: Performance, made: Transition) -> bool:
        """Whether a move is one to make: the clock can do it, and somebody would."""
        if how.lease is Lease.RUNS_OUT and not timers.lease_ends_first(self._seen):
            return False
        if how.lease is Lease.CARRIES_ON:
            renews = Capability.RENEW in self.plan.adapter.capabilities
            if not timers.comes_next(self._seen, made.arguments[0].label, renews=renews):
                return False
        if how.sensible is None:
            return True
        with reading(self.plan.oracle.runner):
            return bool(how.sensible(self.model, *made.arguments))

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
            expected = self.plan.oracle.move(self.state, move.action, move.arguments)
            if how is None or expected is None or not self._sensible(how, expected):
                return None
            step = self._do(move, how, expected)
        self.steps.append(step)
        return step

    def _stand(self, state: Rest) -> None:
        self.state = state

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
        ends_ms, was_ms = self._seen.row.expires_at_ms, self.now_ms
        if runs_out:
            self.now_ms = max(self.now_ms, self.now_ms if ends_ms is None else ends_ms) + wait_ms
        elif ends_ms is not None and self.now_ms < ends_ms:
            self.now_ms = min(self.now_ms + wait_ms, ends_ms - 1)
        else:
            self.now_ms += min(wait_ms, LEASE_MS)
        self.now_ms = timers.before_all(self._seen, was_ms, self.now_ms)

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
