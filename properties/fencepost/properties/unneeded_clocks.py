"""Lines of the model of clocks that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_CUT_OFF = "Who is cut off can do less, and nothing that others cannot: the line only takes moves away."
_OWN = (
    "A worker's own line. Safety does not depend on what workers do: who goes on after a refusal, or asks "
    "again, is refused by the store and by the fence."
)
_ONLY_READ = "What only claims read: without it they see less, and the model does the same."
_SHORT = "A lease of no length is over when it is given, and permits nothing."
_ONE_AT_A_TIME = "An effect that takes the place of one on its way is as one that was lost."
_SKEWED = (
    "Clocks that run apart are for a scope of their own, since one claim needs that they do not: see WHAT_IF."
)
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."
_HEALS = "A partition that never ends leaves moves out, and adds none."

_UNREACHED = "when(not s.cut_off[w])"
_STOPS = ("s.believes[w] = absent", "s.left[w] = 0", "always taken: `if answer", "never taken: `if answer")
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _CUT_OFF: dict.fromkeys(("ask", "acquire", "receive", "commit"), (_UNREACHED,)),
    _OWN: {
        "acquire": ("s.left[w] = 0",),
        "receive": ("s.granted[w] = absent",),
        "commit": _STOPS,
        "take_effect": _STOPS,
    },
    _ONLY_READ: {
        **dict.fromkeys(("acquire", "commit"), ("s.found_over = ",)),
        "take_effect": ("s.contacted = ",),
    },
    _SHORT: {"ask": ("when(length >= 1)",)},
    _ONE_AT_A_TIME: {"start_effect": ("when(not s.sending[w].present)",)},
    _SKEWED: {
        "run_ahead": ("s.clock = s.clock + 1", "`run_ahead`"),
        "run_ahead_alone": ("when(s.left[w] >= 1)", "s.left[w] = s.left[w] - 1", "`run_ahead_alone`"),
    },
    _WORLD: {
        "cut_off": (_UNREACHED,),
        "reconnect": ("when(s.cut_off[w])",),
        "use_up": ("when(not s.exhausted)",),
    },
    _HEALS: {"reconnect": ("s.cut_off[w] = False", "`reconnect`")},
}
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
"""By action and piece: the reason."""
