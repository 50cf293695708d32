"""Stores and workers with something wrong, or unusual, in requests, cancelling and undoing."""

from __future__ import annotations

from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to
from fencepost.model.workflow import workflow

VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick-step")

_ILLEGAL, _UNWINDING, _CANCEL = '"illegal-transition"', '"unwinding"', '"cancel-requested"'
_SPENT, _RECORDED = "s.stands[r] = Stands.consumed", "s.stands[r] == Stands.inbox"
_OFFERED = "return s.stands[r] == Stands.inbox and s.wish[r] == wish and s.about[r] == x"
_CANCELS = "s.cause = ite(s.cause == Cause.none, Cause.cancel, s.cause)"
_FAILS = "s.cause = ite(s.cause == Cause.none, Cause.failure, s.cause)"
"""Lines of the model that variants change."""

# The inbox (§4).

_add(
    without(workflow, "recorded-after-the-end", record_request=('"finished"',)),
    "A cancel is recorded in the inbox of an instance that is finished, and its sender is told that it is.",
    a_cancel_after_the_end_is_refused=7,
)
_add(
    without(workflow, "recorded-after-the-deadline", record_request=('"deadline-passed"',)),
    "An approval is recorded, and honoured, that comes after its deadline.",
    approvals_are_recorded_in_time=6,
)
_add(
    without(workflow, "recorded-twice", record_request=("if s.stands[r] != Stands.nowhere",)),
    "A second copy of a request is recorded as another request, and consumed as one.",
    only_commits_change_the_instance=6,
    request_consumed_once=6,
)
_add(
    with_lines(workflow, "taken-before-it-is-recorded", run_approved={
        _OFFERED: "return s.wish[r] == wish and s.about[r] == x",
    }),
    "A worker acts on an approval that it has heard of, and that is not in the inbox.",
    approval_spent_once=5,
    approvals_are_recorded_in_time=6,
    request_consumed_once=5,
    a_request_alone_changes_nothing=5,
)  # fmt: skip

_add(
    without(workflow, "merges-what-is-not-recorded", merge=("is_offered(s, r, Wish.late_result, x)",)),
    "A worker takes a late result for a receipt that is on its way to the inbox, and not in it.",
    scope="handed-in",
    request_consumed_once=9,
    a_request_alone_changes_nothing=9,
)
_add(
    without(workflow, "merges-whatever-it-was", merge=(_ILLEGAL,)),
    "A late result makes a success of a step that has ended without it.",
    scope="handed-in",
    legal_transitions_only=14,
    successes_are_dated=12,
    a_commit_consumes_at_most_what_it_does=11,
    late_results_are_kept=11,
    a_person_decides=11,
)

_add(
    without(workflow, "spends-no-late-result", merge=("s.stands[r] = Stands.consumed",)),
    "A step succeeds with a late result that stays in the inbox as if nobody had taken it.",
    scope="handed-in",
    a_success_has_its_receipt=10,
)
_add(
    with_lines(workflow, "refuses-late-results", record_request={
        "not s.finished or s.wish[r] == Wish.late_result": "not s.finished",
    }),
    "A receipt that comes after the end is refused, and nobody hears of it.",
    scope="handed-in",
    a_late_result_is_never_refused=10,
)  # fmt: skip
_add(
    with_lines(workflow, "fails-on-a-late-result", merge={
        "s.status[x] = Status.succeeded": "s.status[x] = Status.failed",
    }),
    "A worker that finds a late result fails the step, as if a result that comes late were none.",
    scope="handed-in",
    given_up_effects_never_happen=10,
    what_is_given_up_has_a_cause=10,
    successes_are_dated=10,
    a_commit_consumes_at_most_what_it_does=10,
    late_results_are_kept=10,
)  # fmt: skip

# Approval (§11).

