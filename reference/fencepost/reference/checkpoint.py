"""Checkpoints (§14): an instance as one commit left it, sealed, and what is asked before it is resumed.

A checkpoint is bytes, and there is one way to write each: a JSON object in ASCII, members sorted, no blanks.
Unlike the JSON of keys and fingerprints it leaves text as it is, since names are compared to the letter. It
is written in the transaction of its commit, and so kept in the store: a file beside it would be an older one
after each crash between the two, and every such crash a false alarm.

The hash covers everything else, the MAC everything but itself and the hash. The hash finds accidents; whoever
changes a checkpoint on purpose computes it anew. Only the MAC, whose key is not in the store, finds that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeAlias

from fencepost.reference.values import (
    ArgumentError,
    Definition,
    Evidence,
    Intent,
    Row,
    StepRow,
    StepStatus,
    StoreError,
)

FORMAT: Final = 1
"""The format version; rises whenever what `content_of` gives has other members."""

SHORTEST_KEY: Final = 16
"""In bytes: what is shorter can be found by trying."""


class Problem(StrEnum):
    """What is wrong with a checkpoint."""

    LOST = "lost"
    """There is none, though the instance has commits."""
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    """It is not the text of a checkpoint."""
    OTHER_FORMAT = "other-format"
    HASH_DIFFERS = "hash-differs"
    MAC_MISSING = "mac-missing"
    MAC_DIFFERS = "mac-differs"
    OTHER_INSTANCE = "other-instance"
    OTHER_VERSIONS = "other-versions"
    """It was written with another commit than the one that the row is from: an older one, say."""
    OTHER_DEFINITION = "other-definition"
    OTHER_CONTENT = "other-content"
    """It is sound, and the row is not as it says: the row was changed past the store."""


class BadCheckpointError(StoreError):
    """A checkpoint that nobody may resume from. It never means that there is none. Nothing was changed.

    `field` is the member of the checkpoint that is wrong, None if it is the whole.
    """

    def __init__(
        self, problem: Problem, instance: str, what: str, advice: str, field: str | None = None
    ) -> None:
        super().__init__(f"the checkpoint of {instance!r} {what}; {advice}")
        self.problem: Final = problem
        self.instance: Final = instance
        self.field: Final = field


_VOUCH: Final = "compare the steps with what happened, and say that they are right with Store.vouch"
_RESTORE: Final = f"nobody goes on with the instance: restore the file from a copy, or {_VOUCH}"
_TAMPERED: Final = f"somebody without the key wrote it: find out who can write to the file, {_VOUCH}"
_UNKEYED: Final = f"a worker without the key wrote it, or somebody who must not: give all the key, {_VOUCH}"
_OTHER_FENCEPOST: Final = f"another fencepost wrote it, or it is damaged: run the one that did, or {_VOUCH}"
_UNKEPT: Final = f"if workers without checkpoints have run it, give them checkpoints too; {_VOUCH}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint says. `lease_version` is that of the commit that it was written with.

    `content` is the row's status, its causes and its steps, as `content_of` gives them. `mac` is None in one
    that was written without a key.
    """

    format: int
    instance: str
    lease_version: int
    state_version: int
    definition: Definition | None
    content: Mapping[str, Any]
    mac: str | None
    hash: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What one transaction saw of an instance that somebody is about to resume.

    `lease_version` is that of the commit that made the row's state version, as the event log has it, 0 before
    the first commit. The row's own is another one: who recovers has just raised it. `checkpoint` is None if
    there is none.
    """

    row: Row
    lease_version: int
    checkpoint: bytes | None


# What it says.


def content_of(row: Row) -> dict[str, Any]:
    """What a checkpoint holds of a row with its steps: all that only a commit changes, in plain values."""
    return {
        "status": row.status,
        "unwinding_cause": row.unwinding_cause,
        "manual_cause": row.manual_cause,
        "steps": [_plain(step) for step in row.steps],
    }


def _plain(value: StepRow | Intent) -> dict[str, Any]:
    return {each.name: _value(getattr(value, each.name)) for each in fields(value)}


def _value(value: Any) -> Any:
    match value:
        case Intent():
            return _plain(value)
        case StrEnum():
            return value.value
        case tuple():
            return list(value)
        case _:
            return value


def steps_of(checkpoint: Checkpoint) -> tuple[StepRow, ...]:
    """The steps that a checkpoint holds: what an owner resumes from, since it is what was checked.

    Raises `BadCheckpointError` for content that holds none.
    """
    try:
        return tuple(_step(each) for each in checkpoint.content["steps"])
    except (KeyError, TypeError, ValueError):
        _bad(Problem.DAMAGED, checkpoint.instance, "is damaged: it holds no steps", _RESTORE, "content")


def _step(plain: Mapping[str, Any]) -> StepRow:
    made = dict(plain)
    for name, kind in _KINDS.items():
        if made[name] is not None:
            made[name] = kind(made[name])
    return StepRow(**made)


_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "status": StepStatus,
    "from_status": StepStatus,
    "evidence": Evidence,
    "former_evidence": Evidence,
    "intent": lambda plain: Intent(**plain),
    "undo": lambda plain: Intent(**plain),
    "depends_on": tuple,
}
"""The members of a step that are no plain values."""


def _text(value: object) -> str:
    """The one text of a value; ASCII, so that damage shows in any byte."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _members(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the MAC covers."""
    definition = checkpoint.definition
    return {
        "format": checkpoint.format,
        "instance": checkpoint.instance,
        "lease_version": checkpoint.lease_version,
        "state_version": checkpoint.state_version,
        "definition": None if definition is None else [definition.id, definition.fingerprint],
        "content": checkpoint.content,
    }


