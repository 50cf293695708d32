"""What the comparison of a step with the model finds.

Each function gives a sentence, or "" when there is nothing to say. The first difference is the one that is
shown. Values that the model leaves out (when a lease ends, what an entry of the log says) are compared with
what was asked for and with what was there before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fencepost.checker.traces import show_value
from fencepost.conformance.adapter import Answer, Entry, Held, Ok, Owner, Refused, Row, Unknown
from fencepost.conformance.mapping import Lease
from fencepost.conformance.oracle import Oracle, Rest, Transition
from fencepost.conformance.vocabulary import Names, Seen

if TYPE_CHECKING:
    from fencepost.model.concrete import RunningState


def answers_differ(expected: Transition, told: Answer | None, answered: str) -> str:
    """The answer is the model's."""
    if answered == expected.outcome:
        return ""
    why = f" ({told.why})" if isinstance(told, Unknown) else ""
    wanted = "with what it finds" if expected.outcome == "done" else expected.outcome
    return f"the model answers {wanted}, the implementation answered {answered}{why}"


def told_falsely(
    told: Answer | None, seen: Seen, asked_for: str | None, sent: str | None, *, with_row: bool
) -> str:
    """What an answer tells of the row and of the log is what is stored; `with_row`, it must tell of them.

    A call that asks for a commit, or sends one, is told of that one.
    """
    if told is None or isinstance(told, Unknown):
        return ""
    row = told.observed if isinstance(told, Refused) else told.row
    if with_row and row is None and not (isinstance(told, Ok) and told.entry is not None):
        return "the answer carries no row"
    if row is not None and row != seen.row:
        return f"the answer tells of {show_row(row)}, but {show_row(seen.row)} is stored"
    if isinstance(told, Ok) and told.held is not None:
        nothing = Held(told.held.key, "nothing")
        kept = next((h for h in seen.ledger.held if h.key == told.held.key), nothing)
        if kept != told.held:
            return f"the answer tells that {show_held(told.held)}, but {show_held(kept)}"
    log, about = seen.observation.log, asked_for or sent
    if not isinstance(told, Ok):
        return ""
    if about and told.entry is not None and told.entry.commit_id != about:
        return f"the call is about commit {about}, and is told of {show_entry(told.entry)}"
    if log is None:
        return ""
    if told.entry is not None and told.entry not in log:
        return f"the answer tells of {show_entry(told.entry)}, which is not in the log"
    hidden = [e for e in log if e.commit_id == asked_for]
    if told.entry is None and hidden:
        return f"the answer tells of no entry, but the log has {show_entry(hidden[0])}"
    return ""


def stored_otherwise(oracle: Oracle, observed: Sequence[str], found: Rest, wanted: Rest) -> str:
    """What is stored is what the model has there."""
    protocol = oracle.protocol
    for name in observed:
        if found[protocol.position(name)] == wanted[protocol.position(name)]:
            continue
        there, model = oracle.runner.codes(found), oracle.runner.codes(wanted)
        cell = next(k for k in there if k.split("[")[0].split(".")[0] == name and there[k] != model[k])
        place = f"{cell.split(']')[0]}]" if "[" in cell else name
        domain = protocol.variables[name].domain
        have, want = (show_value(domain, place, "", codes) for codes in (there, model))
        return f"{place} is {have} in the implementation and {want} in the model"
    return ""


def entries_differ(seen: Seen, names: Names, model: RunningState) -> str:
    """Each entry of the log says what its commit said."""
    for entry in seen.observation.log or ():
        made = names.commits.get(entry.commit_id)
        if made is not None:
            if entry.lease_version not in (None, made.lease_version) or entry.owner not in (None, made.owner):
                return f"the log has {show_entry(entry)}, but that commit named {made}"
            continue
        c = names.commit_ids.get(entry.commit_id)
        if c is None or not model.request[c].present:
            continue
        sent = model.request[c]
        owner = Owner(sent.by.worker.label, sent.by.incarnation)
        if entry.lease_version not in (None, sent.lease) or entry.owner not in (None, owner):
            named = f"lease version {sent.lease} and owner {owner.worker}/{owner.incarnation}"
            return f"the log has {show_entry(entry)}, but that commit named {named}"
    return ""