_add(
    without(workflow, "asks-whatever-it-was", ask_approval=(_ILLEGAL,)),
    "An approval is asked for a step that runs already.",
    legal_transitions_only=4,
    only_a_new_intent_waits_again=3,
    former_intents_never_happen=5,
    a_gated_step_waits=5,
    a_person_decides=5,
)
_add(
    without(workflow, "asks-while-unwinding", ask_approval=(_UNWINDING,)),
    "An approval is asked for a step of an instance that is being undone.",
    cancel_is_honoured=6,
    who_unwinds_goes_on_unwinding=6,
)
_add(
    without(workflow, "asks-despite-a-cancel", ask_approval=(_CANCEL,)),
    "An approval is asked for a step although a cancel is in the inbox.",
    cancel_is_honoured=5,
)
_add(
    without(workflow, "asks-too-soon", ask_approval=('"dependency-unmet"',)),
    "An approval is asked for a step before what it depends on has succeeded.",
    scope="quick-two",
    order_is_kept=3,
)
_add(
    without(workflow, "deadline-of-nothing", reach_deadline=("s.status[x] == Status.waiting_approval",)),
    "The deadline of an approval passes for which nobody has been asked, and holds for the one that is.",
    a_gated_step_waits=4,
)
_add(
    without(workflow, "approved-whatever-it-was", run_approved=(_ILLEGAL,)),
    "An approval makes a step run that does not wait for it.",
    legal_transitions_only=10,
    given_up_effects_never_happen=9,
    former_intents_never_happen=9,
    timer_fires_once=7,
    a_commit_consumes_at_most_what_it_does=6,
    a_person_decides=8,
)
_add(
    without(workflow, "approved-while-unwinding", run_approved=(_UNWINDING,)),
    "An approved step runs although the instance is being undone.",
    scope="quick-requests",
    cancel_is_honoured=9,
    who_unwinds_goes_on_unwinding=9,
)
_add(
    without(workflow, "approved-despite-a-cancel", run_approved=(_CANCEL,)),
    "An approved step runs although a cancel is in the inbox.",
    scope="quick-requests",
    cancel_is_honoured=8,
)
_add(
    with_lines(workflow, "runs-on-any-request", run_approved={"approves(s, r, x)": _RECORDED}),
    "A step that waits runs on whatever has been asked of anything.",
    approval_spent_once=6,
    a_commit_consumes_at_most_what_it_does=6,
)
_add(
    without(workflow, "approval-not-spent", run_approved=(_SPENT,)),
    "An approval stays in the inbox when it is used, and serves another time.",
    approval_spent_once=6,
)
_add(
    with_lines(workflow, "approval-of-any-intent", run_approved={
        " and s.approves[r].present and s.approves[r] == s.fingerprint[x]": "",
    }),
    "An approval of another intent, with other parameters, makes the step run.",
    scope="approved",
    approval_spent_once=6,
)  # fmt: skip
_add(
    with_lines(workflow, "approval-of-any-step", run_approved={
        _OFFERED: "return s.stands[r] == Stands.inbox and s.wish[r] == wish",
    }),
    "The approval of one step makes another run.",
    scope="quick-two",
    approval_spent_once=6,
    a_commit_consumes_at_most_what_it_does=6,
)  # fmt: skip
_add(
    with_lines(workflow, "rejection-runs", run_approved={
        "return is_offered(s, r, Wish.approve, x)":
            "return (is_offered(s, r, Wish.approve, x) or is_offered(s, r, Wish.reject, x))",
    }),
    "A decision on an approval makes the step run, whatever was decided.",
    approval_spent_once=6,
    a_commit_consumes_at_most_what_it_does=6,
)  # fmt: skip
_add(
    without(workflow, "rejects-whatever-it-was", take_no=(_ILLEGAL,)),
    "A rejection cancels a step that does not wait for it.",
    legal_transitions_only=7,
    given_up_effects_never_happen=8,
    a_commit_consumes_at_most_what_it_does=5,
    a_person_decides=8,
)
_add(
    with_lines(workflow, "rejected-by-anything", take_no={"is_offered(s, r, Wish.reject, x)": _RECORDED}),
    "A step that waits is cancelled on whatever has been asked of anything.",
    unwinding_has_a_reason=6,
    a_commit_consumes_at_most_what_it_does=6,
    an_instance_is_cancelled_only_if_asked=6,
)
_add(
    without(workflow, "rejection-not-spent", take_no=(_SPENT,)),
    "A rejection stays in the inbox when it is used.",
    unwinding_has_a_reason=6,
    an_instance_is_cancelled_only_if_asked=6,
)
_add(
    without(workflow, "rejected-and-goes-on", take_no=(_CANCELS,)),
    "A step is rejected, and the instance does not unwind.",
    what_is_given_up_has_a_cause=6,
    a_commit_consumes_at_most_what_it_does=6,
)
_add(
    without(workflow, "deadline-of-anything", give_up_waiting=(_ILLEGAL,)),
    "A step fails at the deadline of its approval although it has been settled.",
    only_commits_change_the_instance=5,
    legal_transitions_only=8,
    given_up_effects_never_happen=10,
    a_person_decides=10,
)
_add(
    without(workflow, "deadline-not-awaited", give_up_waiting=('"not-due"',)),
    "A step fails for want of an approval before the deadline.",
    an_approval_in_time_is_honoured=3,
)
_add(
    without(workflow, "approval-in-time-ignored", give_up_waiting=('"approval-recorded"',)),
    "A step fails at the deadline although its approval was recorded before.",
    an_approval_in_time_is_honoured=7,
)
_add(
    without(workflow, "late-and-goes-on", give_up_waiting=(_FAILS,)),
    "A step fails for want of an approval, and the instance does not unwind.",
    what_is_given_up_has_a_cause=4,
)

