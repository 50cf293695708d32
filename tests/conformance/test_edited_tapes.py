"""A saved schedule that somebody has edited is refused with what is wrong, or run as far as it goes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.traces import ReplayError
from fencepost.conformance import replay_tape
from fencepost.conformance.tapes import tape_from_json

from .dict_store import RewindingDictAdapter

ACQUIRE = {"action": "acquire", "arguments": [0, 0], "wait_ms": 0, "lease_ms": 10}

GOOD: dict[str, Any] = {
    "format": 1,
    "kind": "schedule of an implementation",
    "adapter": "dictionary",
    "protocol": "core",
    "fingerprint": "x",
    "scope": {
        "name": "statements",
        "sizes": {"worker": 2, "commit": 3},
        "bounds": {"lease_version": 5, "state_version": 4, "incarnation": 2},
        "switches": ["commit_duplicated", "crash", "reply_lost"],
    },
    "moves": [],
    "scripts": [[{"action": "acquire", "arguments": [n, 0], "worker": ""}] for n in (0, 1)],
    "choices": ["a", "b", "b", "a"],
    "breaks": "no_version_held_by_two",
    "difference": "",
}

EDITS: list[tuple[list[Any], Any, str]] = [
    (["choices"], ["", "a"], "'' is no name"),
    (["choices"], 5, "5 is no list"),
    (["choices"], "ab", "'ab' is no list"),
    (["choices"], ["c"], "no choice of one of 2 workers"),
    (["choices"], ["a?"], "no choice"),
    (["choices"], [1], "1 is no"),
    (["moves"], [{**ACQUIRE, "action": "fly"}], "'fly' is no action; there are acquire"),
    (["moves"], {}, "is no list"),
    (["moves"], [{**ACQUIRE, "wait_ms": -1}], "-1 is no number"),
    (["moves"], [{**ACQUIRE, "lease_ms": "9"}], "'9' is no"),
    (["moves"], [{**ACQUIRE, "arguments": [0.5]}], "0.5 is no number"),
    (["moves"], [{"action": "acquire"}], "arguments"),
    (["scripts", 0, 0, "action"], "fly", "'fly' is no action"),
    (["scripts", 0, 0, "worker"], None, "None is no name"),
    (["scripts"], GOOD["scripts"] * 5, "10 scripts"),
    (["scripts"], [5], "5 is no list"),
    (["breaks"], "nonsense", "'nonsense' is no claim of core"),
    (["breaks"], ["x"], "is no name"),
    (["breaks"], "", "no name"),
    (["scope", "sizes", "worker"], "two", "'two' is no size"),
    (["scope", "bounds", "incarnation"], -1, "-1 is no bound"),
    (["scope", "switches"], "crash", "'crash' is no list"),
    (["adapter"], 3, "3 is no name"),
]


@pytest.mark.parametrize(("place", "value", "told"), EDITS)
def test_an_edited_tape_is_refused_with_what_is_wrong(place: list[Any], value: Any, told: str) -> None:
    data = copy.deepcopy(GOOD)
    inner: Any = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ReplayError) as caught:
        tape_from_json(data, "edited")
    assert told in str(caught.value)
    assert str(caught.value).startswith("edited is no schedule of an implementation")


@pytest.mark.parametrize("key", sorted({*GOOD} - {"kind"}))
def test_a_tape_without_one_of_its_parts_is_refused(key: str) -> None:
    with pytest.raises(ReplayError, match=key):
        tape_from_json({k: v for k, v in GOOD.items() if k != key})


def test_moves_that_are_not_possible_any_more_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({**GOOD, "moves": [{**ACQUIRE, "arguments": [9, 9]}]}))
    made = replay_tape(path, RewindingDictAdapter(locking="none"))
    assert made.fails
    assert "1 of the 1 moves to its start are not possible any more" in made.changed
