"""Stores and workers with something wrong in what an operator decides (§5, §12)."""

from __future__ import annotations

from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to
from fencepost.model.workflow import workflow

VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick-step")

_ILLEGAL, _UNWINDING, _CANCEL = '"illegal-transition"', '"unwinding"', '"cancel-requested"'
_RECORDED = "s.stands[r] == Stands.inbox"
_NOBODY = '"nothing-to-decide"'
_ONLY_ITSELF = {"is_open_decision(s, q, x)": "q == r"}
"""Lines of the model that variants change."""

_add(
    without(workflow, "by-hand-whatever-it-was", run_by_hand=(_ILLEGAL,), record_request=(_NOBODY,)),
    "An operator's decision makes a step run that is in nobody's hands.",
    a_decision_is_about_what_waits=3,
    legal_transitions_only=10,
    only_stored_intents_happen=7,
    timer_fires_once=7,
    approval_spent_once=6,
    a_commit_consumes_at_most_what_it_does=5,
)
_add(
    without(workflow, "by-hand-while-unwinding", run_by_hand=(_UNWINDING,)),
    "An operator has a step run again although the instance is being undone.",
    who_unwinds_goes_on_unwinding=9,
)
_add(
    without(workflow, "by-hand-despite-a-cancel", run_by_hand=(_CANCEL,)),
    "An operator has a step run again although a cancel is in the inbox.",
    scope="quick-requests",
    cancel_is_honoured=10,
)
_add(
    with_lines(workflow, "by-any-request", run_by_hand={"is_offered(s, r, Wish.run_again, x)": _RECORDED}),
    "A step in a person's hands runs again on whatever has been asked of anything.",
    a_person_decides=8,
    a_commit_consumes_at_most_what_it_does=8,
)
_add(
    without(workflow, "decision-not-spent", run_by_hand=("s.stands.update_where",)),
    "An operator's decision stays in the inbox, and makes the step run again the next time, too.",
    a_decision_is_about_what_waits=8,
    a_person_decides=8,
)
_add(
    without(workflow, "decides-what-nobody-asked", record_request=(_NOBODY,)),
    "An operator's decision is recorded about a step that is in nobody's hands, and honoured once it is.",
    scope="decided",
    a_decision_is_about_what_waits=3,
)
_add(
    with_lines(workflow, "former-decision-stands", run_by_hand=_ONLY_ITSELF),
    "Of two operators who had a step run again, the second is taken to have said so of what came of that.",
    scope="decided",
    a_decision_is_about_what_waits=10,
)
_add(
    with_lines(workflow, "other-decision-stands", attest=_ONLY_ITSELF),
    "An operator's decision stays in the inbox when another one settles the step.",
    scope="decided",
    a_decision_is_about_what_waits=10,
)
_add(
    without(workflow, "attested-without-a-tombstone", attest=("when(may_be_attested(s, w, x, wish))",)),
    "An operator's word settles a step although the downstream could be asked, and could still act.",
    what_is_given_up_has_a_cause=8,
    a_person_decides=8,
    attested_keys_are_buried=8,
    receipt_is_true=8,
    a_commit_consumes_at_most_what_it_does=8,
)
_add(
    without(workflow, "attests-whatever-it-was",
            attest=('refuse_unless(s.status[x] == Status.manual_intervention, "illegal-transition")',),
            record_request=(_NOBODY,)),
    "An operator's word settles a step that is in nobody's hands.",
    a_decision_is_about_what_waits=3,
    a_success_has_its_receipt=6,
    legal_transitions_only=12,
    attested_keys_are_buried=6,
    a_commit_consumes_at_most_what_it_does=6,
)  # fmt: skip
_add(
    without(workflow, "attests-something-else",
            attest=('refuse_unless(s.undoing[x] == (wish == Wish.compensated), "illegal-transition")',)),
    "An operator is asked about a compensation, and the answer is taken for one about the effect.",
    what_is_given_up_has_a_cause=8,
    attested_keys_are_buried=8,
    receipt_is_true=8,
)  # fmt: skip
_add(
    with_lines(workflow, "attested-by-anything", attest={"is_offered(s, r, wish, x)": _RECORDED}),
    "A step in a person's hands is settled on whatever has been asked of anything.",
    a_person_decides=10,
    a_commit_consumes_at_most_what_it_does=10,
)
_add(
    without(workflow, "attestation-not-spent", attest=("s.stands.update_where",)),
    "An operator's word stays in the inbox when it is used.",
    a_decision_is_about_what_waits=10,
    a_person_decides=10,
)
_add(
    without(workflow, "attestation-not-marked", attest=("s.attested[x] = True",)),
    "A step that succeeded on an operator's word looks as if it had a receipt.",
    scope="attested",
    receipt_is_true=8,
    given_up_effects_never_happen=9,
    only_what_happened_is_undone=13,
)
_add(
    without(workflow, "attested-and-goes-on",
            attest=("s.cause = ite(wish == Wish.failed and s.cause == Cause.none",)),
    "An operator says that a step failed, and the instance does not unwind.",
    scope="attested",
    what_is_given_up_has_a_cause=8,
)  # fmt: skip