# Cancelling (§10).

_add(
    with_lines(workflow, "cancelled-by-anything", acknowledge_cancel={" and s.wish[r] == Wish.cancel": ""}),
    "A worker takes whatever has been asked for a cancel.",
    unwinding_has_a_reason=5,
    a_commit_consumes_at_most_what_it_does=5,
    an_instance_is_cancelled_only_if_asked=5,
)
_add(
    with_lines(workflow, "refused-and-yet-done", start={
        "learn_committed(s, w, lost, answer)":
            "learn_committed(s, w, lost, answer)\n"
            "if answer == Answer.cancel_requested:\n    s.status[x] = Status.cancelled",
    }),
    "A start that is refused because of a cancel cancels the step all the same.",
    only_commits_change_the_instance=5,
    refused_changes_nothing=5,
    what_is_given_up_has_a_cause=5,
)  # fmt: skip
_add(
    without(workflow, "cancel-not-spent", acknowledge_cancel=(_SPENT,)),
    "A cancel stays in the inbox when it is acknowledged.",
    only_commits_change_the_instance=6,
    unwinding_has_a_reason=5,
    an_instance_is_cancelled_only_if_asked=5,
)
_add(
    without(workflow, "acknowledged-and-forgotten", acknowledge_cancel=(_CANCELS,)),
    "A cancel is acknowledged, and the instance goes on.",
    cancel_is_honoured=6,
    what_is_given_up_has_a_cause=5,
    a_commit_consumes_at_most_what_it_does=5,
)
_add(
    with_lines(workflow, "cancel-covers-a-failure", acknowledge_cancel={_CANCELS: "s.cause = Cause.cancel"}),
    "A cancel takes the place of the failure for which the instance unwinds.",
    who_unwinds_goes_on_unwinding=7,
)
_add(
    without(workflow, "given-up-twice", give_up=(_UNWINDING,)),
    "A worker gives up a step of an instance that is being undone already, for another cause.",
    only_commits_change_the_instance=4,
    who_unwinds_goes_on_unwinding=7,
)
_add(
    without(workflow, "gives-up-for-no-reason", give_up=(_ILLEGAL, "when(sees_under_way(s, w, x))")),
    "An instance unwinds because of a step that has nothing under way.",
    unwinding_has_a_reason=2,
)
_add(
    without(workflow, "unknown-is-called-off",
            call_off=("when(known_undone(s, w, x) or not sees_under_way(s, w, x))",)),
    "A step of an instance that unwinds is cancelled although its effect may have happened.",
    ("F16",),
    given_up_effects_never_happen=6,
)  # fmt: skip
_add(
    without(workflow, "called-off-whatever-it-was", call_off=(_ILLEGAL,)),
    "A step is cancelled whatever its status.",
    only_commits_change_the_instance=5,
    legal_transitions_only=4,
    given_up_effects_never_happen=7,
    a_person_decides=6,
)
_add(
    without(workflow, "called-off-for-no-reason", call_off=('"not-unwinding"',)),
    "A step is cancelled although the instance does not unwind.",
    what_is_given_up_has_a_cause=2,
)

