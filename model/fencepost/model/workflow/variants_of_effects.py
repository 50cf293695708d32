"""Workers and downstreams with something wrong, or unusual, where effects are sent and decided."""

from __future__ import annotations

from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to
from fencepost.model.workflow import workflow

VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick-step")

_KNOWN_KEY = 'if switched("keyed") and kept.present'
_WANTED = "(status == Status.running and not s.unwinds[w]) or status == Status.compensating"
"""Lines of the model that several variants change."""

# Calls: what is sent, and what a worker takes for proof.

_add(
    with_lines(workflow, "runs-what-succeeded", send_effect={
        _WANTED: f"{_WANTED} or status == Status.succeeded",
    }),
    "The effect of a step is sent again that has succeeded.",
    ("F21",),
    recovery_repeats_nothing=7,
    an_owner_sends_only_what_is_under_way=7,
)  # fmt: skip
_add(
    with_lines(workflow, "sends-what-is-pending", send_effect={
        _WANTED: f"{_WANTED} or status == Status.pending",
    }),
    "The effect of a step is sent before its intent is committed.",
    ("F15",),
    recovery_repeats_nothing=2,
    given_up_effects_never_happen=8,
    only_stored_intents_happen=3,
    an_owner_sends_only_what_is_under_way=2,
)  # fmt: skip
_add(
    without(workflow, "forgets-what-it-sent", send_effect=("s.knows[w, x] = Knows.sent",)),
    "A worker does not remember that it has sent an effect.",
    ("F12",),
    given_up_effects_never_happen=5,
    former_intents_never_happen=5,
)
_add(
    with_lines(workflow, "takeover-begins-anew", acquire={
        "read(s, w)": "read(s, w)\n"
        "s.knows.update_where(lambda u, _, known: ite(u == w, Knows.unsent, known))",
    }),
    "A new owner takes every effect for one that nobody has sent.",
    ("F16", "F21"),
    scope="quick-owners",
    given_up_effects_never_happen=7,
)  # fmt: skip
_add(
    with_lines(
        workflow, "undone-under-the-key-of-the-effect",
        query={"if s.seen[w, x].status == Status.compensating": "if False"},
    ),
    "A worker asks for the receipt of a compensation under the key of the effect, and finds that of the "
    "effect.",
    ("F17",),
    receipt_is_true=10,
)  # fmt: skip
_add(
    with_lines(workflow, "reply-of-another-intent", receive_reply={
        "elif s.seen[w, x].intent == sent.intent and ": "elif ",
    }),
    "A late reply to a former intent is taken for one to the present.",
    ("F30",),
    scope="quick-anew",
    given_up_effects_never_happen=10,
)  # fmt: skip
_add(
    with_lines(workflow, "reply-of-another-deed", receive_reply={
        " and is_about(s, w, x, sent.deed)": "",
    }),
    "A late receipt of an effect is taken for that of its compensation.",
    ("F30",),
    receipt_is_true=10,
)  # fmt: skip
_add(
    with_lines(workflow, "reply-to-an-earlier-lease", receive_reply={
        " and s.believes[w].lease == sent.token": "",
    }),
    "Correct but unusual: a worker uses the reply to a call that it sent under an earlier lease.",
    scope="quick-calls",
)  # fmt: skip
_add(
    with_lines(workflow, "hands-in-any-reply", hand_in={
        "when(comes_late(s, c))": "when(s.reply[c] != Answer.none)",
    }),
    "A former owner hands in whatever reply it gets as if it were the receipt of its effect.",
    ("F30",),
    scope="handed-in",
    receipt_is_true=10,
    only_what_happened_is_undone=13,
    late_results_are_kept=10,
)  # fmt: skip
_add(
    without(workflow, "tombstone-for-what-is-wanted", send_tombstone=("when(is_given_up(s, w, x))",)),
    "A worker asks for a tombstone in place of an effect that nobody has given up.",
    recovery_repeats_nothing=2,
    an_owner_sends_only_what_is_under_way=2,
)
_add(
    with_lines(workflow, "one-copy-is-all-copies", receive_reply={
        '(reply == Answer.declined and switched("keyed"))': "reply == Answer.declined",
    }),
    "A downstream that keeps no keys declines one copy of a call; the worker takes that for all copies.",
    ("F30",),
    scope="quick-unkeyed",
    given_up_effects_never_happen=7,
    without_keys_nothing_is_sent_twice=7,
)  # fmt: skip
_add(
    with_lines(workflow, "tombstone-found-as-receipt", query={
        "if kind == Kind.receipt": "if kind != Kind.declined",
    }),
    "A worker that asks, and finds a tombstone, takes it for a receipt.",
    ("F20",),
    receipt_is_true=9,
    only_what_happened_is_undone=13,
)  # fmt: skip
_add(
    with_lines(workflow, "asks-before-it-sends-again", send_effect={
        '(known_undone(s, w, x) or switched("keyed"))':
            '(known_undone(s, w, x) or (switched("keyed") and s.knows[w, x] == Knows.sent))',
    }),
    "Correct but unusual: a new owner does not send an effect again of which it has not heard.",
    scope="quick-owners",
)  # fmt: skip

