"""Workers with something wrong, or unusual, in the life of a step until its success or failure.

A variant is made by taking lines out of the model, or by making them say something else, so that it says only
what is different. `breaks` names the claims (by name) that must be refuted in the variant's scope, with the
exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to
from fencepost.model.workflow import workflow

VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick-step")

COMMITS = (
    "start", "intend_anew", "succeed", "fail", "hand_over", "finish", "schedule_retry", "run_again",
    "ask_approval", "run_approved", "take_no", "give_up_waiting", "run_by_hand", "attest",
    "acknowledge_cancel", "give_up", "call_off", "compensate", "end_compensation", "hand_over_compensation",
)  # fmt: skip
"""What goes through gate 2."""

_ILLEGAL, _UNWINDING, _CANCEL = '"illegal-transition"', '"unwinding"', '"cancel-requested"'
_ENDS = "return s.status[x] == Status.succeeded"
_MEETS = "return every(steps, lambda y: not s.needs[x, y] or s.status[y] == Status.succeeded)"
_CAUSE = "s.cause = ite(s.cause == Cause.none, Cause.failure, s.cause)"
"""Lines of the model that variants change."""

# Gates 1 and 2, for steps. What the lease itself is for, the core has.

_add(
    without(workflow, "former-owner-moves-steps",
            **dict.fromkeys(COMMITS, ('"stale-lease-version"', '"not-the-owner"'))),
    "A commit of a step compares the state version alone, so a former owner moves the steps of the new one.",
    ("F01", "F02"),
    scope="quick-owners",
    a_success_has_its_receipt=8,
    stale_worker_never_overrides=4,
    given_up_effects_never_happen=7,
    an_owner_sends_only_what_is_under_way=6,
)  # fmt: skip
_add(
    without(workflow, "moves-steps-after-expiry", **dict.fromkeys(COMMITS, ('"lease-expired"',))),
    "A commit of a step is accepted after the lease is over, as long as nobody has taken over.",
    scope="quick-owners",
    commit_only_while_live=3,
)
_add(
    without(workflow, "state-version-not-named", **dict.fromkeys(COMMITS, ('"stale-state-version"',))),
    "Correct but unusual: a commit names no state version. Commits are decided at once in this model, so who "
    "has the lease knows the state.",
    scope="quick-owners",
)
_add(
    without(workflow, "owner-not-named", **dict.fromkeys(COMMITS, ('"not-the-owner"',))),
    "Correct but unusual: a commit of a step names both versions but not the owner, whom they imply.",
    scope="quick-owners",
)
_add(
    without(workflow, "ends-twice", finish=('"finished"',)),
    "The end of the instance is committed again.",
    the_end_is_final=5,
    only_commits_change_the_instance=5,
)
_add(
    without(workflow, "steps-taken-while-live", acquire=('"lease-live"',)),
    "A worker takes over an instance while the lease of another is live.",
    ("F06",),
    scope="quick-owners",
    takeover_only_after_expiry=2,
)
_add(
    without(workflow, "acquires-what-is-finished", acquire=('"finished"',)),
    "A worker acquires the lease of an instance that is finished.",
    scope="attested",
    the_end_is_final=6,
)
_add(
    without(workflow, "acquires-what-it-holds", acquire=("when(not s.believes[w].present)",)),
    "A worker that takes itself for the owner acquires again, and keeps what it knew before another was.",
    ("F16",),
    scope="quick-thrice",
    given_up_effects_never_happen=9,
    former_intents_never_happen=9,
)
_add(
    with_lines(
        workflow, "steps-under-the-same-version",
        acquire={"s.lease_version = s.lease_version + 1": "s.lease_version = 1"},
    ),
    "A takeover has the lease version of the former owner, and with it its token.",
    ("F13",),
    scope="quick-owners",
    lease_version_only_grows=3,
    takeover_only_after_expiry=3,
    an_owner_sends_only_what_is_under_way=6,
)  # fmt: skip
_add(
    without(workflow, "starts-without-counting", start=("s.state_version = s.state_version + 1",)),
    "The start of a step leaves the state version as it was.",
    only_commits_change_the_instance=2,
)
_add(
    workflow.variant("nobody-starts-again", without=["restart"]),
    "A worker that died stays dead.",
    scope="quick-crash",
    no_stuck_state=3,
)

_add(
    without(workflow, "keeps-a-timer-that-fired", schedule_retry=("s.due[x] = False",)),
    "A timer that has fired before the step came into a person's hands counts again.",
    timer_fires_once=11,
)

# Starting, and what a step waits for.

_add(
    without(workflow, "starts-again", start=(_ILLEGAL,)),
    "A step is started whatever its status.",
    ("F21",),
    legal_transitions_only=7,
    only_a_new_intent_waits_again=3,
    former_intents_never_happen=5,
    timer_fires_once=4,
    approval_spent_once=3,
    a_person_decides=5,
)
_add(
    without(workflow, "starts-while-unwinding", start=(_UNWINDING,)),
    "A step starts although the instance is being undone.",
    cancel_is_honoured=6,
    who_unwinds_goes_on_unwinding=6,
)
_add(
    without(workflow, "start-ignores-a-cancel", start=(_CANCEL,)),
    "A step starts although a cancel is in the inbox.",
    cancel_is_honoured=5,
)
_add(
    without(workflow, "needs-not-checked", start=('"dependency-unmet"',)),
    "A step starts before what it depends on has succeeded.",
    scope="quick-two",
    order_is_kept=3,
)
_add(
    with_lines(workflow, "to-have-begun-is-enough", start={
        _MEETS: _MEETS.replace("== Status.succeeded", "!= Status.pending"),
    }),
    "A step starts once what it depends on has begun, however that may end.",
    scope="quick-two",
    order_is_kept=4,
)  # fmt: skip
_add(
    with_lines(workflow, "one-of-several-is-enough", start={
        _MEETS: "return not some(steps, lambda y: s.needs[x, y]) or "
                "some(steps, lambda y: s.needs[x, y] and s.status[y] == Status.succeeded)",
    }),
    "A step that depends on two others starts when one of them has succeeded.",
    scope="branching",
    order_is_kept=9,
)  # fmt: skip
_add(
    without(workflow, "runs-unapproved", start=('"approval-needed"',)),
    "A step that needs an approval starts without.",
    a_gated_step_waits=3,
)
_add(
    with_lines(workflow, "one-step-at-a-time", start={
        'refuse_unless(needs_met(s, x), "dependency-unmet")':
            'refuse_unless(needs_met(s, x), "dependency-unmet")\n'
            "when(every(steps, lambda y: s.status[y] != Status.running))",
    }),
    "Correct but unusual: a worker starts a step only while no other runs.",
    scope="quick-two",
)  # fmt: skip

# Success, failure, and a person.

_add(
    without(workflow, "succeeds-once-sent", succeed=("when(s.knows[w, x] == Knows.receipt)",)),
    "A step is committed as succeeded once its effect is sent, without waiting for a receipt.",
    ("F16",),
    a_success_has_its_receipt=3,
    receipt_is_true=3,
    only_what_happened_is_undone=7,
)
_add(
    without(workflow, "succeeds-whatever-it-was", succeed=(_ILLEGAL,)),
    "Who has a receipt commits a success whatever the step's status: the receipt of a compensation, too.",
    legal_transitions_only=12,
    a_person_decides=7,
)
_add(
    without(workflow, "success-not-dated", succeed=("s.succeeded_at[x] = s.state_version",)),
    "A success does not say at which state version it came, so nobody knows what is to be undone first.",
    scope="quick-two",
    successes_are_dated=6,
)
_add(
    without(workflow, "unknown-is-failed", fail=("when(known_undone(s, w, x))",)),
    "A step is committed as failed whose effect may have happened.",
    ("F16", "F30"),
    given_up_effects_never_happen=5,
)
_add(
    without(workflow, "fails-whatever-it-was", fail=(_ILLEGAL,)),
    "A step is committed as failed whatever its status.",
    legal_transitions_only=9,
    given_up_effects_never_happen=9,
    a_person_decides=7,
)
_add(
    without(workflow, "fails-and-goes-on", fail=(_CAUSE,)),
    "A step fails, and the instance does not unwind.",
    what_is_given_up_has_a_cause=3,
)
_add(
    with_lines(workflow, "failure-covers-a-cancel", fail={_CAUSE: "s.cause = Cause.failure"}),
    "The failure of a step takes the place of the cancel for which the instance unwinds.",
    who_unwinds_goes_on_unwinding=7,
)
_add(
    without(workflow, "handed-over-again", hand_over=(_ILLEGAL,)),
    "A step is handed to a person whatever its status.",
    only_commits_change_the_instance=3,
    legal_transitions_only=2,
    a_person_is_told_what_for=10,
    only_stored_intents_happen=8,
)
_add(
    without(workflow, "hands-over-what-it-knows", hand_over=("when(is_unknown(s, w, x))",)),
    "Correct but unhelpful: a step whose outcome is known is handed to a person, who is to find it out.",
)
_add(
    without(workflow, "end-ignores-a-cancel", finish=(_CANCEL,)),
    "The instance ends succeeded although a cancel is in the inbox.",
    cancel_is_honoured=10,
)
_add(
    without(workflow, "ends-unfinished", finish=('"unfinished-steps"',)),
    "The instance ends whatever its steps are at.",
    an_instance_ends_with_its_steps=2,
)
_add(
    with_lines(workflow, "ends-before-undoing", finish={
        "if s.cause == Cause.none": "if s.cause == Cause.none or s.status[x] == Status.succeeded",
    }),
    "An instance that unwinds ends while a step is left that can be undone.",
    an_instance_ends_with_its_steps=8,
)  # fmt: skip
_add(
    with_lines(workflow, "ends-with-a-person", finish={
        _ENDS: f"{_ENDS} or s.status[x] == Status.manual_intervention",
    }),
    "The instance ends while a step is in a person's hands.",
    an_instance_ends_with_its_steps=5,
)  # fmt: skip

# Another intent, and retries.

_add(
    without(workflow, "new-intent-whatever-it-was", intend_anew=(_ILLEGAL,)),
    "A step is given another intent whatever its status.",
    legal_transitions_only=9,
    only_a_new_intent_waits_again=4,
    timer_fires_once=4,
    a_person_decides=7,
)
_add(
    without(workflow, "new-intent-while-unwinding", intend_anew=(_UNWINDING,)),
    "A step is given another intent although the instance is being undone.",
    cancel_is_honoured=7,
    who_unwinds_goes_on_unwinding=4,
)
_add(
    without(workflow, "new-intent-despite-a-cancel", intend_anew=(_CANCEL,)),
    "A step is given another intent although a cancel is in the inbox.",
    cancel_is_honoured=6,
)
_add(
    without(workflow, "new-intent-for-the-unknown", intend_anew=("when(known_undone(s, w, x))",)),
    "A step is given another intent without knowing what became of the former one.",
    ("F18", "F21"),
    former_intents_never_happen=5,
)
_add(
    with_lines(workflow, "approval-covers-every-intent", intend_anew={
        "ite(s.gated[x], Status.waiting_approval, Status.running)": "Status.running",
    }),
    "A step runs with another intent on the approval of the former one.",
    a_gated_step_waits=8,
)  # fmt: skip
_add(
    without(workflow, "tries-again-whatever-it-was", schedule_retry=(_ILLEGAL,)),
    "A step is left to a timer whatever its status.",
    only_commits_change_the_instance=3,
    legal_transitions_only=2,
    a_person_is_told_what_for=11,
    given_up_effects_never_happen=10,
    only_stored_intents_happen=6,
    a_person_decides=4,
)
_add(
    without(workflow, "retries-what-is-known", schedule_retry=("when(s.knows[w, x] != Knows.receipt)",)),
    "Correct but unusual: a step is left to a timer although its receipt is there.",
)
_add(
    without(workflow, "timer-not-awaited", run_again=('"not-due"',)),
    "A step is tried again before its timer is due.",
    timer_fires_once=4,
)
_add(
    without(workflow, "timer-fires-twice", run_again=("s.due[x] = False",)),
    "A timer that has fired stays due, and fires for the next attempt at once.",
    timer_fires_once=5,
)
_add(
    without(workflow, "attempt-not-counted", run_again=("s.attempt[x] = s.attempt[x] + 1",)),
    "A step is tried again, and the attempt is not counted.",
    timer_fires_once=5,
)
_add(
    without(workflow, "timer-of-nothing", reach_timer=("when(s.status[x] == Status.retry_scheduled)",)),
    "The timer of a step becomes due that nobody has set.",
    timer_fires_once=1,
)
_add(
    without(workflow, "runs-again-whatever-it-was", run_again=(_ILLEGAL,)),
    "A step whose timer is due runs again, although it has been settled meanwhile.",
    legal_transitions_only=9,
    timer_fires_once=7,
    a_person_decides=7,
)
_add(
    without(workflow, "retries-while-unwinding", run_again=(_UNWINDING,)),
    "A step is tried again although the instance is being undone.",
    cancel_is_honoured=9,
    who_unwinds_goes_on_unwinding=6,
)
_add(
    without(workflow, "retry-ignores-a-cancel", run_again=(_CANCEL,)),
    "A step is tried again although a cancel is in the inbox.",
    cancel_is_honoured=8,
)
_add(
    without(workflow, "defined-while-it-runs", depend=("when(is_open(s))",), gate=("when(is_open(s))",)),
    "The definition is changed under a worker that goes by it.",
    scope="quick-two",
    the_definition_stays=2,
)
