"""Lines of the model of recovery that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_ADVICE = (
    "What is checked before acquire is advice: it saves the lease that would lead to nothing, and all is "
    "checked again on the row that acquire returned. The variant checked-only-before shows what that is for."
)
_CONDUCT = (
    "Safety does not depend on it: the worker does, or learns, less than it could, or acts in vain and is "
    "refused. A worker that is down takes itself for no owner."
)
_LEASE = "The lease is the core's: what it is for is claimed there, and gate 2 refuses a former owner here."
_AGAIN = (
    "To read the checkpoint again under the same lease is no harm: it is checked again, and says what the "
    "worker knows. A worker without a lease has got beyond no check."
)
_SECOND_LOCK = (
    "A second lock behind the same door: a lease version names its owner, and whoever reads the end of the "
    "instance has nothing more to commit. The variants stale-recovery-commits and released-by-who-was-"
    "overtaken have both locks open."
)
_AT_ONCE = (
    "Commits are decided at once in this model, so who has the lease knows the state version. Late commits "
    "are the core's."
)
_SETS_ANEW = "What a worker knew of the steps is forgotten when it steps down and set anew when it resumes."
_INCARNATION = (
    "A restarted worker believes nothing and has to acquire anew, whatever its incarnation. The core's "
    "variant owner-by-name, whose worker reads the row first, shows what the incarnation is for."
)
_HISTORY = "Only claims read it, and without it they say less: each is seen to break by other changes."
_EARLY = "What comes before the step waits for it is used once the step does."
_SWITCHED = "Off in these scopes is a fault; with it on the claims hold as well."
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."
_MORE_HARM = "Without it the world does more harm than it needs to, and it is found out in the same way."
_LESS_LOSS = "The world does less, or loses less: fewer or equal behaviours, all of them seen otherwise."

_ACTS = ("when(acts(s, w))",)
_LOST = ('when(not lost or switched("reply_lost"))',)
_STEPS_DOWN = ("s.believes[w] = absent", "s.phase[w] = Phase.idle", "s.view[w] = NOTHING_DONE")
_INTACT = (
    "when(s.checkpoint.present and s.checkpoint.mac)", "when(is_of_the_row(s, s.state_version))",
)  # fmt: skip
_CHANGES = ("change_content", "change_versions", "change_header")
_KNOWINGLY = (
    "taken: `if knowingly", 'when(switched("checkpoint_tampered"))', 'when(switched("checkpoint_damaged"))',
)  # fmt: skip
_FATE = "s.fate = "
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _ADVICE: {
        "check": (*_ACTS, "when(not s.unsure[w])", "always taken: `if is_sound(s, s.state_version)"),
        "acquire": ("when(s.phase[w] == Phase.checked)",),
    },
    _CONDUCT: {
        "acquire": (*_ACTS, "taken: `if lost", "s.unsure[w] = True"),
        "reread": (
            *_ACTS, "when(s.unsure[w])", "s.unsure[w] = False", "never taken: `if s.owner == me(s, w)",
            "s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)",
            "s.phase[w] = Phase.acquired", "the action left out",
        ),
        "take_up": (*_ACTS, "s.phase[w] = Phase.misfit"),
        "begin": _ACTS,
        "release": (
            *_ACTS, "when(not is_sound(s, s.believes[w].state))", "taken: `if lost and answer == Answer.ok",
            "s.unsure[w] = True",
        ),
        "commit": (*_ACTS, "s.unsure[w] = lost or answer == Answer.stale_state_version", *_STEPS_DOWN),
    },
    _AGAIN: {
        "take_up": ("when(s.believes[w].present)", "when(s.phase[w] == Phase.acquired)"),
        "begin": ("when(s.believes[w].present)", "when(s.phase[w] == Phase.acquired)"),
        "release": ("when(s.phase[w] == Phase.acquired)", "when(s.believes[w].present)"),
    },
    _LEASE: {"acquire": ("when(not s.believes[w].present)", "when(not s.unsure[w])")},
    _SECOND_LOCK: {
        "release": ('"stale-lease-version"', '"not-the-owner"'),
        "commit": ('"not-the-owner"',),
    },
    _AT_ONCE: {"commit": ('"stale-state-version"',)},
    _SETS_ANEW: {"begin": ("s.view[w] = NOTHING_DONE",), "release": _STEPS_DOWN[1:]},
    _INCARNATION: {
        "restart": ("s.incarnation[w] = s.incarnation[w] + 1",),
        "deploy": ("s.incarnation[w] = s.incarnation[w] + 1",),
    },
    _EARLY: {"give": ("when(s.log[s.state_version].steps.now == Status.waiting)",)},
    _HISTORY: {
        "acquire": ("s.holder[s.lease_version] = s.owner",),
        **dict.fromkeys((*_CHANGES, "replay_refused", "misplace"), (_FATE,)),
    },
    _SWITCHED: {
        **dict.fromkeys(("acquire", "release", "commit"), _LOST),
        **dict.fromkeys(_CHANGES, _KNOWINGLY),
    },
    _MORE_HARM: {
        **dict.fromkeys(_CHANGES, _INTACT),
        "replay_earlier": ("when(v >= 1)",),
        "replay_refused": ("when(lease >= 1)",),
    },
    _WORLD: {
        "give": ("when(not s.come)",),
        "expire": ("when(s.live)",),
        "restart": ("when(not s.up[w])",),
        "pause": ("when(s.up[w])", "when(not s.paused[w])"),
        "resume": ("when(s.paused[w])",),
        "crash": ("when(s.up[w])",),
        "deploy": ("when(s.up[w])", "when(s.code[w] != d)"),
        "register_migration": ("when(old != new)", "when(not s.registered[old, new])"),
    },
    _LESS_LOSS: {
        "restart": ("s.up[w] = True", "the action left out"),
        "pause": ("s.paused[w] = True", "the action left out"),
        "resume": ("s.paused[w] = False", "the action left out"),
        "crash": (
            "s.up[w] = False", "s.paused[w] = False", "s.unsure[w] = False", *_STEPS_DOWN,
            "the action left out",
        ),
        "deploy": ("s.paused[w] = False", "s.unsure[w] = False", *_STEPS_DOWN),
        **dict.fromkeys(
            (*_CHANGES, "lose_checkpoint", "replay_refused", "misplace"), ("the action left out",)
        ),
    },
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
