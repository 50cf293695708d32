"""Runs a workflow in replay style: from its first line, each time, with what was recorded (§15).

A workflow is a plain function. It is given a `Runtime`, from which it takes the time, chance, identifiers and
whatever activities do outside; each of these is a command, recorded with its result. Run again over the same
history it gets the same results, nothing is done twice, and it comes to where it was. A command that is not
the recorded one stops the replay, before anything is done, with a report of the first difference.

Replay presumes that one worker at a time runs a history, as gate 1 has it; where two do all the same, the
history takes each position from one of them. Nothing here reads a clock or a random source: those are
arguments.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

from fencepost.reference.implicit import NO_IMPLICIT_INPUTS, ImplicitDifference, ImplicitInputs
from fencepost.reference.keys import canonical_json, step_key
from fencepost.reference.replay_report import difference
from fencepost.reference.replay_values import (
    Activity,
    ActivityFailedError,
    Command,
    CommandType,
    DamagedHistoryError,
    Differs,
    Ending,
    Failed,
    Finished,
    History,
    Outcome,
    Overtaken,
    Recorded,
    Replay,
    ReplayedWorkflow,
    Result,
    UnknownActivity,
    Waiting,
    command,
)
from fencepost.reference.values import MAX_TIME_MS, ArgumentError, shown, text, whole


class _StopsError(BaseException):
    """Gets out of the workflow; no `except Exception` in it may hold this back."""


class _Run:
    """One run over a history: how far it has come, and how it ended, once it has."""

    def __init__(
        self, workflow: ReplayedWorkflow, history: History, *, activities: Mapping[str, Activity]
    ) -> None:
        self.workflow: Final = workflow
        self.history: Final = history
        self.recorded: Final = checked(history.run, history.read())
        self.activities: Final = activities
        self.position = 0
        self.served = 0
        self.ended: Ending | None = None
        self.error: BaseException | None = None
        self.in_activity = False

    @property
    def replays(self) -> bool:
        """Whether the next command is recorded already."""
        return self.position < len(self.recorded)

    def command(self, kind: CommandType, name: str, arguments: Mapping[str, Any]) -> Command:
        """The command that the workflow makes now."""
        if self.in_activity:
            raise ArgumentError(
                f"{self.history.run}: an activity uses the runtime of its workflow; give it what it needs "
                "as arguments"
            )
        if self.ended is not None or self.error is not None:
            raise _StopsError  # the workflow has held back the first one
        definition = self.workflow.definition
        return command(self.position, kind, name, dict(arguments), definition=definition)

    def find(self, now: Command) -> Recorded | None:
        """What is recorded at the position of this command; stops the run if it is another command."""
        if not self.replays:
            return None
        found = difference(self.history.run, self.recorded, now)
        if found is not None:
            self.stop(Differs(found))
        return self.recorded[self.position]

    def at_once(self, now: Command, make: Callable[[], object]) -> Any:
        """The recorded value of a command, or the value that it gives now, once that is recorded."""
        recorded = self.find(now)
        if recorded is not None and recorded.result is not None:
            return self.served_from(recorded.result)
        with self.apart_from_the_workflow():
            result = Result(Outcome.VALUE, canonical_json(make()))
            if not self.history.append(now, result):
                self.stop(Overtaken(now.position))
        self.position += 1
        return result.value()

    def call(self, now: Command) -> Any:
        """The recorded result of an activity, or what it gives now, recorded before and after."""
        recorded = self.find(now)
        if recorded is not None and recorded.result is not None:
            return self.served_from(recorded.result)
        with self.apart_from_the_workflow():
            activity = self.activity(now.name)
            if recorded is not None and not activity.idempotent:
                self.stop(UnknownActivity(now))
            if recorded is None and not self.history.append(now, None):
                self.stop(Overtaken(now.position))
            result = self.perform(activity, now)
            if not self.history.settle(now.position, result):
                self.stop(Overtaken(now.position))
        self.position += 1
        return result.value()

    def activity(self, name: str) -> Activity:
        """The activity of this name."""
        if name not in self.activities:
            known = ", ".join(sorted(self.activities)) or "none"
            raise ArgumentError(
                f"{self.history.run}: there is no activity {name!r}, only {known}; register it"
            )
        return self.activities[name]

    def perform(self, activity: Activity, now: Command) -> Result:
        """Call the activity. What it raises, save a failure that it is sure of, leaves open what happened."""
        keys = (step_key(self.history.run, str(now.position), now.name, 1),) if activity.idempotent else ()
        self.in_activity = True
        try:
            value = activity.function(*keys, **json.loads(now.arguments))
            return Result(Outcome.VALUE, canonical_json(value))
        except ActivityFailedError as failure:
            return Result(Outcome.FAILED, canonical_json(_recordable(str(failure))))
        except Exception as error:  # noqa: BLE001  # whatever it is, the caller is told
            self.stop(UnknownActivity(now, error))
        finally:
            self.in_activity = False

    def served_from(self, result: Result) -> Any:
        """Hand a recorded result to the workflow, and turn to the next position."""
        self.position += 1
        self.served += 1
        return result.value()

    def stop(self, ending: Ending) -> NoReturn:
        """End the run here."""
        self.ended = ending
        raise _StopsError

    @contextmanager
    def apart_from_the_workflow(self) -> Iterator[None]:
        """What fails in here ends the run: a workflow that caught it would go on unrecorded."""
        try:
            yield
        except _StopsError:
            raise
        except BaseException as error:
            self.error = error
            raise _StopsError from error


class Runtime:
    """What a workflow is given: everything that it may take from outside, each answer recorded (§15).

    Values are what JSON has of them: a tuple comes back as a list, the first time as well. A workflow that
    catches what is no `Exception` has to let it pass.
    """

    def __init__(
        self,
        run: _Run,
        *,
        implicit: ImplicitInputs,
        clock_ms: Callable[[], int],
        random: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self._run: Final = run
        self._clock_ms: Final = clock_ms
        self._random: Final = random
        self._new_id: Final = new_id
        self._latest_ms = 0
        self.implicit: Final = implicit
        """The implicit inputs as they were recorded when the run started."""

    def now_ms(self) -> int:
        """The time in milliseconds. It never steps back within a run."""
        now = self._run.command(CommandType.NOW, "now", {})
        self._latest_ms = whole("now_ms", "the recorded time", self._run.at_once(now, self._now_ms))
        return self._latest_ms

    def random(self) -> float:
        """A random number, at least 0 and below 1."""
        now = self._run.command(CommandType.RANDOM, "random", {})
        return float(self._run.at_once(now, lambda: _fraction(self._random())))

    def new_id(self) -> str:
        """An identifier that nobody else has."""
        now = self._run.command(CommandType.NEW_ID, "new-id", {})
        made = self._run.at_once(now, lambda: text("new_id", "what the source gives", self._new_id()))
        return text("new_id", "the recorded identifier", made)

    def call(self, activity: str, /, **arguments: Any) -> Any:
        """What the activity gives, called with these arguments unless its result is recorded.

        Raises `ActivityFailedError` if it definitely failed.
        """
        return self._run.call(self._run.command(CommandType.CALL, activity, arguments))

    def sleep(self, ms: int) -> None:
        """Wait so many milliseconds. The run ends as `Waiting`, and passes here once that time has come."""
        whole("sleep", "ms", ms, highest=MAX_TIME_MS)
        run = self._run
        now = run.command(CommandType.SLEEP, "sleep", {"ms": ms})
        until_ms = whole("sleep", "the recorded time", run.at_once(now, lambda: self._now_ms() + ms))
        # What is recorded after it shows that it has passed, whatever this worker's clock says.
        with run.apart_from_the_workflow():
            if not run.replays and self._now_ms() < until_ms:
                run.stop(Waiting(until_ms))
        self._latest_ms = max(self._latest_ms, until_ms)

    def _now_ms(self) -> int:
        return max(
            self._latest_ms, whole("run_workflow", "clock_ms()", self._clock_ms(), highest=MAX_TIME_MS)
        )


def run_workflow(
    workflow: ReplayedWorkflow,
    history: History,
    arguments: Mapping[str, Any] | None = None,
    *,
    activities: Mapping[str, Activity],
    clock_ms: Callable[[], int],
    random: Callable[[], float],
    new_id: Callable[[], str],
    implicit: ImplicitInputs = NO_IMPLICIT_INPUTS,
) -> Replay:
    """Run a workflow from its start or from where its history ends, until it ends, waits or stops.

    `arguments` are those of the run, as JSON has them; None, the default, stands for the recorded ones, and
    for none where the run starts. `clock_ms` gives milliseconds, `random` numbers from 0 up to 1, `new_id`
    identifiers. `implicit` is what this worker would run under; by default nothing.

    Raises `DamagedHistoryError`, `StoreError` where the history fails, `ArgumentError` for what the workflow
    must not ask, and whatever the workflow or an activity raises where no command is recorded: mended code
    can go on from there.
    """
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ArgumentError(f"run_workflow: arguments must be a mapping of names, not {arguments!r}")
    for name, activity in activities.items():
        if not isinstance(activity, Activity):
            raise ArgumentError(
                f"run_workflow: the activity {name!r} is {shown(activity)}; write Activity(function)"
            )
    run = _Run(workflow, history, activities=activities)
    started = (
        json.loads(run.recorded[0].command.arguments) if run.replays and arguments is None else arguments
    )
    differences: tuple[ImplicitDifference, ...] = ()
    try:
        begin = run.command(CommandType.START, workflow.name, started or {})
        stored = ImplicitInputs(run.at_once(begin, lambda: dict(implicit.values)))
        differences = stored.differences(implicit)
        runtime = Runtime(run, implicit=stored, clock_ms=clock_ms, random=random, new_id=new_id)
        _to_the_end(run, runtime, json.loads(begin.arguments))
    except _StopsError:
        pass
    except Exception as error:
        # Where nothing is recorded it is the caller's; a run that has stopped, ended before it.
        if not run.replays and run.ended is None and run.error is None:
            raise
        _raised(run, error)
    if run.error is not None:
        raise run.error
    assert run.ended is not None  # whatever else stops a run says how it ended  # noqa: S101
    return Replay(run.ended, run.served, run.position - run.served, differences)


def _to_the_end(run: _Run, runtime: Runtime, arguments: dict[str, Any]) -> None:
    """Run the workflow, and make its end a command like any other."""
    ended: Ending
    try:
        value = run.workflow.function(runtime, **arguments)
        content = json.loads(canonical_json(value))
        ended, outcome = Finished(content), {"value": content}
    except ActivityFailedError as error:
        ended, outcome = Failed(str(error)), {"failed": _recordable(str(error))}
    run.at_once(run.command(CommandType.FINISH, run.workflow.name, outcome), lambda: None)
    run.ended = ended


def _raised(run: _Run, error: Exception) -> None:
    """What the workflow raises where a command is recorded is a difference from that command."""
    if run.ended is None and run.error is None:
        message = {"message": _recordable(str(error))}
        now = run.command(CommandType.RAISE, type(error).__name__, message)
        with suppress(_StopsError):
            run.find(now)
        if isinstance(run.ended, Differs):
            run.ended = Differs(run.ended.difference, error)


def attest(history: History, position: int, *, value: Any = None, failed: str | None = None) -> bool:
    """Record what a person found out about an activity without a recorded result (§12); whether it is taken.

    `value` is what the activity gave; with `failed` it did not happen, and that is why. Nothing is taken
    where a result is recorded, or no command.
    """
    if failed is not None:
        content = canonical_json(text("attest", "failed", failed))
        return history.settle(position, Result(Outcome.ATTESTED_FAILED, content))
    return history.settle(position, Result(Outcome.ATTESTED, canonical_json(value)))


def source_fingerprint(*functions: Callable[..., object]) -> str:
    """SHA-256, in hexadecimal, over the source of functions: a definition that changes with each line.

    Name the workflow and each function of your own that it calls. Raises `ArgumentError` for one without
    source, such as one typed into a console.
    """
    try:
        sources = [inspect.getsource(function) for function in functions]
    except (OSError, TypeError) as error:
        raise ArgumentError(f"source_fingerprint: {error}; give the definition as a text instead") from error
    return hashlib.sha256(canonical_json(sources).encode()).hexdigest()


def checked(run: str, recorded: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
    """The history, if it can have been recorded so; `DamagedHistoryError` otherwise."""
    for position, each in enumerate(recorded):
        found = each.command
        wrong = None
        if found.position != position:
            wrong = f"stands where position {position} belongs"
        elif (found.type is CommandType.START) != (position == 0):
            wrong = "is no start, or starts a second time"
        elif found != _remade(found):
            wrong = "has arguments that do not fit their fingerprint"
        elif each.result is None and (found.type is not CommandType.CALL or position != len(recorded) - 1):
            wrong = "has no result"
        elif found.type is CommandType.FINISH and position != len(recorded) - 1:
            wrong = "ends the run, but more is recorded"
        if wrong is not None:
            raise DamagedHistoryError(
                f"the history of {run!r} is damaged: at position {found.position}, {found.type.value} "
                f"{wrong}; restore it, since it is not what was recorded"
            )
    return recorded


def _remade(found: Command) -> Command | None:
    """The same command, made from its own arguments; None if they are none."""
    try:
        arguments = json.loads(found.arguments)
        return command(found.position, found.type, found.name, dict(arguments), definition=found.definition)
    except (ValueError, TypeError):
        return None


def _fraction(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ArgumentError(f"run_workflow: random() gave {value!r}; it must give a number from 0 up to 1")
    return float(value)


def _recordable(message: str) -> str:
    return message.encode(errors="replace").decode()
