"""Idempotency keys and fingerprints (§6): derived once, before the intent is committed, and never again.

A key says which intent is meant, and is the same for every worker and every retry. A fingerprint says what
the intent is, so that a key that is used for something else is noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from typing import Any, Final
from urllib.parse import quote

from fencepost.reference.values import ArgumentError, shown, text, whole

DEEPEST: Final = 64
"""How deep parameters may be nested: more than any request needs, and far from Python's own limit."""


def step_key(instance: str, step: str, resource: str, intent_version: int) -> str:
    """The key of a step's effect, as in `order-42:charge:payment-v1` (§6). Different parts, different keys.

    The key is ASCII without blanks: what else is in a part, `:` and `%` included, is percent-encoded.
    Raises `ArgumentError` for a part that is empty or no text, and for a version below 1.
    """
    whole("step_key", "intent_version", intent_version, lowest=1)
    # What is behind the last "-v" is the version, since that has digits only.
    return f"{_encoded('step_key', instance=instance, step=step, resource=resource)}-v{intent_version}"


def trigger_key(source: str, event_id: str) -> str:
    """The key of a trigger: where the event comes from, and its id there (§6). For who keys by one text."""
    return f"trigger/{_encoded('trigger_key', source=source, event_id=event_id)}"


def compensation_key(instance: str, step: str, compensation_version: int) -> str:
    """The key of a compensation: the instance, the step whose effect it undoes, and its version (§6)."""
    whole("compensation_key", "compensation_version", compensation_version, lowest=1)
    encoded = _encoded("compensation_key", instance=instance, step=step)
    return f"compensation/{encoded}-v{compensation_version}"


def notification_key(instance: str, kind: str, recipient: str, target_version: int) -> str:
    """The key of a notification: the instance, its kind, and the version of the recipient's target (§6)."""
    whole("notification_key", "target_version", target_version)
    encoded = _encoded("notification_key", instance=instance, kind=kind, recipient=recipient)
    return f"notification/{encoded}-v{target_version}"


def _encoded(who: str, **parts: str) -> str:
    """The parts with `:` between. None holds `:` or `/` itself, so no key is one of another domain."""
    return ":".join(quote(text(who, name, part), safe="") for name, part in parts.items())


def fingerprint(operation: str, resource: str, schema_version: int, parameters: object) -> str:
    """SHA-256, in hexadecimal, over what an effect is to do (§6).

    The order of members, the form of numbers (1, 1.0) and the normal form of Unicode do not matter; values
    do, and true is not 1. Raises `ArgumentError` like `canonical_json`.
    """
    text("fingerprint", "operation", operation)
    text("fingerprint", "resource", resource)
    whole("fingerprint", "schema_version", schema_version)
    whole_text = canonical_json([operation, resource, schema_version, parameters])
    return hashlib.sha256(whole_text.encode()).hexdigest()


def canonical_json(value: object) -> str:
    """The one text for all JSON values that mean the same: sorted members, shortest numbers, NFC, no blanks.

    It is that of RFC 8785, so other languages derive the same fingerprints, with two additions: text is
    normalised to NFC first, and whole numbers beyond 2**53, which that RFC leaves out, keep all their digits.

    Raises `ArgumentError`, which says where, for what has no such text: NaN and infinities, keys that are not
    text or become the same once normalised, text that is not valid Unicode, other types, numbers of more
    digits than Python writes, and nesting beyond `DEEPEST` levels.
    """
    return _canonical(value, "$", depth=0)


def _canonical(value: object, where: str, *, depth: int) -> str:
    if depth > DEEPEST:
        raise ArgumentError(f"canonical_json: {where} is nested deeper than {DEEPEST} levels; flatten it")
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return _digits(int(value), where)  # of a subclass, such as an enum, the number
        case float():
            return _number(value, where)
        case str():
            return _quoted(_string(value, where))
        case list() | tuple():
            each = (_canonical(one, f"{where}[{i}]", depth=depth + 1) for i, one in enumerate(value))
            return f"[{','.join(each)}]"
        case dict():
            members = _members(value, where, depth=depth)
            in_order = sorted(members.items(), key=lambda member: member[0].encode("utf-16-be"))
            return f"{{{','.join(f'{_quoted(name)}:{text}' for name, text in in_order)}}}"
    raise ArgumentError(
        f"canonical_json: {where} is {shown(value)}, which JSON does not have; "
        "use None, bool, int, float, str, list, tuple or dict"
    )


def _digits(value: int, where: str) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python's limit, which holds for reading it back, too
        raise ArgumentError(
            f"canonical_json: {where} is a number of more digits than Python writes; give it as text"
        ) from error


def _number(value: float, where: str) -> str:
    """A number as ECMAScript writes it, which RFC 8785 asks for; whole ones as the integer that they are."""
    if not math.isfinite(value):
        raise ArgumentError(f"canonical_json: {where} is {value}, which JSON does not have; use null or text")
    if value.is_integer():
        return str(int(value))
    shortest = repr(float(value))  # both languages have the fewest digits that give the same number back
    digits, e, exponent = shortest.partition("e")
    if not e:
        return shortest
    if int(exponent) < _LEAST_EXPONENT:
        return f"{digits}e{int(exponent)}"
    sign, whole_part, fraction = "-" * (value < 0), digits.lstrip("-")[0], digits.partition(".")[2]
    return f"{sign}0.{'0' * (-int(exponent) - 1)}{whole_part}{fraction}"


_LEAST_EXPONENT: Final = -6
"""Numbers below 10**-6 are written with an exponent; Python begins with those below 10**-4."""


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _string(value: str, where: str) -> str:
    return unicodedata.normalize("NFC", text("canonical_json", where, value, may_be_empty=True))


def _members(value: dict[Any, Any], where: str, *, depth: int) -> dict[str, str]:
    members: dict[str, str] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise ArgumentError(f"canonical_json: {where} has the key {shown(key)}; make it a str")
        name = _string(key, f"a key of {where}")
        if name in members:
            raise ArgumentError(
                f"canonical_json: two keys of {where} are {name!r} once normalised; keep one of them"
            )
        members[name] = _canonical(member, f"{where}.{name}", depth=depth + 1)
    return members
