"""The answer of a downstream, whatever its code does (§2, §7): no downstream stops a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencepost.reference import downstream_values as words
from fencepost.reference.downstream_values import DownstreamAnswer, Held, Receipt, Unknown, Value
from fencepost.reference.values import ArgumentError, Ok, Refused, shown, text
from fencepost.reference.wording import said, storable, words_of


def asked(call: Callable[[], DownstreamAnswer[Value]], *kinds: type) -> DownstreamAnswer[Value]:
    """The answer of a downstream, ok only with a value of these kinds.

    An `ArgumentError` says that the call changed nothing and never will: it is refused as `malformed`, with
    the reason. Anything else that is raised, or is no such answer, is unknown.
    """
    try:
        return _understood(call(), kinds)
    except ArgumentError as error:
        why = words_of(error) or "it does not say why"
        return Refused(words.MALFORMED, Held(token=None, fingerprint=None, revision=None, why=why))
    except Exception as error:  # noqa: BLE001  # whatever a downstream raises is no answer
        return Unknown(said(error))


def _understood(answer: Any, kinds: tuple[type, ...]) -> DownstreamAnswer[Any]:
    match answer:
        case Ok(value) if isinstance(value, kinds) and _is_recordable(value):
            return answer
        case Refused(code, observed) if isinstance(code, str) and code and _is_held(observed):
            why = None if observed is None or observed.why is None else storable(observed.why)
            return Refused(storable(code), None if observed is None else replace(observed, why=why))
        case Unknown(why) if isinstance(why, str):
            return Unknown(storable(why) or "it does not say why")
        case _:
            return Unknown(storable(f"the downstream gave {shown(answer)}, which is no answer of it"))


def _is_recordable(value: Any) -> bool:
    """Whether a receipt is one that the store can keep."""
    if not isinstance(value, Receipt):
        return True
    try:
        return bool(text("Receipt", "receipt", value.receipt))
    except ArgumentError:
        return False  # it may well have happened: nothing is known, and nothing is malformed


def _is_held(observed: object) -> bool:
    return observed is None or (isinstance(observed, Held) and isinstance(observed.why, str | None))