def receipt_differs(seen: Seen, names: Names) -> str:
    """The receipt that is stored is the one that the accepted commit named."""
    stored, log = seen.observation.receipt, seen.observation.log
    made = list(names.commits.values())
    if log is not None:
        made = [names.commits[e.commit_id] for e in log if e.commit_id in names.commits]
    named = [m.change.receipt for m in made if m.change is not None and m.change.receipt is not None]
    if stored is None or not named or stored in named:
        return ""
    return f"the receipt {stored!r} is stored, but the commit named {named[-1]!r}"


def downstream_differs(before: Seen, after: Seen) -> str:
    """A decision brings about one effect at most, nothing else does any, and a receipt stays as it is."""
    for landing in after.landed[len(before.landed) :]:
        times = "once" if landing.times == 1 else f"{landing.times} times"
        if not landing.request:
            return f"an effect took place {times}, and no request was being decided"
        if landing.times > 1:
            return f"request {landing.request} took effect {times} in one decision"
    was = {held.key: held for held in before.ledger.held if held.kind == "receipt"}
    for held in after.ledger.held:
        old = was.get(held.key)
        if old is not None and held.kind == "receipt" and held.receipt != old.receipt:
            return f"first {show_held(old)}, then {show_held(held)}"
    return ""


def lease_ends_wrongly(
    before: Row, after: Row, does: Lease, *, accepted: bool, asked_until_ms: int, at_most_ms: int
) -> str:
    """A lease lasts as long as was asked for, no renewal shortens it, nothing else moves its end.

    The two moments are apart where the clock moved during the call.
    """
    old, new = before.expires_at_ms, after.expires_at_ms
    if accepted and does in (Lease.BEGINS, Lease.EXTENDS):
        if new is not None and new < asked_until_ms:
            return f"the lease ends at {new} ms, but was to last until {asked_until_ms} ms"
        most_ms = at_most_ms if old is None or does is Lease.BEGINS else max(old, at_most_ms)
        if new is not None and new > most_ms:
            return f"the lease ends at {new} ms, but was asked for until {most_ms} ms"
        if does is Lease.EXTENDS and old is not None and new is not None and new < old:
            return f"the renewal moved the end of the lease back from {old} ms to {new} ms"
        return ""
    if accepted and does is Lease.ENDS:
        return ""
    if does is Lease.CARRIES_ON and old is not None and new is not None and new >= old:
        return ""
    return "" if old == new else f"the end of the lease moved from {_ms(old)} to {_ms(new)}"


def _ms(moment: int | None) -> str:
    return "minus infinity" if moment is None else f"{moment} ms"


def show_row(row: Row) -> str:
    """A row in words."""
    owner = "no owner" if row.owner is None else f"owner {row.owner.worker}/{row.owner.incarnation}"
    ends = "no lease" if row.expires_at_ms is None else f"a lease until {row.expires_at_ms} ms"
    end = ", finished" if row.finished else ""
    return f"versions {row.lease_version}/{row.state_version}, {owner}, {ends}{end}"


def show_entry(entry: Entry) -> str:
    """An entry of the log in words."""
    owner = "" if entry.owner is None else f" by {entry.owner.worker}/{entry.owner.incarnation}"
    lease = "" if entry.lease_version is None else f" under lease version {entry.lease_version}"
    return f"commit {entry.commit_id} as state version {entry.state_version}{lease}{owner}"


def show_held(held: Held) -> str:
    """What is kept under a key, in words."""
    receipt = "" if held.receipt is None else f" {held.receipt!r}"
    of = f" for {held.fingerprint}" if held.fingerprint else ""
    return f"{held.kind}{receipt}{of} is kept under {held.key}"


def show_answer(told: Answer | None) -> str:
    """An answer in a few words: the code, and the versions that came with it."""
    if told is None:
        return "-"
    if isinstance(told, Unknown):
        return f"unknown ({told.why})"
    row = told.observed if isinstance(told, Refused) else told.row
    versions = "" if row is None else f" {row.lease_version}/{row.state_version}"
    if isinstance(told, Refused):
        return f"{told.code}{versions}"
    entry = "" if told.entry is None else f" {told.entry.commit_id} is {told.entry.state_version}"
    held = "" if told.held is None else f" {told.held.kind}"
    return f"ok{versions}{entry}{held}"