def _mac_of(checkpoint: Checkpoint, key: bytes) -> str:
    return hmac.new(key, _text(_members(checkpoint)).encode(), hashlib.sha256).hexdigest()


def _hash_of(members: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(members).encode()).hexdigest()


# Reading.


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_definition(value: object) -> bool:
    return value is None or (isinstance(value, list) and len(value) == 2 and all(map(_is_text, value)))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


MEMBERS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "format": (_is_version, "a whole number"),
    "instance": (_is_text, "a name"),
    "lease_version": (_is_version, "a whole number"),
    "state_version": (_is_version, "a whole number"),
    "definition": (_is_definition, "null, or an id and a fingerprint"),
    "content": (lambda value: isinstance(value, dict), "an object"),
    "mac": (lambda value: value is None or _is_digest(value), "null, or 64 hexadecimal digits"),
    "hash": (_is_digest, "64 hexadecimal digits"),
}
"""What a checkpoint consists of, and how each member is recognised."""


def read_checkpoint(data: bytes, instance: str) -> Checkpoint:
    """What the bytes of a checkpoint say, if they are those of one; `instance` is for messages.

    Raises `BadCheckpointError` for what is cut short, for what is no checkpoint, naming the member that is
    wrong, and for another format. It asks nothing of hash and MAC.
    """
    members = _object_in(data, instance)
    if _is_version(members.get("format")) and members["format"] != FORMAT:
        what = f"has format {members['format']}, and this fencepost reads {FORMAT}"
        _bad(Problem.OTHER_FORMAT, instance, what, _OTHER_FENCEPOST, "format")
    for name, (fits, kind) in MEMBERS.items():
        if name not in members:
            _bad(Problem.DAMAGED, instance, f"is damaged: it has no {name}", _RESTORE, name)
        if not fits(members[name]):
            _bad(Problem.DAMAGED, instance, f"is damaged: its {name} is not {kind}", _RESTORE, name)
    for name in members:
        if name not in MEMBERS:
            _bad(
                Problem.DAMAGED, instance, f"is damaged: it has {name!r}, which is no member", _RESTORE, name
            )
    if _text(members).encode() != data:
        _bad(Problem.DAMAGED, instance, "is damaged: it is not in the form that is written", _RESTORE)
    definition = members["definition"]
    return Checkpoint(**{**members, "definition": None if definition is None else Definition(*definition)})


def _object_in(data: bytes, instance: str) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        if _ends_early(data):
            what = f"is cut short, after {len(data)} bytes"
            _bad(Problem.TRUNCATED, instance, what, _RESTORE)
        _bad(Problem.DAMAGED, instance, "is damaged: it is no JSON in ASCII", _RESTORE)
    if not isinstance(found, dict):
        _bad(Problem.DAMAGED, instance, "is damaged: it is no JSON object", _RESTORE)
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _ends_early(data: bytes) -> bool:
    """Whether text that begins like an object ends before the object does, or within a string."""
    depth, in_string, escaped = 0, False, False
    for byte in data:
        if escaped:
            escaped = False
        elif in_string:
            escaped, in_string = byte == ord("\\"), byte != ord('"')
        elif byte == ord('"'):
            in_string = True
        else:
            depth += (byte in b"{[") - (byte in b"}]")
    return in_string or depth > 0 or not data


def _bad(problem: Problem, instance: str, what: str, advice: str, field: str | None = None) -> NoReturn:
    raise BadCheckpointError(problem, instance, what, advice, field)


# What is asked of one, in this order.

Check: TypeAlias = Callable[[Checkpoint, Stored, bytes | None], None]
"""Raises `BadCheckpointError`, given the checkpoint, what is stored, and the key for the MAC, if any."""


