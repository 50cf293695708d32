"""The oracle after every statement: what is stored changed by one action of the model, or not at all.

Each operation changes what is stored at most once, and its answer is one that the model gives at some moment
between its beginning and its end: where it changed something, the answer of that very change. A clock that
moves while an operation is on its way is no change of the store, so an operation may have been decided before
it, as long as nothing but the clock has moved since.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.conformance import compare
from fencepost.conformance.adapter import Answer, Capability, Ok, Unknown
from fencepost.conformance.counterparts import embedded
from fencepost.conformance.mapping import Lease, Performance
from fencepost.conformance.moments import Change, Event, Memory, Moment, Operation, StepMade
from fencepost.conformance.oracle import Oracle, Rest, Transition, merged
from fencepost.conformance.plans import Plan
from fencepost.conformance.stage import Stage
from fencepost.conformance.vocabulary import CannotEmbedError, Landing, Seen
from fencepost.model import ModelError
from fencepost.model.concrete import RunningState
from fencepost.model.core.state import STORE
from fencepost.model.language import GuardSignal


@dataclass(slots=True)
class Account:
    """What happened in one schedule, and what was wrong with it."""

    stage: Stage
    memory: Memory
    moments: list[Moment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    steps: list[StepMade] = field(default_factory=list)
    difference: str = ""
    differs_at: int = -1
    broken: dict[str, int] = field(default_factory=dict)
    """The claims that broke, with the event at which they did."""
    witnessed: set[str] = field(default_factory=set)
    blame: tuple[Operation, int] | None = None
    """The operation at which the first thing went wrong, and the event."""

    @property
    def plan(self) -> Plan:
        """The model and the claims."""
        return self.stage.plan

    @property
    def oracle(self) -> Oracle:
        """The model."""
        return self.stage.plan.oracle

    @property
    def now(self) -> Moment:
        """The last moment."""
        return self.moments[-1]

    def reader(self, state: Rest) -> RunningState:
        """A state, to be read."""
        return self.memory.reader(self.oracle, state)

    def begin(self, state: Rest, seen: Seen) -> None:
        """The schedule begins here."""
        self.moments.append(Moment(state, seen))

    # -- calls

    def called(
        self, who: str, number: int, how: Performance, expected: Transition, *, lease_ms: int
    ) -> Operation:
        """An operation begins; it asks for a lease of `lease_ms` milliseconds, if for any."""
        asked_for = None
        if how.asks_for:
            parameters = [name for name, _ in expected.action.parameters]
            c = expected.arguments[parameters.index(how.asks_for)]
            by = self.reader(self.now.state).request[c].by
            asked_for = self.stage.names.commit_id(self.stage.names.owner((by.worker, by.incarnation)), c)
        sent = how.commit_id(self.reader(self.now.state), self.stage.names, expected.arguments)
        until_ms = self.stage.now_ms + lease_ms
        codes = expected.codes
        label = self.memory.label(expected, codes)
        began = len(self.moments) - 1
        return Operation(who, number, how, expected, codes, label, began, asked_for, sent, until_ms, lease_ms)

    def ran(self, operation: Operation, text: str, error: BaseException | None) -> bool:
        """A statement of an operation was run: whether anything may have changed that others see."""
        operation.statements += 1
        before = len(self.moments) - 1
        stamp = self.stage.stamp
        self.stage.names.deciding = self._request(operation)
        seen = self.stage.look()
        note = "" if error is None else f"failed: {error}"
        old = self.now.seen.observation
        changes = seen.observation is not old and seen.observation != old
        if changes:
            self._changed(operation, seen)
        self.events.append(
            Event(
                operation.who, operation.label, operation.statements, text,
                before, len(self.moments) - 1, note, changes, (operation.number, operation.began),
            )
        )  # fmt: skip
        return stamp is None or stamp != self.stage.stamp

    @staticmethod
    def _request(operation: Operation) -> str:
        """The request that a downstream decides in this call: what takes effect now is its doing."""
        if not operation.how.request:
            return ""
        parameters = [name for name, _ in operation.expected.action.parameters]
        return str(operation.expected.arguments[parameters.index(operation.how.request)].label)

    def answered(self, operation: Operation, told: Answer | None, *, denied: bool) -> None:
        """An operation has ended. `denied`: one of its statements was refused by another worker's lock."""
        if isinstance(told, Unknown) and denied:
            return  # no answer, as when it is lost; what it changed has been judged
        if operation.changed is None:
            self._answered_without_change(operation, told)
            return
        change = operation.changed
        outcome = self._outcome(told, change.made)
        after = self.moments[change.after]
        wrong = ""
        if outcome != change.made.outcome:
            how = f" ({told.why})" if isinstance(told, Unknown) else ""
            wrong = (
                f"the implementation answered {outcome}{how}, although the call changed what is stored, "
                f"which the model answers {change.made.outcome}"
            )
        wrong = wrong or self._told_falsely(operation, told, after.seen)
        if wrong:
            self._differs(operation, wrong)
        if wrong or not change.placed:
            self._judge_as_answered(operation, change.before, change.made, told, outcome, after)

    def _outcome(self, told: Answer | None, made: Transition) -> str:
        """The answer in the model's words; without codes a refusal is the one that the model gives then."""
        return self.stage._outcome(told, made)  # noqa: SLF001  # of the same session

    def _answered_without_change(self, operation: Operation, told: Answer | None) -> None:
        first = ""
        for moment in reversed(self.moments[operation.began :]):
            state, made = self._at(moment, operation)
            outcome = self._outcome(told, made)
            wrong = (
                compare.answers_differ(made, told, outcome)
                or self._unchanged(operation, moment, made, outcome)
                or self._told_falsely(operation, told, moment.seen)
            )
            if not wrong:
                self._take(operation, state, made)
                return
            first = first or wrong
        many = len(self.moments) - operation.began > 1
        self._differs(operation, first + (", and at no other moment of the call either" if many else ""))
        state, made = self._at(self.now, operation)
        outcome = self._outcome(told, made)
        self._judge_as_answered(operation, Moment(state, self.now.seen), made, told, outcome, self.now)

    def _unchanged(self, operation: Operation, moment: Moment, made: Transition, outcome: str) -> str:
        """A call that changed nothing was one that changes nothing at that moment."""
        wrong = compare.stored_otherwise(self.oracle, self.plan.observed, moment.state, made.state)
        if wrong:
            return f"the implementation answered {outcome} and changed nothing: {wrong}"
        return self._lease_ends_wrongly(operation, moment.seen, moment.seen, accepted=outcome == "ok")

    def _lease_ends_wrongly(self, operation: Operation, old: Seen, new: Seen, *, accepted: bool) -> str:
        return compare.lease_ends_wrongly(
            old.row,
            new.row,
            operation.how.lease,
            accepted=accepted,
            asked_until_ms=operation.asked_until_ms,
            at_most_ms=self.stage.now_ms + operation.lease_ms,
        )

    def _take(self, operation: Operation, then: Rest, made: Transition) -> None:
        """The call was decided at a moment: what its worker knows changes as it did then."""
        self._judge(operation.label, then, made)
        state = merged(then, made.state, self.now.state)
        if state != self.now.state:
            self.moments.append(Moment(state, self.now.seen))

    def _told_falsely(self, operation: Operation, told: Answer | None, seen: Seen) -> str:
        with_row = operation.how.tells_of_row and Capability.VERSIONS in self.plan.adapter.capabilities
        return compare.told_falsely(told, seen, operation.asked_for, operation.sent, with_row=with_row)

    def _judge_as_answered(
        self,
        operation: Operation,
        before: Moment,
        made: Transition,
        told: Answer | None,
        outcome: str,
        after: Moment,
    ) -> None:
        """Ask the claims about the step as it was answered, which may be otherwise than it was done."""
        action = made.action
        if outcome != "done" and not (action.is_operation and self.oracle.answer_known(outcome)):
            return
        try:
            seen = replace(after.seen, now_ms=before.seen.now_ms)  # the clock's move is not the call's
            state = self._followed(operation, before, made, told, outcome, seen, seen)
            self._judge(operation.label, before.state, Transition(action, made.arguments, outcome, state))
        except (CannotEmbedError, ModelError, GuardSignal):
            return  # the difference says it all
        known = merged(before.state, state, self.now.state)
        self.moments[-1] = Moment(self.oracle.overlaid(known, self._stored(self.now.seen)), self.now.seen)

    # -- changes

    def _changed(self, operation: Operation, seen: Seen) -> None:
        event = len(self.events)
        before, placed = self.now, None
        landed = seen.landed[len(before.seen.landed) :]
        try:
            stored = self._stored(seen)
            wrong = "the call changed what is stored for the second time" if operation.changed else ""
            placed = None if wrong else self._placed(operation, stored)
            if placed is None:
                wrong = wrong or compare.downstream_differs(before.seen, seen)
                wrong = wrong or self._why_not(operation, before, stored)
                made = self._as_it_came(operation, before, stored)
                moment = before
                self._differs(operation, wrong, event)
                self._judge(operation.label, before.state, made, event, landed)
                state = made.state
            else:
                moment, made, state = placed
                wrong = compare.downstream_differs(before.seen, seen)
                wrong = wrong or self._ends_wrongly(operation, moment, seen)
                if wrong:
                    self._differs(operation, wrong, event)
                self._judge(operation.label, moment.state, made, event, landed)
        except (CannotEmbedError, ModelError) as error:
            self._differs(operation, str(error), event)
            made, state, moment = operation.expected, before.state, before
        except GuardSignal:
            self._differs(operation, "what is stored is nothing that the model has", event)
            made, state, moment = operation.expected, before.state, before
        self.moments.append(Moment(state, seen))
        after = len(self.moments) - 1
        operation.changed = operation.changed or Change(moment, made, after, placed=placed is not None)

    def _placed(
        self, operation: Operation, stored: Mapping[str, Any]
    ) -> tuple[Moment, Transition, Rest] | None:
        """The moment at which the model does the same: now, or before, if its store has not changed since."""
        place = len(self.moments) - 1
        while True:
            moment = self.moments[place]
            then, made = self._at(moment, operation)
            if made.outcome in ("ok", "done"):
                for state in (made.state, self._over(made.state, moment)):
                    known = None if state is None else self._carried(then, state)
                    if known is not None and self.oracle.overlaid(known, stored) == known:
                        return Moment(then, moment.seen), made, known
            if place <= operation.began:
                return None
            place -= 1
            if not self._same_store(self.moments[place].seen, moment.seen):
                return None

    def _carried(self, then: Rest, state: Rest) -> Rest:
        """What a call that was decided then makes of now: of the store all, of the rest what it changed."""
        protocol = self.oracle.protocol
        names = [n for n in self.plan.observed if protocol.variables[n].home == STORE]
        of_store = {n: state[protocol.position(n)] for n in names}
        return self.oracle.overlaid(merged(then, state, self.now.state), of_store)

    @staticmethod
    def _same_store(one: Seen, other: Seen) -> bool:
        """Whether the same is stored; a downstream is none of the store's business."""
        if one.observation is other.observation:
            return True
        ledger = other.observation.ledger
        return replace(one.observation, ledger=ledger) == other.observation

    def _over(self, state: Rest, moment: Moment) -> Rest | None:
        """The state after the lease has run out, where the clock has moved since a moment."""
        if moment is self.now:
            return None
        for name, how in self.plan.performances.items():
            if how.lease is Lease.RUNS_OUT:
                made = self.oracle.moves(state).get(name, {}).get(())
                return None if made is None else made.state
        return None

    def _why_not(self, operation: Operation, before: Moment, stored: Mapping[str, Any]) -> str:
        _, made = self._at(before, operation)
        found = self.oracle.overlaid(before.state, stored)
        if made.outcome not in ("ok", "done"):
            wrong = compare.stored_otherwise(self.oracle, self.plan.observed, found, before.state)
            wrong = wrong or "the lease ends at another time"
            return f"the model answers {made.outcome} and changes nothing, but the statement did: {wrong}"
        wrong = compare.stored_otherwise(self.oracle, self.plan.observed, found, made.state)
        return f"what is stored is neither as before nor as after the call: {wrong}"

    def _as_it_came(self, operation: Operation, before: Moment, stored: Mapping[str, Any]) -> Transition:
        """The step that was really made, in the model's words; nobody has been told of it yet."""
        _, expected = self._at(before, operation)
        outcome = "ok" if expected.action.is_operation else "done"
        untold = expected._replace(action=replace(expected.action, answered=None))
        state = self.oracle.followed(
            before.state, untold, called=True, outcome=outcome, told=stored, stored=stored
        )
        return Transition(expected.action, expected.arguments, outcome, state)

    def _ends_wrongly(self, operation: Operation, moment: Moment, seen: Seen) -> str:
        model = self.reader(moment.state)
        names = self.stage.names
        return (
            compare.entries_differ(seen, names, model)
            or compare.receipt_differs(seen, names)
            or self._lease_ends_wrongly(operation, moment.seen, seen, accepted=True)
        )

    # -- what nobody calls

    def moved(self, who: str, expected: Transition, *, clock: bool = False) -> None:
        """A move that is no call: the clock's, the network's, or a death."""
        before = len(self.moments) - 1
        seen = self.stage.look()
        if seen.observation != self.now.seen.observation:
            late = self._late_commit(expected.state, seen)
            if late is not None:
                self._judge(expected.label, self.now.state, expected, len(self.events))
                self._judge(late.label, expected.state, late, len(self.events))
                self.moments.append(Moment(late.state, seen, by_clock=clock))
                self.events.append(Event(who, expected.label, 0, late.label, before, before + 1))
                return
            self._note_difference(
                f"{expected.label}: nothing was called, and yet something else is stored", len(self.events)
            )
            with suppress(CannotEmbedError, ModelError, GuardSignal):
                expected = expected._replace(state=self.oracle.overlaid(expected.state, self._stored(seen)))
        landed = seen.landed[len(self.now.seen.landed) :]
        self._judge(expected.label, self.now.state, expected, len(self.events), landed)
        self.moments.append(Moment(expected.state, seen, by_clock=clock))
        self.events.append(Event(who, expected.label, 0, "", before, before + 1))

    def _late_commit(self, state: Rest, seen: Seen) -> Transition | None:
        """The commit that has arrived, if that is all: a worker may do as it begins what it had begun."""
        with suppress(CannotEmbedError, ModelError, GuardSignal):
            stored, sending = self._stored(seen), [n for n, h in self.plan.performances.items() if h.sends]
            for name in sending:
                for made in self.oracle.moves(state).get(name, {}).values():
                    same = made.outcome == "ok" and self.oracle.overlaid(made.state, stored) == made.state
                    ends = seen.row.expires_at_ms == self.now.seen.row.expires_at_ms
                    if (
                        same
                        and ends
                        and not compare.entries_differ(seen, self.stage.names, self.reader(state))
                    ):
                        return made
        return None

    def passed_by(self, who: str, what: str) -> None:
        """Something that is no move of the model and is to change nothing, such as the end of a handle."""
        before = len(self.moments) - 1
        seen = self.stage.look()
        if seen.observation != self.now.seen.observation:
            self._note_difference(f"{what}, and something else is stored", len(self.events))
            self.moments.append(Moment(self.now.state, seen))
        self.events.append(Event(who, "", 0, what, before, len(self.moments) - 1))

    # -- the model's answers

    def _at(self, moment: Moment, operation: Operation) -> tuple[Rest, Transition]:
        """What the model does with a call that is decided at a moment, and from which state.

        That the call could be made was settled when it began: what its worker knows and waits for is as it
        was then, if it no longer is so that the call could begin.
        """
        action, codes = operation.expected.action.name, operation.codes
        made = self.oracle.moves(moment.state).get(action, {}).get(codes)
        if made is not None:
            return moment.state, made
        state = self.oracle.overlaid(self.moments[operation.began].state, self._stored(moment.seen))
        made = self.oracle.moves(state).get(action, {}).get(codes)
        return (moment.state, operation.expected) if made is None else (state, made)

    def _stored(self, seen: Seen) -> dict[str, Any]:
        key = (seen.observation, seen.row.live(seen.now_ms), seen.landed)
        found = self.memory.stored.get(key)
        if found is None:
            found = self.memory.stored[key] = embedded(self.oracle.protocol, self.plan.observed, seen)
        return found

    def _followed(
        self,
        operation: Operation,
        before: Moment,
        made: Transition,
        told: Answer | None,
        outcome: str,
        told_of: Seen,
        now: Seen,
    ) -> Rest:
        stored = as_told = self._stored(now)
        if isinstance(told, Ok):
            seen = told_of.told(told.row, told.entry, operation.asked_for, told.held)
            as_told = embedded(self.oracle.protocol, self.plan.observed, seen)
        return self.oracle.followed(
            before.state, made, called=told is not None, outcome=outcome, told=as_told, stored=stored
        )

    def _judge(
        self,
        label: str,
        before: Rest,
        made: Transition,
        event: int | None = None,
        landed: tuple[Landing, ...] = (),
    ) -> None:
        key = (before, made.action.name, made.outcome, made.state, landed)
        found = self.memory.judged.get(key)
        if found is None:
            found = self.memory.judged[key] = self.plan.judged(before, made, landed)
        broken, witnessed = found
        place = len(self.events) - 1 if event is None else event
        for name in broken:
            self.broken.setdefault(name, place)
        self.witnessed.update(witnessed)
        self.steps.append(StepMade(label, before, made, place))

    def _differs(self, operation: Operation, wrong: str, event: int | None = None) -> None:
        place = len(self.events) - 1 if event is None else event
        if self.blame is None:
            self.blame = operation, place
        self._note_difference(f"{operation.who}'s {operation.label}: {wrong}", place)

    def stuck(self, wrong: str) -> None:
        """Nobody could go on, or there was no end."""
        self._note_difference(wrong, len(self.events) - 1)

    def _note_difference(self, wrong: str, place: int) -> None:
        if not self.difference:
            self.difference, self.differs_at = wrong, place


__all__ = ["Account", "Change", "Event", "Memory", "Moment", "Operation", "StepMade"]
