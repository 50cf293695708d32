"""The words of the modelling language: guards, quantifiers, choice.

Each word asks the *active reading* what to do: the run reading evaluates it on concrete values, the traced
reading builds a term. `reading(…)` makes one active; models never see which.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any, Protocol, TypeVar

from fencepost.model.domains import Element, LeafDomain, Record, Sort
from fencepost.model.errors import ModelError
from fencepost.model.protocol import did_you_mean

State = Any
"""The state an action or claim receives: one attribute per variable. Each reading has a class of its own."""

Step = Any
"""What a claim about a step may ask besides the two states: `step.action`, `step.outcome`, `step.refused`."""


class GuardSignal(BaseException):
    """Ends a run of an action. Not an Exception: a model's `except Exception` must not swallow a guard."""


class Disabled(GuardSignal):
    """A `when` is false: the move cannot happen."""


class Refused(GuardSignal):
    """A `refuse_unless` is false: the operation ends with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Cut(GuardSignal):
    """The move leaves the bounds of the scope."""


class Fault(GuardSignal):
    """The model read what is not there: the value of an absent optional, or an index below its domain."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(str(error))
        self.error = error


class Absent:
    """The one value of an optional that is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "absent"

    def __bool__(self) -> bool:
        raise ModelError("the truth of absent", instead="ask x.present")


absent = Absent()


Domains = tuple[LeafDomain, ...]


class Reading(Protocol):
    """What a reading answers to the words of the language."""

    protocol: Any
    """What is read, so that words can tell an unknown name."""

    evaluates: bool
    """Whether values are Python's own, so that a helper can simply be called."""

    def truth(self, condition: object) -> bool: ...  # noqa: D102
    def quantify(self, op: str, domains: Domains, fn: Callable[..., Any]) -> Any: ...  # noqa: D102
    def extreme(self, op: str, domain: LeafDomain, fn: Callable[..., Any]) -> Any: ...  # noqa: D102
    def choose(self, condition: object, a: Any, b: Any) -> Any: ...  # noqa: D102
    def imply(self, a: object, b: Any) -> Any: ...  # noqa: D102
    def fold(self, fn: Callable[[], Any]) -> Any: ...  # noqa: D102
    def record(self, record: Record, values: dict[str, Any]) -> Any: ...  # noqa: D102
    def elements(self, sort: Sort) -> Iterator[Element]: ...  # noqa: D102
    def switched(self, name: str) -> Any: ...  # noqa: D102
    def movable(self, state: State, actions: tuple[str, ...]) -> Any: ...  # noqa: D102


_READINGS: list[Reading] = []


push = _READINGS.append
pop = _READINGS.pop
"""The two halves of `reading`, for loops in which its cost counts."""


@contextmanager
def reading(active: Reading) -> Iterator[None]:
    """Make `active` answer the words of the language inside the block."""
    _READINGS.append(active)
    try:
        yield
    finally:
        _READINGS.pop()


def _active(word: str) -> Reading:
    if not _READINGS:
        raise ModelError(
            f"{word} used outside a model", instead="call it inside an action, a claim or a helper of one"
        )
    return _READINGS[-1]


def _holds(condition: object, word: str) -> bool:
    if condition is True or condition is False:
        return condition
    return _active(word).truth(condition)


def when(condition: object) -> None:
    """The move can happen only if `condition` holds; otherwise there is no transition at all."""
    if condition is True:
        return
    if condition is False or not _holds(condition, "when"):
        raise Disabled


_NO_CODES = frozenset({"ok", "none", "done", "cut", "fault"})
"""How else a step may end, or what nobody has answered yet."""


def _check_code(code: object) -> None:
    if type(code) is not str or code in _NO_CODES:
        raise ModelError(
            f"{code!r} is no code of a refusal", instead="give the text of a code, such as 'not-found'"
        )


def refuse_unless(condition: object, code: str) -> None:
    """Inside an operation of the store or a downstream: unless `condition` holds, answer refused(code) (§2).

    A refusal is a transition: every write to the operation's home is undone, and the answer is handed on.
    """
    if type(code) is not str or code in _NO_CODES:
        _check_code(code)
    if condition is True:
        return
    if condition is False or not _holds(condition, "refuse_unless"):
        raise Refused(code)


def answer_refused_unless(state: State, condition: object, code: str) -> None:
    """Answer ``refused(code)`` and go on all the same, as a broken operation does. Only mutants use it."""
    _check_code(code)
    if not _holds(condition, "refuse_unless"):
        state.__dict__.setdefault("_late_refusal", code)


def _split(args: tuple[Any, ...], word: str) -> tuple[tuple[LeafDomain, ...], Callable[..., Any]]:
    *domains, fn = args
    if not domains or not callable(fn) or not all(isinstance(d, LeafDomain) for d in domains):
        raise ModelError(
            f"{word} needs one or more domains and then a function", instead=f"{word}(workers, lambda w: …)"
        )
    check_takes(fn, len(domains), word)
    return tuple(domains), fn