# The downstream.

_add(
    without(workflow, "former-owner-acts", decide_call=('"stale-token"',)),
    "The downstream records tokens and compares none, so a former owner's effect on another step lands late.",
    ("F13", "F14"),
    scope="quick-owners",
    fence_only_rises=9,
    stale_effect_never_lands_after_contact=10,
)
_add(
    without(workflow, "token-not-recorded", decide_call=("s.fence = s.call[c].token",)),
    "The downstream compares tokens and records none.",
    ("F14",),
    scope="quick-owners",
    stale_effect_never_lands_after_contact=10,
)
_add(
    without(workflow, "token-only-with-new-effects", decide_call=("if kept.value != Kind.declined",)),
    "The token is recorded with an effect, but not with an answer from the record: a former owner's effect "
    "on another step lands after the new owner was answered.",
    ("F14",),
    scope="quick-owners",
    stale_effect_never_lands_after_contact=13,
)
_add(
    without(workflow, "key-not-looked-up", decide_call=(_KNOWN_KEY,)),
    "The downstream keeps what became of a key, and does not look it up.",
    ("F17",),
    scope="quick-calls",
    one_effect_per_intent=5,
    given_up_effects_never_happen=7,
    late_request_after_tombstone_refused=7,
)
_add(
    with_lines(workflow, "tombstone-not-looked-at", decide_call={
        _KNOWN_KEY: f"{_KNOWN_KEY} and (sent.buries or kept.value != Kind.tombstone)",
    }),
    "A tombstone answers who asks for it, but does not stop a call that comes late.",
    ("F20",),
    scope="quick-calls",
    given_up_effects_never_happen=9,
    late_request_after_tombstone_refused=7,
)  # fmt: skip
_add(
    with_lines(workflow, "buries-what-has-happened", decide_call={
        _KNOWN_KEY: f"{_KNOWN_KEY} and not sent.buries",
    }),
    "A tombstone is written without a look at what the key already holds.",
    ("F03",),
    scope="quick-calls",
    given_up_effects_never_happen=9,
)  # fmt: skip
_add(
    with_lines(workflow, "tombstone-answered-as-receipt", decide_call={
        "if kind == Kind.receipt": "if kind != Kind.declined",
    }),
    "The downstream answers who asks for a tombstone as if the effect had happened.",
    ("F20",),
    receipt_is_true=9,
    only_what_happened_is_undone=12,
)  # fmt: skip
_add(
    without(workflow, "decline-not-kept", decide_call=('if switched("keyed") and declines',)),
    "The downstream keeps receipts and tombstones under a key, but not that it declined.",
    ("F20",),
    scope="quick-calls",
    given_up_effects_never_happen=7,
)
_add(
    with_lines(workflow, "tombstone-kept-as-refusal", decide_call={"Kind.tombstone)": "Kind.declined)"}),
    "Correct but unusual: a downstream that knows no tombstones keeps a recorded refusal in their place.",
    scope="quick-calls",
)