def check_hash(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """The hash is that of everything else: no accident befell it."""
    del key
    if checkpoint.hash != _hash_of({**_members(checkpoint), "mac": checkpoint.mac}):
        what = "is damaged: its hash is not that of the rest"
        _bad(Problem.HASH_DIFFERS, stored.row.instance, what, _RESTORE, "hash")


def check_mac(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """Where there is a key, the MAC is that of the content under it: nobody without the key wrote it."""
    if key is None:
        return
    if checkpoint.mac is None:
        what = "has no MAC, and a key for it is configured"
        _bad(Problem.MAC_MISSING, stored.row.instance, what, _UNKEYED, "mac")
    if not hmac.compare_digest(checkpoint.mac, _mac_of(checkpoint, key)):
        what = "was tampered with, or written under another key: its MAC does not fit"
        _bad(Problem.MAC_DIFFERS, stored.row.instance, what, _TAMPERED, "mac")


def check_instance(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """It names this instance."""
    del key
    if checkpoint.instance != stored.row.instance:
        what = f"is that of {checkpoint.instance!r}"
        _bad(Problem.OTHER_INSTANCE, stored.row.instance, what, _RESTORE, "instance")


def check_versions(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """It was written with the commit that the row is from: neither an older one, nor one that was refused."""
    del key
    row = stored.row
    for name, found, stands in (
        ("state_version", checkpoint.state_version, row.state_version),
        ("lease_version", checkpoint.lease_version, stored.lease_version),
    ):
        if found != stands:
            what = (
                f"is of {name.replace('_', ' ')} {found}, and the row is from a commit with {stands}: an "
                "older one was put back, or a worker without checkpoints went on"
            )
            _bad(Problem.OTHER_VERSIONS, row.instance, what, _RESTORE, name)


def check_definition(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """It was written under the definition that the row is pinned to."""
    del key
    if checkpoint.definition != stored.row.definition:
        then, now = _named(checkpoint.definition), _named(stored.row.definition)
        what = f"is of definition {then}, and the row of {now}"
        _bad(Problem.OTHER_DEFINITION, stored.row.instance, what, _RESTORE, "definition")


def _named(definition: Definition | None) -> str:
    return "none" if definition is None else f"{definition.id} {definition.fingerprint[:12]}"


def check_content(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """The row stands as the checkpoint says: nobody changed it past the store."""
    del key
    row = content_of(stored.row)
    if checkpoint.content != row:
        what = f"is sound, and the row differs from it in {_difference(checkpoint.content, row)}"
        _bad(Problem.OTHER_CONTENT, stored.row.instance, what, _RESTORE, "content")


def _difference(content: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """In words, where the first difference is."""
    for name in ("status", "unwinding_cause", "manual_cause"):
        if content.get(name) != row[name]:
            return name
    steps = content.get("steps")
    if not isinstance(steps, list) or not all(isinstance(each, dict) and "step" in each for each in steps):
        return "all steps"
    then, now = ({str(step["step"]): step for step in each} for each in (steps, row["steps"]))
    for name in sorted({*then, *now}):
        was, stands = then.get(name, {}), now.get(name, {})
        members = [each for each in {**was, **stands} if was.get(each) != stands.get(each)]
        if members:
            return f"step {name!r}: {', '.join(members)}"
    return "what it lists"


CHECKS: Final[tuple[Check, ...]] = (
    check_hash,
    check_mac,
    check_instance,
    check_versions,
    check_definition,
    check_content,
)
"""All that is asked of a checkpoint that could be read."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """That checkpoints are kept, for `open_store`: all workers of a store alike, or their alarms are false.

    `mac_key` is at least 16 random bytes that are kept outside the store. Without one, accidents and older
    checkpoints are found, and somebody who tampers is not. `checks` replaces parts, so that tests can see
    what each is for.
    """

    mac_key: bytes | None = field(default=None, repr=False)
    checks: tuple[Check, ...] = CHECKS

    def __post_init__(self) -> None:
        if self.mac_key is None:
            return
        if not isinstance(self.mac_key, bytes):
            kind = type(self.mac_key).__name__
            raise ArgumentError(f"Checkpoints: mac_key must be bytes, not {kind}; pass 32 random bytes")
        if len(self.mac_key) < SHORTEST_KEY:
            raise ArgumentError(
                f"Checkpoints: mac_key has {len(self.mac_key)} bytes; pass at least {SHORTEST_KEY}, at random"
            )

    def sealed(self, row: Row, *, lease_version: int) -> bytes:
        """The checkpoint of a row with its steps, as a commit under this lease version left it."""
        checkpoint = Checkpoint(
            format=FORMAT,
            instance=row.instance,
            lease_version=lease_version,
            state_version=row.state_version,
            definition=row.definition,
            content=content_of(row),
            mac=None,
            hash="",
        )
        mac = None if self.mac_key is None else _mac_of(checkpoint, self.mac_key)
        members = {**_members(checkpoint), "mac": mac}
        return _text({**members, "hash": _hash_of(members)}).encode()

    def check(self, stored: Stored) -> Checkpoint | None:
        """The checkpoint, if the row may be resumed by it; None only before the first commit (§8, §14).

        Raises `BadCheckpointError` otherwise: for one that is damaged, tampered with, of another instance,
        other versions or another definition, and for one that is missing.
        """
        if stored.checkpoint is None:
            if stored.row.state_version == 0:
                return None
            what = f"is lost: state version {stored.row.state_version} stands, and every commit writes one"
            _bad(Problem.LOST, stored.row.instance, what, _UNKEPT)
        checkpoint = read_checkpoint(stored.checkpoint, stored.row.instance)
        for check in self.checks:
            check(checkpoint, stored, self.mac_key)
        return checkpoint
