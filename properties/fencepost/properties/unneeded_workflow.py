"""Refusals in the model of a workflow that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_SECOND_LOCK = (
    "A second lock behind the same door: a lease version names its owner. The variant "
    "former-owner-moves-steps has both locks of gate 2 open, and a test opens them commit by commit."
)
_AT_ONCE = (
    "Commits are decided at once in this model, so who has the lease knows the state version. Late commits "
    "are the core's."
)
_NOTHING_LEFT = (
    "A second lock behind the same door: an instance ends with its steps, and with no cancel unread, so "
    "there is nothing left that this could change. Other commits are refused there for what they ask."
)
_READ = (
    "A second lock behind the same door: the worker gives up only what it has read to be under way, and the "
    "state version vouches for what it read. The variant gives-up-for-no-reason has both open."
)
_DECLINES = (
    "Declining is the downstream's own choice: without it the effect takes place as if it had not declined."
)
_FORGOTTEN = (
    "A result of a former intent comes only from a downstream that forgot that it had declined; with that "
    "fault on, which S10 does not need off, this is what keeps a receipt true: see RESULTS_FORGOTTEN."
)

_STEP_COMMITS = (
    "start", "intend_anew", "succeed", "fail", "hand_over", "schedule_retry", "run_again", "ask_approval",
    "run_approved", "take_no", "give_up_waiting", "run_by_hand", "attest", "acknowledge_cancel", "give_up",
    "merge", "call_off", "compensate", "end_compensation", "hand_over_compensation",
)  # fmt: skip
"""All commits but the end of the instance."""

_GATE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*_STEP_COMMITS, "finish"), ('"stale-lease-version"', '"not-the-owner"')),
    "start": ('"not-the-owner"',),  # a witness asks for the other
}
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _SECOND_LOCK: _GATE,
    _AT_ONCE: dict.fromkeys((*_STEP_COMMITS, "finish"), ('"stale-state-version"',)),
    _NOTHING_LEFT: dict.fromkeys(_STEP_COMMITS, ('"finished"',)),
    _READ: {"give_up": ('"illegal-transition"',)},
    _DECLINES: {"decide_call": ('"declined"',)},
    _FORGOTTEN: {"merge": ("s.result_of[r] == s.intent[x]",)},
}
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
"""By action and piece: the reason."""
