"""Lines of the core that no claim needs, each with the reason why it is there all the same.

`fencepost sweep` takes away one line after another. Where nothing breaks, the line must be listed here, by
its action and by a piece of what the sweep calls it; the tests report an entry that has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONDUCT = (
    "Safety does not depend on how a worker behaves: the store refuses what a worker should not have sent. "
    "The line keeps the worker from acting in vain."
)
_SECOND_LOCK = (
    "A second lock behind the same door: a lease version names its owner, so another guard of the "
    "same operation refuses the same calls. With both gone a claim breaks (see the pairs of the sweep)."
)
_INVISIBLE = "Renewal moves the end of a live lease; where a lease is only live or over, that is no change."
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."
_LESS_LOSS = (
    "The world does less, or loses less: the model has fewer or equal behaviours, all of them seen otherwise."
)
_ANSWERS = (
    "How often an answer is looked at: what was decided is in the log, and asking again is always allowed."
)

_LEARNING = (
    "if s.believes[w].present and s.believes[w].lease == sent.lease",
    "if answer == Answer.ok",
    "if s.believes[w].state == sent.state",
    "s.awaited[c] = False",
    "s.believes[w] = absent",
    "s.unsure[w] = answer == Answer.stale_state_version",
    "s.believes[w] = s.believes[w].changed(state=sent.state + 1)",
)
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _CONDUCT: {
        "send_commit": ("when(acts(s, w))", "s.in_flight[c] = True", "s.awaited[c] = True"),
        "receive_answer": ("when(awaits(s, c))", *_LEARNING),
        "ask": (
            "if in_log(s, c)",
            "elif s.lease_version != s.request[c].lease",
            "s.in_flight[c] = True",
            *_LEARNING,
        ),
        "acquire": (
            "when(not s.believes[w].present)",
            "when(not s.unsure[w])",
            "if lost",
            "s.unsure[w] = True",
            "elif answer == Answer.ok",
            "s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)",
        ),
        "renew": (
            "when(acts(s, w))",
            "if lost",
            "if lost or answer != Answer.ok",
            "s.unsure[w] = True",
            "s.believes[w] = absent",
        ),
        "release": ("when(acts(s, w))", "if lost and answer == Answer.ok", "s.unsure[w] = True"),
        "reread": (
            "when(acts(s, w))",
            "when(s.unsure[w])",
            "if s.owner == me(s, w)",
            "s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)",
        ),
        "crash": ("s.unsure[w] = False", "s.awaited.update_where"),
    },
    _SECOND_LOCK: {
        "decide_commit": ('"not-the-owner"',),
        "release": ('"stale-lease-version"', '"not-the-owner"'),
    },
    _INVISIBLE: {
        "renew": ('"stale-lease-version"', '"not-the-owner"', "s.live = True", "the action left out"),
    },
    _ANSWERS: {
        "receive_answer": (
            "when(s.answer[c] != Answer.none)", "s.answer[c] = Answer.none", "the action left out"
        ),
        "ask": ("when(s.answer[c] == Answer.none)", "the action left out"),
    },
    _WORLD: {
        "decide_commit": ('when(not kept or switched("commit_duplicated"))', "s.in_flight[c] = kept"),
        "acquire": ('when(not lost or switched("reply_lost"))',),
        "renew": ('when(not lost or switched("reply_lost"))',),
        "release": ('when(not lost or switched("reply_lost"))',),
        "expire": ("when(s.live)",),
        "crash": ("when(s.up[w])",),
        "pause": ("when(s.up[w])", "when(not s.paused[w])"),
        "resume": ("when(s.paused[w])",),
        "lose_commit": ("when(s.in_flight[c])",),
        "lose_answer": ("when(s.answer[c] != Answer.none)",),
    },
    _LESS_LOSS: {
        "crash": ("s.paused[w] = False",),
        "pause": ("s.paused[w] = True", "the action left out"),
        "lose_commit": ("s.in_flight[c] = False", "the action left out"),
        "lose_answer": ("s.answer[c] = Answer.none", "the action left out"),
    },
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
