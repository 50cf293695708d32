"""The one registry of refusals (§2): what each code means, which comes first, what the caller does next.

A *definite* refusal says that this call changed nothing. Two codes can be decisions as well, which are
recorded under the key: `declined` where keys are kept, and `tombstoned` as the answer to who asks for a
tombstone. `unknown` is no refusal but the lack of an answer; it is listed because a caller has to handle it
like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One code: what it says, whether it is definite and may succeed later, and the sequel."""

    code: str
    meaning: str
    sequel: str
    retryable: bool = False
    definite: bool = True


REGISTRY: tuple[Refusal, ...] = (
    Refusal(
        "no-such-instance",
        "There is no instance of that name.",
        "Mend the caller: create the instance first, or name another.",
    ),
    Refusal(
        "stale-lease-version",
        "The lease version given is not the one that stands: somebody acquired since.",
        "Stop acting as the owner; what the call was for belongs to the new owner.",
    ),
    Refusal(
        "not-the-owner",
        "The lease version is right, but it was acquired by another worker or incarnation.",
        "Stop; only who acquired a lease version may use it. A restarted worker acquires anew.",
    ),
    Refusal(
        "finished",
        "The instance has reached its end.",
        "Stop working on the instance.",
    ),
    Refusal(
        "lease-live",
        "Another lease is live.",
        "Wait until it is over, then acquire again.",
        retryable=True,
    ),
    Refusal(
        "lease-version-exhausted",
        "No larger lease version can be stored, and none is given twice.",
        "Have a person settle the instance, and go on with a new one: this one changes no more hands.",
    ),
    Refusal(
        "lease-expired",
        "The caller's lease is over, although nobody has taken over yet.",
        "Stop acting as the owner; acquire a new lease and read the row again.",
    ),
    Refusal(
        "stale-state-version",
        "The state version given is not the one that stands: another commit of the same owner came first.",
        "Read the row again and decide anew; never repeat the commit with the new version blindly.",
    ),
    Refusal(
        "state-version-exhausted",
        "No larger state version can be stored, and none is given twice.",
        "Have a person settle the instance, and go on with a new one: this one takes no more commits.",
    ),
    Refusal(
        "no-such-request",
        "The inbox has no request of that number that asks for this and has not taken effect yet.",
        "Read the row and its inbox again; a request takes effect once, and only as what it asks for.",
    ),
    Refusal(
        "illegal-transition",
        "Both versions are right, but the step, or the instance, cannot change its status so.",
        "Mend the caller: it decided on something else than what it read.",
    ),
    Refusal(
        "unwinding",
        "The instance is being undone: nothing starts any more, and the cause stays.",
        "Read the row again, and go on with undoing: settle what is under way, then compensate.",
    ),
    Refusal(
        "not-unwinding",
        "The instance is not being undone, so nothing is called off or compensated, nor a cancel consumed.",
        "Mend the caller; first commit the cause, such as a failure or a cancel that is consumed.",
    ),
    Refusal(
        "no-such-migration",
        "No migration of that name is registered from the instance's definition to the other one.",
        "Register it, or commit the instance as manual_intervention: it does not run under other code.",
    ),
    Refusal(
        "no-such-step",
        "The instance has no step of that name, or the step has no gate that an approval could open.",
        "Mend the requester: it names another step than the one that it saw.",
    ),
    Refusal(
        "no-such-notification",
        "The instance has stored no notification with that key.",
        "Mend the caller: a notification is committed before it is sent, and sent under its stored key.",
    ),
    Refusal(
        "deadline-passed",
        "The store's now has reached the deadline: of the step, of its approval, or of the instance.",
        "Do not start it. A step that waits for the approval is committed as failed; otherwise unwind.",
    ),
    Refusal(
        "nothing-to-decide",
        "The step, or the instance, is in nobody's hands, so no decision about it is asked for.",
        "Read the row again: decide about what happened until now, and only once you are asked.",
    ),
    Refusal(
        "not-due",
        "The timer, or the deadline that the commit appeals to, lies after the store's now.",
        "Wait until it is due on the store's now, then commit again.",
        retryable=True,
    ),
    Refusal(
        "approval-recorded",
        "An approval of the stored intent was recorded before the deadline and waits in the inbox.",
        "Read the inbox and consume the approval: one recorded in time is honoured however late.",
    ),
    Refusal(
        "cancel-requested",
        "A cancel waits in the inbox: until it is consumed no step starts and the instance does not end.",
        "Read the inbox, and commit the instance as unwinding with the number of the cancel.",
    ),
    Refusal(
        "dependency-unmet",
        "A step on which this one depends has not succeeded.",
        "Leave the step until it has; then decide again.",
        retryable=True,
    ),
    Refusal(
        "approval-needed",
        "The step, or another intent of it, needs an approval, and is not to run without.",
        "Commit that it waits, with the intent that is to be approved.",
    ),
    Refusal(
        "unfinished-steps",
        "A step is left whose fate is open, so nothing is undone yet, or the instance does not end.",
        "Settle the steps that are left: what runs, what waits, what is in a person's hands.",
        retryable=True,
    ),
    Refusal(
        "not-in-order",
        "A later success is left that has to be undone first.",
        "Compensate the steps in falling order of the state versions of their successes.",
        retryable=True,
    ),
    Refusal(
        "stale-token",
        "The downstream has recorded a higher fencing token: a newer owner has reached it.",
        "Stop acting as the owner. What was sent before is for the new owner to find out.",
    ),
    Refusal(
        "key-conflict",
        "The idempotency key is known, with another fingerprint: the same key for something else. So is the "
        "id of an event, a request or a migration.",
        "Mend the caller: parameters were derived anew, or a key was used twice. Of one's own effect nothing "
        "is known.",
    ),
    Refusal(
        "tombstoned",
        "The key holds a tombstone: its effect has not happened and never will. A request for the effect "
        "is refused so and changes nothing; to who asked for the tombstone it tells the recorded decision.",
        "Commit the step as cancelled, with the tombstone as the evidence.",
    ),
    Refusal(
        "in-progress",
        "The first request with this key is being decided.",
        "Send the same request again, later.",
        retryable=True,
    ),
    Refusal(
        "key-expired",
        "The record of this key was given up after its time. It is not known any more what became of it.",
        "Hand the step to a person; never take it for `not found`.",
    ),
    Refusal(
        "wrong-revision",
        "The resource has another revision than the effect expects.",
        "This request changed nothing; whether an earlier one did must be asked.",
    ),
    Refusal(
        "declined",
        "The downstream declines the effect for a reason of its own. Where keys are kept, that is a "
        "decision, which is recorded and answers later requests; elsewhere this request changed nothing.",
        "Where keys are kept: commit the step as failed or cancelled. Elsewhere it says "
        "nothing of an earlier request.",
    ),
    Refusal(
        "position-taken",
        "Another command was recorded at this position of the history first.",
        "Forget what was found at this position, and replay from the start.",
        retryable=True,
    ),
    Refusal(
        "result-recorded",
        "A result of this command is recorded already, and is never replaced.",
        "Forget the result in hand, and replay from the start: the recorded one counts.",
    ),
    Refusal(
        "unknown",
        "No answer: the call may or may not have been decided.",
        "Ask. For a commit: its id in the log means accepted; a newer lease version means it never will be; "
        "otherwise send the same commit again. For acquire, renew and release: read the row again.",
        retryable=True,
        definite=False,
    ),
)
"""In order of precedence: where several refusals apply, the first is given."""

REFUSALS = {r.code: r for r in REGISTRY}


def precedence(code: str) -> int:
    """The rank of a code: lower comes first. KeyError for a code that is not registered."""
    return [r.code for r in REGISTRY].index(REFUSALS[code].code)


def as_markdown() -> Iterator[str]:
    """The registry as the lines of a table for the documentation."""
    yield "| code | meaning | definite | may succeed later | what the caller does next |"
    yield "|---|---|---|---|---|"
    for r in REGISTRY:
        yes = {True: "yes", False: "no"}
        yield f"| `{r.code}` | {r.meaning} | {yes[r.definite]} | {yes[r.retryable]} | {r.sequel} |"
