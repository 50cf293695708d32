"""Lines of the model of triggers that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_ASKS_IN_VAIN = (
    "Safety does not depend on how a source behaves: the store answers an event that comes again from its "
    "record, and refuses one that comes with another payload."
)
_TAKEN_ANYWAY = (
    "A refusal says that the event was taken with another payload, so there is an instance: a source that "
    "takes it for ok stops delivering, and is not wrong."
)
_TELLS_LESS = (
    "After the refusal the operation would only tell of an instance, and what is told with a refusal is "
    "taken back. The variant conflict-names-the-instance does neither."
)
_TOLD_BEFORE = (
    "An instance is told together with ok, so there is something to take back only when the record behind an "
    "earlier ok is gone, or the store died: against these faults other claims say nothing either."
)
_CONDUCT = (
    "Safety does not depend on it: a reply is true whoever hears it, and to commit once more what is "
    "committed changes nothing."
)
_SWITCHED = "Off in these scopes is a fault of the world; with it on the claims hold as well."
_WHOLE = "Only with two transactions is anything torn, and against that fault the claims say little."
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."
_LESS_LOSS = "The world does less, or loses less: fewer or equal behaviours, all of them seen otherwise."

_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _ASKS_IN_VAIN: {
        "send_trigger": (
            "when(not s.answered[a, e])", "when(not s.payload[a, e].present or",
            "always taken: `if not s.payload[a, e].present", "never taken: `if not s.payload[a, e].present",
            "without `s.payload[a, e] = fingerprint",
        ),
    },
    _TAKEN_ANYWAY: {"receive_answer": ("always taken: `if s.answer[r] == Answer.ok",)},
    _TELLS_LESS: {"decide_trigger": ("done: `refuse_unless(kept.fingerprint == sent.fingerprint",)},
    _TOLD_BEFORE: {
        "decide_trigger": (
            "never taken: `if torn != Torn.whole or answer != Answer.ok", "s.told[r] = absent",
        ),
    },
    _CONDUCT: {"record_notice": ("when(s.awaited[n])", "s.awaited[n] = False", "s.reply[n] = False")},
    _SWITCHED: {
        "decide_trigger": ('when(implies(again, switched("trigger_duplicated")))',),
        "decide_notice": ('when(implies(again, switched("notice_duplicated")))',),
    },
    _WHOLE: dict.fromkeys(
        ("decide_trigger", "decide_notice"),
        (
            "always taken: `if torn != Torn.record_only", "always taken: `if torn != Torn.effect_only",
            "always taken: `if torn == Torn.whole",
        ),
    ),
    _WORLD: {
        "decide_trigger": ("s.arriving[r] = again",),
        "decide_notice": ("s.in_flight[n] = again",),
        "lose_trigger": ("when(s.arriving[r])",),
        "lose_answer": ("when(s.answer[r] != Answer.none)",),
        "lose_notice": ("when(s.in_flight[n])",),
        "lose_reply": ("when(s.reply[n])",),
        "expire_trigger": ("when(s.record[a, key].present)",),
        "expire_notice": ("when(s.kept[i, k, key])",),
    },
    _LESS_LOSS: {
        "crash": ("s.awaited.update_where(", "the action left out"),
        "crash_source": ("s.answered.update_where(", "the action left out"),
        "lose_trigger": ("s.arriving[r] = False", "the action left out"),
        "lose_answer": ("the action left out",),
        "lose_notice": ("s.in_flight[n] = False", "the action left out"),
        "lose_reply": ("s.reply[n] = False", "the action left out"),
        "expire_trigger": ("s.record[a, key] = absent", "the action left out"),
        "expire_notice": ("s.kept[i, k, key] = False", "the action left out"),
        "restart_store": ("s.record.fill(absent)", "the action left out"),
        "restart_recipient": ("s.kept.fill(False)", "the action left out"),
    },
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