# Undoing (§12).

_add(
    with_lines(workflow, "undoes-what-cannot-be-undone", compensate={" and s.undoable[x]": ""}),
    "A step is compensated for which no compensation is registered.",
    scope="chained",
    compensation_in_order=10,
)
_add(
    without(workflow, "undoes-what-has-not-happened", compensate=(_ILLEGAL,)),
    "A step is compensated whatever its status: one whose effect is known not to have happened, too.",
    legal_transitions_only=4,
    only_what_happened_is_undone=6,
)
_add(
    without(workflow, "undoes-for-no-reason", compensate=('"not-unwinding"',)),
    "A step that succeeded is undone although the instance does not unwind.",
    what_is_given_up_has_a_cause=7,
    compensation_in_order=7,
)
_add(
    without(workflow, "undoes-before-all-is-resolved", compensate=('"unfinished-steps"',)),
    "A step is undone while the effect of another is under way.",
    scope="quick-two",
    compensation_in_order=8,
)
_add(
    with_lines(workflow, "undoes-before-all-is-called-off", compensate={
        "every(steps, lambda y: is_resolved(s, y))":
            "every(steps, lambda y: is_resolved(s, y) or s.status[y] == Status.pending)",
    }),
    "A step is undone while another has not been cancelled that has yet to begin.",
    scope="quick-two",
    compensation_in_order=8,
)  # fmt: skip
_add(
    with_lines(workflow, "undoes-past-a-person", compensate={
        "every(steps, lambda y: is_resolved(s, y))":
            "every(steps, lambda y: is_resolved(s, y) or s.status[y] == Status.manual_intervention)",
    }),
    "A step is undone while a later one is in a person's hands.",
    scope="quick-two",
    compensation_in_order=11,
)  # fmt: skip
_add(
    without(workflow, "undoes-in-any-order", compensate=('"not-in-order"',)),
    "Steps are undone in any order.",
    scope="quick-two",
    compensation_in_order=13,
)
_add(
    with_lines(workflow, "undoes-in-rising-order", compensate={
        "every(steps, lambda y: is_undone_later(s, y, x))":
            "every(steps, lambda y: is_undone_later(s, x, y))",
    }),
    "The first success is undone first.",
    scope="quick-two",
    compensation_in_order=13,
)  # fmt: skip
_add(
    without(workflow, "undone-once-sent", end_compensation=("when(s.knows[w, x] == Knows.receipt)",)),
    "A step is committed as compensated without the receipt of the compensation.",
    ("F16",),
    receipt_is_true=9,
)
_add(
    without(workflow, "undone-whatever-it-was", end_compensation=(_ILLEGAL,)),
    "A step is committed as compensated whatever its status, on the receipt of its own effect.",
    legal_transitions_only=6,
    receipt_is_true=6,
    what_is_given_up_has_a_cause=6,
    a_person_decides=7,
)
_add(
    with_lines(workflow, "failed-compensation-is-one", hand_over_compensation={
        "s.status[x] = Status.manual_intervention": "s.status[x] = Status.compensated",
    }),
    "A compensation that could not be brought about is committed as if it had been.",
    a_person_is_told_what_for=9,
    receipt_is_true=9,
)  # fmt: skip
_add(
    without(workflow, "hands-over-whatever-it-was", hand_over_compensation=(_ILLEGAL,)),
    "A step is handed to a person because of its compensation, whatever its status.",
    only_commits_change_the_instance=3,
    legal_transitions_only=2,
    a_person_is_told_what_for=2,
    what_is_given_up_has_a_cause=6,
)
_add(
    without(workflow, "person-not-told-what-for", hand_over_compensation=("s.undoing[x] = True",)),
    "A person is handed a step, and is not told that its compensation is meant.",
    a_person_is_told_what_for=9,
)
_add(
    without(workflow, "hands-over-what-is-undone",
            hand_over_compensation=("when(s.knows[w, x] != Knows.receipt)",)),
    "Correct but unhelpful: a compensation whose receipt is there is handed to a person.",
)  # fmt: skip
