"""Lines in the model of a workflow that no claim needs, each with the reason why it is there all the same.

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

_ASKED = (
    "A second lock behind the same door: a decision stands in the inbox only while its step waits for one, "
    "and of a compensation the unwinding is in the way. The variants by-hand-whatever-it-was and "
    "attests-whatever-it-was have both locks open."
)

_STANDS_STILL = (
    "A worker that is down takes itself for no owner and is unsure of nothing. One that stands still, and "
    "yet moves, does what it could have done before, or will do when it goes on."
)
_DIES_OWNING = (
    "A worker that acquired while it was down got the lease for an incarnation that is gone: the next one "
    "believes in it, knows of nothing that was sent, and is refused by gate 2."
)
_UNSURE = (
    "A worker that is unsure of its call has forgotten what it knew, so it may as well begin anew as any new "
    "owner does."
)
_READS_AGAIN = (
    "To read the row again under a lease of its own tells a worker what is so. A lease that it reads there "
    "and had given up is its own as well: it knows nothing under it, like any new owner."
)
_OWNERS_ONLY = (
    "A second lock behind the same door: another line asks for what the worker knows, or reads to be under "
    "way, and who takes itself for no owner has forgotten both."
)
_UNHELPFUL = (
    "Correct but unhelpful: what the worker knows is left for others to find out. The variants "
    "hands-over-what-it-knows, retries-what-is-known and hands-over-what-is-undone show each that it is so."
)
_NOTHING_KEPT = "A second lock behind the same door: where no keys are kept there is nothing to be found."
_TRUE_ANYWAY = (
    "What is kept under a key is true whatever its step is at. Of a step in a person's hands it is what a "
    "tombstone would tell; of one that has nothing under way nobody uses it, and what begins forgets it."
)
_KNOWS_BETTER = (
    "A tombstone for an effect of which everything is known: the request brings nothing about, and its "
    "answer tells what was known before."
)
_DROPPED = "A late receipt that is dropped is as one lost on its way back, and nothing counts on a reply."
_NEVER_STARTS = (
    "Steps that wait for each other, or for themselves, never start: their order is kept all the more. Such "
    "a definition is the author's mistake, and keeps the instance from succeeding, no more."
)
_WAITS_IN_THE_INBOX = (
    "Workers do not look whether the instance has begun, so what was asked for before stands in the inbox "
    "like what is asked for right after."
)
_SWITCHED = "Off in these scopes is a fault, or what a downstream may do; with it on the claims hold as well."
_LIVES_ON = (
    "A worker that gets a new incarnation without having died is in the place of one that was overtaken: "
    "what it took for its own is no more, and gate 2 refuses it."
)
_WORLD = (
    "A condition of the move itself: without it the move is possible where it changes nothing, or nothing "
    "that a later move could not change as well."
)
_FEWER_MOVES = (
    "Left out, less can happen, and nothing that could not happen before: all that the claims ask to be seen "
    "is seen in other ways."
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
_ACTS = ("when(acts(s, w))",)
_LOST = ('when(not lost or switched("reply_lost"))',)
_BELIEVES = ("when(s.believes[w].present)",)
_BEGUN = ("when(s.begun)",)
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _SECOND_LOCK: _GATE,
    _AT_ONCE: dict.fromkeys((*_STEP_COMMITS, "finish"), ('"stale-state-version"',)),
    _NOTHING_LEFT: dict.fromkeys(_STEP_COMMITS, ('"finished"',)),
    _READ: {"give_up": ('"illegal-transition"', "when(sees_under_way(s, w, x))")},
    _ASKED: {
        "run_by_hand": ('"illegal-transition"',),
        "attest": ('refuse_unless(s.status[x] == Status.manual_intervention, "illegal-transition")',),
    },
    _DECLINES: {"decide_call": ("without `refuse_unless(not declines",)},
    _FORGOTTEN: {"merge": ("s.result_of[r] == s.intent[x]",)},
    _STANDS_STILL: dict.fromkeys(
        (*_STEP_COMMITS, "finish", "reread", "send_effect", "send_tombstone", "query"), _ACTS
    ),
    _DIES_OWNING: {"acquire": _ACTS},
    _UNSURE: {"acquire": ("when(not s.unsure[w])",)},
    _READS_AGAIN: {"reread": ("when(s.unsure[w])",)},
    _OWNERS_ONLY: dict.fromkeys(
        (
            "intend_anew", "succeed", "fail", "send_effect", "send_tombstone", "query", "give_up",
            "end_compensation",
        ),
        _BELIEVES,
    ),
    _UNHELPFUL: {
        "hand_over": ("when(is_unknown(s, w, x))",),
        **dict.fromkeys(
            ("schedule_retry", "hand_over_compensation"), ("when(s.knows[w, x] != Knows.receipt)",)
        ),
    },
    _NOTHING_KEPT: {"query": ('when(switched("keyed"))',)},
    _TRUE_ANYWAY: {"query": ("when(sees_under_way(s, w, x) or",)},
    _KNOWS_BETTER: {"send_tombstone": ("when(not known_undone(s, w, x) and",)},
    _DROPPED: {"receive_reply": ('when(not switched("late_results") or',)},
    _NEVER_STARTS: {"depend": ("when(x != y)", "when(every(steps, lambda z: not s.needs[z, x]))")},
    _WAITS_IN_THE_INBOX: dict.fromkeys(("ask_to_cancel", "decide_approval", "decide_by_hand"), _BEGUN),
    _SWITCHED: {
        **dict.fromkeys((*_STEP_COMMITS, "finish", "acquire"), _LOST),
        "decide_call": (
            'when(implies(again, switched("call_duplicated")))',
            'when(implies(declines, switched("declining")))',
        ),
        "record_request": ('when(implies(again, switched("request_duplicated")))',),
    },
    _LIVES_ON: {"restart": ("when(not s.up[w])",)},
    _WORLD: {
        "begin": ("when(not s.begun)",),
        "expire": ("when(s.live)",),
        "crash": ("when(s.up[w])",),
        "pause": ("when(s.up[w])", "when(not s.paused[w])"),
        "resume": ("when(s.paused[w])",),
        "lose_call": ("when(s.in_flight[c])",),
        "lose_reply": ("when(s.reply[c] != Answer.none)",),
        "lose_request": ("when(s.arriving[r])",),
        "expire_record": ("when(s.record[x, deed, i].present)",),
    },
    _FEWER_MOVES: dict.fromkeys(
        (
            "query", "have_no_compensation", "pause", "lose_reply", "lose_request", "expire_record",
            "restart_downstream",
        ),
        ("the action left out",),
    ),
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
"""By action and piece: the reason."""
