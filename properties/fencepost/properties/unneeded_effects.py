"""Lines of the model of effects that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_LEASE = "The lease is the core's: what it is for is claimed there, and gate 2 refuses a former owner here."
_SECOND_LOCK = (
    "A second lock behind the same door: a lease version names its owner, and whoever reads the end of "
    "the step has nothing more to commit. The variant former-owner-commits has both locks of gate 2 open."
)
_AT_ONCE = (
    "Commits are decided at once in this model, so who has the lease knows the state version. Late "
    "commits are the core's."
)
_CONDUCT = (
    "Safety does not depend on it: the worker does, or learns, less than it could, or acts in vain and is "
    "refused. A worker that is down takes itself for no owner."
)
_SETS_ANEW = "What a worker knows is forgotten when it steps down and again when it acquires: one would do."
_NO_HARM = "What a worker knew before it asked for a tombstone stays true: the request has no effect."
_LOST_RAISE = (
    "A lost answer was ok, or a refusal that says that another worker has the lease; gate 2 then refuses "
    "what this one makes of it."
)
_EQUAL = (
    "Who meets a tombstone has at most the token of who wrote it, since nobody sends the effect of a step "
    "that unwinds: there is no higher token that a refusal could record."
)
_REFUSED_TOO = "To record the token with a refusal as well stops former owners sooner, and nobody else."
_HISTORY = "Only claims read it, and without it they say less: each is seen to break by other changes."
_SWITCHED = (
    "Off in these scopes is a fault or an ability of the downstream; with it on the claims hold as well."
)
_INCARNATION = (
    "A restarted worker believes nothing and has to acquire anew, whatever its incarnation. The core's "
    "variant owner-by-name, whose worker reads the row first, shows what the incarnation is for."
)
_WHOLE = "Only a downstream with two transactions is torn, and against that fault the claims say little."
_DECLINES = (
    "Declining is the downstream's own choice: without it the effect takes place as if it had not declined."
)
_KEEPS_IN_VAIN = "To keep what is never asked for is no harm."
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."
_LESS_LOSS = "The world does less, or loses less: fewer or equal behaviours, all of them seen otherwise."

_ACTS = ("when(acts(s, w))",)
_LOST = ('when(not lost or switched("reply_lost"))',)
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _LEASE: {
        "acquire": ("when(not s.believes[w].present)", "when(not s.unsure[w])"),
    },
    _SECOND_LOCK: {"commit": ('"stale-lease-version"', '"not-the-owner"', '"finished"')},
    _AT_ONCE: {"commit": ('"stale-state-version"',)},
    _CONDUCT: {
        "acquire": (*_ACTS, "never taken: `if lost", "s.unsure[w] = True"),
        "reread": (
            *_ACTS, "when(s.unsure[w])", "s.unsure[w] = False", "if s.owner == me(s, w)",
            "s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)", "the action left out",
        ),
        "commit": (*_ACTS, "s.unsure[w] = lost or answer == Answer.stale_state_version"),
        "send_effect": _ACTS,
        "send_tombstone": _ACTS,
        "raise_fence": (
            *_ACTS, "never taken: `if not lost and answer != Answer.ok", "s.believes[w] = absent",
            "s.knows[w] = Knows.nothing",
        ),
        "query": (
            *_ACTS, "never taken: `if kept.fingerprint == s.intent[intent_of(s, w)].fingerprint",
            "s.knows[w] = learnt(kept.kind)",
        ),
        "receive_reply": (
            "s.reply[c] = Answer.none", "never taken: `if reply == Answer.stale_token",
            "never taken: `if reply == Answer.tombstoned", "s.knows[w] = Knows.not_happened",
            "s.believes[w] = absent", "s.knows[w] = Knows.nothing",
        ),
    },
    _SETS_ANEW: dict.fromkeys(("acquire", "commit", "crash"), ("s.knows[w] = Knows.nothing",)),
    _INCARNATION: {"restart": ("s.incarnation[w] = s.incarnation[w] + 1",)},
    _NO_HARM: {"send_tombstone": ("s.knows[w] = Knows.sent",)},
    _LOST_RAISE: {"raise_fence": ("always taken: `if not lost and answer == Answer.ok",)},
    _EQUAL: {"decide_call": ("done: `refuse_unless(sent.buries or kept.kind != Kind.tombstone",)},
    _REFUSED_TOO: {
        "decide_call": (
            "always taken: `if kept.kind != Kind.declined", "always taken: `if kind != Kind.declined",
        ),
    },
    _HISTORY: {
        "decide_call": (
            "s.buried[sent.key] = True", "s.contacted = ite(sent.token", 'if switched("fenced") and (',
        ),
        "acquire": ("s.holder[s.lease_version] = s.owner",),
        "raise_fence": ("s.contacted = ite(s.fence",),
    },
    _SWITCHED: {
        "decide_call": (
            'when(implies(again, switched("request_duplicated")))',
            'when(implies(declines, switched("declining")))',
            'always taken: `if switched("fenced")',
        ),
        "acquire": _LOST,
        "commit": _LOST,
        "raise_fence": ('when(switched("fenced"))', *_LOST),
    },
    _WHOLE: {
        "decide_call": (
            "always taken: `if torn != Torn.record_only", "always taken: `if torn != Torn.effect_only",
            "always taken: `if torn == Torn.whole",
        ),
    },
    _DECLINES: {"decide_call": ('without `refuse_unless(not declines, "declined")',)},
    _KEEPS_IN_VAIN: {"decide_call": ('always taken: `if switched("keyed") or switched("queryable")',)},
    _WORLD: {
        "decide_call": ("s.in_flight[c] = again",),
        "expire": ("when(s.live)",),
        "restart": ("when(not s.up[w])",),
        "crash": ("when(s.up[w])",),
        "pause": ("when(s.up[w])", "when(not s.paused[w])"),
        "resume": ("when(s.paused[w])",),
        "lose_request": ("when(s.in_flight[c])",),
        "lose_reply": ("when(s.reply[c] != Answer.none)",),
        "expire_record": ("when(s.record[key].present)",),
    },
    _LESS_LOSS: {
        "restart": ("s.up[w] = True", "the action left out"),
        "pause": ("s.paused[w] = True", "the action left out"),
        "resume": ("s.paused[w] = False", "the action left out"),
        "crash": ("s.up[w] = False", "s.paused[w] = False", "s.unsure[w] = False", "the action left out"),
        "lose_request": ("s.in_flight[c] = False", "the action left out"),
        "lose_reply": ("s.reply[c] = Answer.none", "the action left out"),
        "move_revision": ("s.revision = s.revision + 1", "the action left out"),
        "expire_record": ("s.record[key] = absent", "the action left out"),
        "restart_downstream": ("s.record.fill(absent)", "s.fence = 0", "the action left out"),
    },
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
