"""Lines of the model of replay that no claim needs, each with the reason why it is there all the same.

As in `unneeded`: by action, and by a piece of what the sweep calls the change. The tests report an entry that
has no such line.
"""

from __future__ import annotations

from collections.abc import Mapping

_VAIN = (
    "A worker that records where it has not come to the end of what it knows acts in vain: the position is "
    "taken, which the history itself says."
)
_SECOND_LOCK = (
    "A second lock behind the same door: a command that is recorded together with its result finds its "
    "position taken, or free of both."
)
_LESS = "The worker does less than it could: it begins anew, or comes to rest, where it could go on."
_SETS_ANEW = "Forgotten here, and read or made anew before it counts: one would do."
_WHOEVER = (
    "A worker that comes too late may as well go on with the recorded result: it is given that, not its own."
)
_NO_END = "What is settled is an activity, and so never the end of a run."
_RUNS_ALREADY = "Who is served runs already: the line is for those whose activity was settled."
_ALREADY_KNOWN = (
    "A worker that does not count its own results as known finds its next position taken, or free: the "
    "history itself says which."
)
_WORLD = "A condition of the world's own move: without it the move is possible where it changes nothing."

_FORGETS = ("s.brings[w] = absent", "s.known[w] = 0", "s.pending[w] = False")
_REASONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    _VAIN: dict.fromkeys(
        ("record_at_once", "record_start"), ("when(s.at[w] == s.known[w])", "when(not s.pending[w])")
    ),
    _SECOND_LOCK: {"record_at_once": ('"result-recorded"',)},
    _LESS: {
        "record_at_once": (
            "never taken: `if answer == Answer.ok", "always taken: `if s.asks[w].what == Name.finish",
        ),
        "settle": (
            "never taken: `if answer == Answer.ok", "always taken: `if s.asks[w].what == Name.finish",
        ),
    },
    _SETS_ANEW: dict.fromkeys(("record_at_once", "record_start", "settle", "crash"), _FORGETS),
    _WHOEVER: {"settle": ("always taken: `if answer == Answer.ok",)},
    _NO_END: {"settle": ("never taken: `if s.asks[w].what == Name.finish", "s.standing[w] = Standing.done")},
    _RUNS_ALREADY: dict.fromkeys(("serve", "record_at_once"), ("s.standing[w] = Standing.running",)),
    _ALREADY_KNOWN: dict.fromkeys(("record_at_once", "settle"), ("s.known[w] = s.at[w]",)),
    _WORLD: {"crash": ("when(s.standing[w] != Standing.down)",)},
}  # fmt: skip
"""By reason and action: pieces of what the sweep calls the change."""

UNNEEDED: Mapping[tuple[str, str], str] = {
    (action, piece): reason
    for reason, actions in _REASONS.items()
    for action, pieces in actions.items()
    for piece in pieces
}
