"""Keys and fingerprints (§6): what must not matter does not, and what matters does."""

import hashlib
import json
import math
import re
import unicodedata
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fencepost.reference import (
    ArgumentError,
    canonical_json,
    compensation_key,
    fingerprint,
    notification_key,
    step_key,
    trigger_key,
)

FIXED = settings(derandomize=True, deadline=None, database=None)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PART = TEXT.filter(bool)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def has_clashing_keys(value: Any) -> bool:
    match value:
        case dict():
            names = {unicodedata.normalize("NFC", name) for name in value}
            return len(names) < len(value) or any(map(has_clashing_keys, value.values()))
        case list():
            return any(map(has_clashing_keys, value))
    return False


def otherwise(value: Any) -> Any:
    """The same value in another form: members reversed, whole numbers as floats, text decomposed."""
    match value:
        case bool() | None:
            return value
        case int() if abs(value) < 2**53:
            return float(value)
        case float() if value.is_integer():
            return int(value)
        case str():
            return unicodedata.normalize("NFD", value)
        case list():
            return tuple(otherwise(each) for each in value)
        case dict():
            return {otherwise(name): otherwise(value[name]) for name in reversed(value)}
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same, without any canonical text; true is not 1."""
    match one, other:
        case (bool() | None, _) | (_, bool() | None):
            return one is other
        case (int() | float(), int() | float()):
            return one == other
        case (str(), str()):
            return unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
        case (list() | tuple(), list() | tuple()):
            return len(one) == len(other) and all(map(same, one, other))
        case (dict(), dict()):
            ours = {unicodedata.normalize("NFC", name): value for name, value in one.items()}
            theirs = {unicodedata.normalize("NFC", name): value for name, value in other.items()}
            return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in ours)
    return False


@FIXED
@given(VALUES)
@example({"ä": 1, "a": [1e22, -0.0, {"b": None}]})
def test_member_order_number_form_and_normal_form_do_not_matter(value: Any) -> None:
    assume(not has_clashing_keys(value))
    assert fingerprint("charge", "payment", 1, value) == fingerprint("charge", "payment", 1, otherwise(value))


@FIXED
@given(VALUES, VALUES)
@example(1, True)
@example(0, False)
@example("1", 1)
@example({}, [])
@example(0.1 + 0.2, 0.3)
@example(2**53, 2**53 + 1)
@example("ﬁ", "fi")
def test_texts_are_equal_exactly_if_the_values_mean_the_same(one: Any, other: Any) -> None:
    assume(not has_clashing_keys(one) and not has_clashing_keys(other))
    assert (canonical_json(one) == canonical_json(other)) == same(one, other)


@FIXED
@given(VALUES)
def test_the_canonical_text_is_json_and_canonical_itself(value: Any) -> None:
    assume(not has_clashing_keys(value))
    text = canonical_json(value)
    assert same(json.loads(text), value)
    assert canonical_json(json.loads(text)) == text


def in_nfc(value: Any) -> Any:
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case list():
            return [in_nfc(each) for each in value]
        case dict():
            return {in_nfc(name): in_nfc(each) for name, each in value.items()}
    return value


SAFE = st.integers(-(2**53) + 1, 2**53 - 1)
"""The whole numbers that RFC 8785 has."""

RFC_VALUES = st.recursive(
    st.none() | st.booleans() | SAFE | st.floats(-(2**53), 2**53) | st.floats(-1e-3, 1e-3) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@FIXED
@given(RFC_VALUES)
@example([1e-7, -1.5e-7, 1e-6, 1.25e-5, 9.999e-5, 1e-4, 5e-324, -0.0, 0.1, 123456.789])
@example({"\U0001f600": 1, "\ufb33": 2, "\r": 3, "1": 4, "\x80": 5, "\u20ac": 6})
@example('\x00\x1f\x7f"\\/\u2028\b\f\n\r\t')
def test_the_canonical_text_is_that_of_rfc_8785(value: Any) -> None:
    assume(not has_clashing_keys(value))
    assert canonical_json(value).encode() == rfc8785.dumps(in_nfc(value))


def test_whole_numbers_beyond_what_rfc_8785_has_keep_all_their_digits() -> None:
    assert canonical_json([2**53 + 1, 1e22, -(10**30)]) == f"[{2**53 + 1},{10**22},{-(10**30)}]"


def test_operation_resource_and_schema_version_matter() -> None:
    base = fingerprint("charge", "payment", 1, {})
    others = {
        fingerprint("refund", "payment", 1, {}),
        fingerprint("charge", "card", 1, {}),
        fingerprint("charge", "payment", 2, {}),
        fingerprint("charge", "payment", 1, {"cents": 1}),
        fingerprint("payment", "charge", 1, {}),
    }
    assert len(others | {base}) == 6


def test_a_fingerprint_never_changes() -> None:
    """Stored ones are compared with new ones for years."""
    text = '["charge","payment",1,{"cents":500,"to":"Zo\u00eb"}]'
    found = fingerprint("charge", "payment", 1, {"to": "Zoe\N{COMBINING DIAERESIS}", "cents": 5e2})
    assert found == hashlib.sha256(text.encode()).hexdigest()
    assert found == "5e2eb1f377aa7a335391a47aeb9c96ac311fd483ca0faaf0589dc18dfab1c3d4"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, math.nan]}, r"\$.a\[1\] is nan"),
        (math.inf, r"\$ is inf"),
        ({1: "a"}, r"\$ has the key 1; make it a str"),
        ({"a": {None: 1}}, r"\$.a has the key None"),
        ({"é": 1, "e\N{COMBINING ACUTE ACCENT}": 2}, r"two keys of \$ are 'é' once normalised"),
        ({"a": b"bytes"}, r"\$.a is b'bytes', which JSON does not have"),
        ({"a": {1, 2}}, r"\$.a is {1, 2}, which JSON does not have"),
        ("\ud800", r"is not valid Unicode"),
        ({"\ud800": 1}, r"is not valid Unicode"),
    ],
)
def test_what_has_no_canonical_text_is_an_error_that_says_where(value: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        canonical_json(value)


def test_nesting_without_end_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArgumentError, match="nested deeper than 64 levels"):
        canonical_json(loop)


@FIXED
@given(st.tuples(PART, PART, PART, st.integers(1, 20)), st.tuples(PART, PART, PART, st.integers(1, 20)))
@example(("a:b", "c", "d", 1), ("a", "b:c", "d", 1))
@example(("a", "b", "c-v1", 2), ("a", "b", "c", 1))
@example(("a", "b", "c", 12), ("a", "b", "c-v1", 2))
@example(("%3A", "b", "c", 1), (":", "b", "c", 1))
@example(("é", "b", "c", 1), ("e\N{COMBINING ACUTE ACCENT}", "b", "c", 1))
def test_different_parts_have_different_keys(one: Any, other: Any) -> None:
    assert (step_key(*one) == step_key(*other)) == (one == other)


@FIXED
@given(PART, PART, PART, st.integers(1, 2**63 - 1))
def test_a_key_is_plain_text_from_which_its_parts_can_be_read(
    instance: str, step: str, resource: str, version: int
) -> None:
    from urllib.parse import unquote

    key = step_key(instance, step, resource, version)
    found = re.fullmatch(r"([!-9;-~]+):([!-9;-~]+):([!-9;-~]+)-v(\d+)", key)
    assert found is not None
    assert [unquote(part) for part in found.groups()[:3]] == [instance, step, resource]
    assert int(found[4]) == version


def test_a_key_looks_as_the_protocol_has_it() -> None:
    assert step_key("order-42", "charge", "payment", 1) == "order-42:charge:payment-v1"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("", "b", "c", 1), "instance is empty"),
        (("a", 7, "c", 1), "step must be a str"),
        (("a", "b", "\ud800", 1), "resource .* is not valid Unicode"),
        (("a", "b", "c", 0), "intent_version is 0"),
        (("a", "b", "c", True), "intent_version must be an int"),
    ],
)
def test_a_key_of_parts_that_cannot_be_is_an_error(parts: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        step_key(*parts)


# The four domains of keys (§6).

VERSION = st.integers(1, 10**6)
DOMAINS: dict[Any, tuple[st.SearchStrategy[Any], ...]] = {
    trigger_key: (PART, PART),
    step_key: (PART, PART, PART, VERSION),
    compensation_key: (PART, PART, VERSION),
    notification_key: (PART, PART, PART, VERSION),
}
CALLS = st.sampled_from(list(DOMAINS)).flatmap(
    lambda domain: st.tuples(st.just(domain), st.tuples(*DOMAINS[domain]))
)


@settings(FIXED, max_examples=500)
@given(CALLS, CALLS)
@example((trigger_key, ("a", "b:c-v1")), (step_key, ("trigger/a", "b", "c", 1)))
@example((compensation_key, ("a:b", "c", 1)), (compensation_key, ("a", "b:c", 1)))
@example((notification_key, ("a", "b", "c-v1", 2)), (notification_key, ("a", "b", "c", 12)))
@example((step_key, ("compensation/a", "b", "c", 1)), (compensation_key, ("a", "b:c", 1)))
def test_keys_are_one_only_for_the_same_parts_of_the_same_domain(one: Any, other: Any) -> None:
    (first, parts), (second, other_parts) = one, other
    assert (first(*parts) == second(*other_parts)) == (one == other)


@FIXED
@given(CALLS)
def test_a_key_of_any_domain_is_ascii_without_blanks_and_stays_the_same(call: Any) -> None:
    domain, parts = call
    key = domain(*parts)
    assert re.fullmatch(r"[!-~]+", key)
    assert domain(*parts) == key


def test_keys_of_the_other_domains_read_as_what_they_are() -> None:
    assert trigger_key("shop", "event-7") == "trigger/shop:event-7"
    assert compensation_key("order-42", "charge", 1) == "compensation/order-42:charge-v1"
    assert notification_key("order-42", "shipped", "ada", 3) == "notification/order-42:shipped:ada-v3"


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("trigger_key: source is empty", lambda: trigger_key("", "e")),
        ("compensation_key: compensation_version is 0", lambda: compensation_key("i", "s", 0)),
        ("notification_key: target_version is -1", lambda: notification_key("i", "k", "r", -1)),
        ("notification_key: recipient must be a str", lambda: notification_key("i", "k", 7, 1)),
    ],
)
def test_parts_that_cannot_be_are_an_error_in_each_domain(message: str, make: Any) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
