"""Workers and downstreams with something wrong, or unusual: what each claim is shown to fail on.

A variant is made by taking lines out of the model, or by making them say something else, so that it says only
what is different. `breaks` names the claims (by name) that must be refuted in the variant's scope, with the
exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.core.state import acts, me
from fencepost.model.domains import Element
from fencepost.model.effects import downstream, scopes, steps, world
from fencepost.model.effects.state import Call, Knows, Status, effects, status
from fencepost.model.language import State, when
from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to

assert downstream, scopes  # the protocol is complete only with all its modules  # noqa: S101
assert steps, world  # noqa: S101


VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick")

_KNOWN_KEY = 'if switched("keyed") and kept.present'
_RESENDS = 'when(known_undone(s, w) or switched("keyed"))'
_PROOF = '(reply == Answer.declined and switched("keyed"))'
"""Lines of the model that several variants change."""

# The order of what is asked and done.

_add(
    with_lines(
        effects,
        "query-before-the-fence",
        query={
            "elif s.knows[w] == Knows.raised": "elif s.knows[w] == Knows.nothing",
            "s.knows[w] = Knows.not_happened": "s.knows[w] = Knows.raised",
        },
        raise_fence={
            "when(s.knows[w] == Knows.nothing)": "when(s.knows[w] == Knows.raised)",
            "s.knows[w] = Knows.raised": "s.knows[w] = Knows.not_happened",
        },
    ),
    "A new owner asks, finds nothing, raises the fence, and takes the answer from before for proof.",
    ("F16",),
    scope="quick-queryable",
    given_up_effects_never_happen=9,
    unknown_is_never_guessed=9,
)
_add(
    with_lines(
        effects.variant("not-found-is-proof", without=["raise_fence"]),
        "not-found-is-proof",
        query={"elif s.knows[w] == Knows.raised": "elif s.knows[w] == Knows.nothing"},
    ),
    "The fence rises only with an effect, and a new owner takes it for proof that nothing is found.",
    ("F14", "F16"),
    scope="quick-queryable",
    given_up_effects_never_happen=8,
    unknown_is_never_guessed=7,
)
_add(
    without(effects, "raises-after-sending", raise_fence=("when(s.knows[w] == Knows.nothing)",)),
    "An owner that has sent raises the fence under the same lease version, which does not stop its own call.",
    ("F12",),
    scope="quick-queryable",
    given_up_effects_never_happen=7,
    unknown_is_never_guessed=6,
)
_add(
    with_lines(
        effects, "forgets-that-it-sent", reread={"s.knows[w] = Knows.sent": "s.knows[w] = Knows.nothing"}
    ),
    "A worker that reads its own lease again after a lost reply forgets what it has sent under it.",
    ("F12",),
    scope="quick-queryable",
    given_up_effects_never_happen=9,
    unknown_is_never_guessed=9,
)


def send_before_the_commit(s: State, w: Element, c: Element, key: int, fingerprint: Element) -> None:
    """A worker sends the effect that it is going to commit as its intent."""
    if s.believes[w].present and status(s, w) == Status.pending:
        when(acts(s, w))
        when(key == s.log[s.believes[w].state].intent + 1)
        s.call[c] = Call(
            by=me(s, w),
            token=s.believes[w].lease,
            intent=key,
            key=key,
            fingerprint=fingerprint,
            revision=s.revision,
            buries=False,
        )
        s.in_flight[c] = True
        s.knows[w] = Knows.sent
    else:
        steps.send_effect(s, w, c, key, fingerprint)


_add(
    with_lines(
        effects.variant("sends-before-the-commit", send_effect=send_before_the_commit),
        "sends-before-the-commit",
        commit={"s.knows[w] = Knows.unsent": "if s.knows[w] != Knows.sent:\n    s.knows[w] = Knows.unsent"},
    ),
    "The effect is sent before the commit of its intent, so the next owner believes that nobody has sent it.",
    ("F15",),
    only_stored_intents_happen=3,
    effects_land_as_stored=3,
    given_up_effects_never_happen=7,
    receipt_is_true=6,
)
_add(
    without(effects, "sends-whatever-the-answer", commit=("if lost or answer != Answer.ok",)),
    "A worker goes on and sends although its commit was refused, or its answer lost.",
    ("F15", "F30"),
    given_up_effects_never_happen=8,
)
_add(
    without(effects, "former-owner-commits", commit=('"stale-lease-version"', '"not-the-owner"')),
    "A commit compares the state version alone, so a former owner cancels a step that the new one has sent.",
    ("F01", "F02"),
    given_up_effects_never_happen=7,
    only_the_unknown_goes_to_a_person=6,
)
_add(
    with_lines(
        effects,
        "tombstone-without-a-reason",
        send_tombstone={"when(status(s, w) == Status.unwinding)": "when(under_way(s, w))"},
    ),
    "Correct but unusual: a tombstone is asked for before the reason to undo the step is committed, so that "
    "the next owner does not know it, and runs the step with a new intent.",
)

_add(
    without(
        effects, "sends-other-parameters",
        send_effect=('when(fingerprint == s.intent[of].fingerprint or switched("intent_rederived"))',),
    ),
    "A worker sends other parameters than those that it has committed as the intent.",
    scope="quick-queryable",
    effects_land_as_stored=4,
)  # fmt: skip

# The row: leases, what a commit changes, and the end.

_add(
    without(effects, "taken-while-live", acquire=('"lease-live"',)),
    "A worker takes over while the lease of another is live.",
    takeover_only_after_expiry=2,
)
_add(
    with_lines(
        effects, "takeover-under-the-same-version",
        acquire={"s.lease_version = s.lease_version + 1": "s.lease_version = 1"},
    ),
    "A takeover has the lease version of the former owner.",
    ("F13",),
    lease_version_only_grows=3,
    takeover_only_after_expiry=3,
    given_up_effects_never_happen=9,
)  # fmt: skip
_add(
    without(effects, "effect-after-expiry", commit=('"lease-expired"',)),
    "A commit is accepted after the lease is over, as long as nobody has taken over.",
    commit_only_while_live=3,
)
_add(
    without(effects, "begins-after-the-end", acquire=('"finished"',)),
    "A worker acquires the lease of an instance that is finished.",
    the_end_is_final=5,
)
_add(
    with_lines(
        effects, "runs-after-unwinding",
        commit={
            "(status(s, w) == Status.running and known_undone(s, w))":
                "(under_way(s, w) and known_undone(s, w))",
        },
    ),
    "A step that is to be undone is run again: the reason that was committed is dropped.",
    a_step_never_goes_back=4,
)  # fmt: skip
_add(
    with_lines(
        effects, "receipt-of-nothing",
        commit={"s.receipt = to == Status.succeeded": "s.receipt = to != Status.running"},
    ),
    "A receipt is stored whatever came of the effect.",
    only_success_has_a_receipt=3,
)  # fmt: skip
_add(
    with_lines(
        effects, "known-is-handed-over",
        commit={"under_way(s, w) and is_unknown(s, w)": "under_way(s, w)"},
    ),
    "A step whose outcome is known is handed to a person, who is to find out what is known.",
    only_the_unknown_goes_to_a_person=3,
)  # fmt: skip

# What a worker takes for proof.

_add(
    with_lines(
        effects,
        "takeover-runs-again",
        acquire={"s.knows[w] = Knows.nothing": "s.knows[w] = Knows.unsent"},
    ),
    "A new owner runs a step that is under way as if its effect had never been sent.",
    ("F16", "F21"),
    scope="quick-queryable",
    given_up_effects_never_happen=7,
    unknown_is_never_guessed=6,
)
_add(
    without(
        effects, "resends-without-keys",
        send_effect=(_RESENDS,),
    ),
    "An unknown effect is sent again to a downstream that does not deduplicate.",
    ("F16",),
    scope="quick-queryable",
    unknown_is_never_guessed=4,
)  # fmt: skip
_add(
    with_lines(
        effects, "unknown-is-cancelled",
        commit={"return under_way(s, w) and known_undone(s, w)": "return under_way(s, w)"},
    ),
    "A worker that gives up an unknown effect commits the step as cancelled.",
    ("F16", "F30"),
    given_up_effects_never_happen=5,
)  # fmt: skip
_add(
    with_lines(effects, "unknown-is-replaced", commit={" and known_undone(s, w))": ")"}),
    "A worker gives a step another intent without knowing what became of the former one.",
    ("F18", "F21"),
    given_up_effects_never_happen=5,
)
_add(
    with_lines(
        effects, "success-without-a-receipt",
        commit={"return under_way(s, w) and s.knows[w] == Knows.receipt": "return under_way(s, w)"},
    ),
    "A step is committed as succeeded once its effect is sent, without waiting for a receipt.",
    ("F16",),
    receipt_is_true=3,
)  # fmt: skip
_add(
    with_lines(
        effects,
        "declined-is-proof",
        receive_reply={
            _PROOF: "reply == Answer.declined",
        },
    ),
    "A downstream that keeps no keys declines one copy of a request; the worker takes that for all copies.",
    ("F30",),
    scope="quick-queryable",
    given_up_effects_never_happen=7,
    unknown_is_never_guessed=6,
)
_add(
    with_lines(
        effects,
        "wrong-revision-is-proof",
        receive_reply={
            _PROOF: "reply == Answer.wrong_revision",
        },
    ),
    "The first copy of a request changes the resource, the second is refused for that, and the worker takes "
    "the refusal of one copy for the fate of all.",
    ("F30",),
    scope="quick-unkeyed",
    given_up_effects_never_happen=7,
    unknown_is_never_guessed=7,
)
_add(
    with_lines(
        effects,
        "stale-token-is-proof",
        receive_reply={
            "if reply == Answer.stale_token": "if False",
            _PROOF: f"reply == Answer.stale_token or {_PROOF}",
        },
    ),
    "Correct but unusual: a worker whose token is refused believes that nothing happened; whoever has a "
    "higher token has the lease as well, and gate 2 refuses what the worker makes of it.",
    ("F30",),
    scope="quick-queryable",
)

# The fence.

_add(
    without(effects, "fence-not-compared", decide_call=('"stale-token"',)),
    "The downstream records tokens and compares none.",
    ("F13", "F14"),
    scope="quick-queryable",
    fence_only_rises=7,
    every_contact_is_recorded=7,
    a_stale_token_is_told_nothing_else=7,
    stale_effect_never_lands_after_contact=7,
    given_up_effects_never_happen=9,
    unknown_is_never_guessed=9,
)
_add(
    with_lines(effects, "fence-backwards", decide_call={"sent.token >= s.fence": "sent.token <= s.fence"}),
    "The downstream compares the wrong way: it refuses who is newer.",
    ("F13",),
    scope="quick-queryable",
    fence_only_rises=7,
    every_contact_is_recorded=7,
    a_stale_token_is_told_nothing_else=7,
    stale_effect_never_lands_after_contact=7,
    given_up_effects_never_happen=9,
    unknown_is_never_guessed=9,
)
_add(
    without(effects, "fence-moved-by-anyone", raise_fence=('"stale-token"',)),
    "Raising the fence is not fenced itself, so a former owner moves it back.",
    ("F14",),
    scope="quick-unkeyed",
    fence_only_rises=9,
    every_contact_is_recorded=9,
)
_add(
    without(effects, "token-only-with-effects", decide_call=("if kept.kind != Kind.declined",)),
    "The token is recorded with an effect, but not with an answer from the record. What could land then is a "
    "former owner's *other* effect: this model has one step, and sees only that the token is not recorded.",
    ("F14",),
    every_contact_is_recorded=8,
)
_add(
    with_lines(effects, "tombstone-without-its-token", decide_call={
        "if kind != Kind.declined": "if kind == Kind.receipt",
    }),
    "A tombstone is written, and the token of who asked for it is not recorded.",
    ("F14",),
    every_contact_is_recorded=5,
)  # fmt: skip
_add(
    with_lines(
        effects, "key-before-the-fence",
        decide_call={
            "sent.token >= s.fence":
                "sent.token >= s.fence or "
                '(switched("keyed") and kept.present and kept.kind != Kind.tombstone)',
            "s.fence = s.call[c].token": "s.fence = ite(s.call[c].token > s.fence, s.call[c].token, s.fence)",
        },
    ),
    "The key is looked up before the fence, so a former owner is handed the receipt.",
    ("F14",),
    a_stale_token_is_told_nothing_else=8,
)  # fmt: skip
_add(
    with_lines(
        effects,
        "token-with-refusals",
        decide_call={
            "s.reply[c] = answer": "s.reply[c] = answer\n"
            'if switched("fenced") and sent.token > s.fence:\n    s.fence = sent.token',
        },
    ),
    "The token of a call that is refused is recorded, too.",
    ("F14",),
    scope="quick-rederived",
    a_refusal_leaves_the_downstream_alone=8,
)  # fmt: skip
_add(
    with_lines(effects, "equal-token-refused", decide_call={"sent.token >= s.fence": "sent.token > s.fence"}),
    "Correct but useless: an equal token is refused, so nothing lands of an owner that has raised the fence.",
    ("F13",),
    scope="quick-queryable",
)

# Keys, fingerprints and tombstones.

_add(
    without(effects, "key-alone", decide_call=('"key-conflict"',)),
    "A worker derives the intent anew, its parameters come out otherwise, and the downstream compares keys "
    "only.",
    ("F19",),
    scope="quick-rederived",
    every_ok_is_the_original_receipt=6,
    receipt_is_true=8,
)
_add(
    with_lines(
        effects, "key-by-lease-version",
        send_effect={'when(key == of or switched("key_per_retry"))': "when(key == s.believes[w].lease)"},
    ),
    "The key is made of the lease version instead of the intent, so each takeover has a new one.",
    ("F18",),
    scope="quick-rederived",
    one_effect_per_intent=8,
    receipt_is_true=12,
    given_up_effects_never_happen=10,
    unknown_is_never_guessed=5,
)  # fmt: skip
_add(
    with_lines(
        effects,
        "revision-before-key",
        decide_call={
            _KNOWN_KEY: f"{_KNOWN_KEY} and (sent.buries or fits(s, c))",
        },
    ),
    "The revision is compared before the key: an effect that took place is answered as declined, since it "
    "has changed the revision itself.",
    ("F30",),
    given_up_effects_never_happen=7,
)  # fmt: skip
_add(
    without(
        effects, "refusal-not-kept", decide_call=('if switched("keyed") and (declines or not fits(s, c))',)
    ),
    "The downstream keeps receipts and tombstones under a key, but not that it declined.",
    ("F20",),
    scope="quick-rederived",
    given_up_effects_never_happen=8,
)
_add(
    with_lines(
        effects,
        "late-request-passes-the-tombstone",
        decide_call={
            _KNOWN_KEY: f"{_KNOWN_KEY} and (sent.buries or kept.kind != Kind.tombstone)",
        },
    ),
    "A tombstone answers questions, but does not stop a request that comes late.",
    ("F20",),
    scope="quick-rederived",
    given_up_effects_never_happen=9,
    late_request_after_tombstone_refused=7,
)  # fmt: skip
_add(
    with_lines(
        effects,
        "tombstone-over-a-receipt",
        decide_call={
            _KNOWN_KEY: f"{_KNOWN_KEY} and not sent.buries",
        },
    ),
    "A tombstone is written without a look at what the key already holds.",
    ("F03",),
    given_up_effects_never_happen=9,
)
_add(
    with_lines(effects, "tombstone-as-refusal", decide_call={"Kind.tombstone)": "Kind.declined)"}),
    "Correct but unusual: a downstream that knows no tombstones keeps a recorded refusal in their place.",
)
_add(
    with_lines(
        effects,
        "always-raises-first",
        send_effect={
            _RESENDS: 'when(known_undone(s, w) or (switched("keyed") and s.knows[w] != Knows.nothing))',
        },
    ),
    "Correct but unusual: a new owner raises the fence or asks before it sends an unknown effect again.",
)  # fmt: skip