def check_takes(fn: Callable[..., Any], number: int, word: str) -> None:
    """Refuse a function that cannot be given `number` values."""
    if type(fn) is FunctionType and fn.__code__.co_argcount == number:
        return
    code = getattr(fn, "__code__", None)
    if code is not None and not hasattr(fn, "__wrapped__") and not code.co_flags & inspect.CO_VARARGS:
        most = code.co_argcount - isinstance(fn, MethodType)
        fits = most - len(fn.__defaults__ or ()) <= number <= most
    else:
        fits = _may_take(fn, number)
    if not fits:
        raise ModelError(
            f"{word} gives its function {number} value{'s' * (number != 1)}, but it takes another number",
            instead="give it one parameter for each domain"
            + (", and one for the old value" if word == "update_where" else ""),
        )


def _may_take(fn: Callable[..., Any], number: int) -> bool:
    try:
        inspect.signature(fn).bind(*range(number))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _split_one(domain: object, fn: Any, word: str) -> tuple[LeafDomain, Callable[..., Any]]:
    (only,), fn = _split((domain, fn), word)
    return only, fn


def every(*args: Any) -> Any:
    """Whether the function holds for all values of the domains: ``every(workers, lambda w: …)``."""
    return _active("every").quantify("forall", *_split(args, "every"))


def some(*args: Any) -> Any:
    """Whether the function holds for at least one combination of values of the domains."""
    return _active("some").quantify("exists", *_split(args, "some"))


def count(*args: Any) -> Any:
    """For how many values the function holds. Finite readings only: for all sizes use `at_most_one`."""
    return _active("count").quantify("count", *_split(args, "count"))


def at_most_one(*args: Any) -> Any:
    """Whether the function holds for one value of the domain, or for none."""
    return _active("at_most_one").quantify("at_most_one", *_split(args, "at_most_one"))


def lowest(domain: LeafDomain, fn: Callable[..., Any]) -> Any:
    """The smallest number that the function gives over a finite domain."""
    return _active("lowest").extreme("lowest", *_split_one(domain, fn, "lowest"))


def highest(domain: LeafDomain, fn: Callable[..., Any]) -> Any:
    """The largest number that the function gives over a finite domain. Else keep a high-water mark."""
    return _active("highest").extreme("highest", *_split_one(domain, fn, "highest"))


def ite(condition: object, a: Any, b: Any) -> Any:
    """`a` if `condition` holds, else `b`, as one value without a fork. Both are evaluated."""
    return _active("ite").choose(condition, a, b)


def implies(a: object, b: Any) -> Any:
    """Whether `b` holds wherever `a` does. Give ``lambda: b`` when it makes sense only where `a` holds."""
    return _active("implies").imply(a, b)


def switched(name: str) -> Any:
    """Whether the scope has the world's switch `name` on (§16)."""
    return _active("switched").switched(name)


def can_move(state: State, *who: str) -> Any:
    """Whether an action of `who`, or its refusal, can change something here (for L3).

    `who` are actors or, for a claim that is stronger and quicker to check, single actions.
    """
    active = _active("can_move")
    protocol = active.protocol
    known: set[str] = protocol.actors | set(protocol.actions)
    if not who:
        raise ModelError(
            "can_move of nobody", instead=f"name the actors: {', '.join(sorted(protocol.actors))}"
        )
    for name in who:
        if name not in known:
            raise ModelError(
                f"no actor or action {name!r}", instead=did_you_mean(name, sorted(known), empty="none acts")
            )
    names = tuple(a.name for a in protocol.actions.values() if a.actor in who or a.name in who)
    return active.movable(state, names)


def iterate(sort: Sort) -> Iterator[Element]:
    """The elements of a sort, for ``for w in workers``: known in finite readings only."""
    return _active(f"for … in {sort.name}").elements(sort)


def build_record(record: Record, values: dict[str, Any]) -> Any:
    """A record value; all fields must be given, and no other."""
    wrong = set(values) ^ set(record.fields)
    if wrong:
        raise ModelError(
            f"{record.name}(…) given {sorted(values)}",
            instead=f"give exactly the fields {list(record.fields)}",
        )
    if _READINGS:
        return _READINGS[-1].record(record, values)
    from fencepost.model.rest import record_of

    return record_of(record, values)  # a constant, such as the first value of a variable


F = TypeVar("F", bound=Callable[..., Any])


def derived(fn: F) -> F:
    """Mark a helper that computes one value from a state: it is traced on its own and folded to one term."""

    @functools.wraps(fn)
    def folded(*args: Any, **named: Any) -> Any:
        if not _READINGS or _READINGS[-1].evaluates:
            return fn(*args, **named)
        return _READINGS[-1].fold(lambda: fn(*args, **named))

    return folded  # type: ignore[return-value]
