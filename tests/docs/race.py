"""``docs/two-workers-race.md``: what happens when two workers have the same step, each answer from a run."""

from __future__ import annotations

from fencepost.checker.diagrams import LEGEND
from fencepost.model.core import core
from fencepost.model.effects import effects
from fencepost.properties import CORE

from .pages import row
from .race_runs import (
    ABOUT,
    SENDS_AGAIN,
    TAKEOVER,
    TRUSTS_A_QUERY,
    after_takeover,
    both_calls,
    copies_at_a_fence,
    in_text,
    lands,
    named,
    scope,
    shown,
    sound,
)
from .runs import flowed, run

_EDITED_BY = "<!-- made by the tests from runs of the model: REWRITE_DOCS=1 python -m pytest tests/docs -->"


def page() -> str:
    """``docs/two-workers-race.md``."""
    parts = (_opening, _race, _late_request, _commits, _keys, _conflict, _opaque, _fence, _summary)
    return flowed(f"{_EDITED_BY}\n\n" + "\n".join(part() for part in parts))


RACE = """
    send_effect(w2, c2, 1, f1)
    decide_call(c1, whole)
    decide_call(c2, whole)
    receive_reply(c2)
    commit(w2, succeeded, f1)
    receive_reply(c1)
    commit(w1, succeeded, f1)
"""
W2_FIRST = """
    send_effect(w2, c2, 1, f1)
    decide_call(c2, whole)
    receive_reply(c2)
    commit(w2, succeeded, f1)
    decide_call(c1, whole)
    receive_reply(c1)
"""


def _opening() -> str:
    return f"""# Two workers, one charge

A step of a workflow charges money. A worker starts it and is too slow: its lease runs out, and another worker
takes
over. Now two workers have the same step. Neither can see the other. The customer must be charged once.

Nothing here goes wrong in an unusual way. A pause of the process is enough, or a slow network, or a machine
whose
clock runs behind. What counts is who is allowed to do what, and who checks it. There are three places that
check,
the three **gates**:

1. The **lease** says who may try. The store hands it out, for a time.
2. The **commit** says whose word about the step is accepted. The store compares two versions.
3. The **downstream**, here the payment service, says which charge takes place. It compares what it has kept.

Every picture on this page is a run of the model in `model/fencepost/model/effects`. The page lists steps;
what each
of them does, and what it is answered, is the model's answer. If the model changes, this page is out of date
and a
test fails.

**Names.** `w1` and `w2` are the workers. `c1` and `c2` are calls to the payment service. `f1` is the
fingerprint of
the parameters of a charge, say of 10 euros; `f2` is another amount. `send_effect(w1, c1, 1, f1)` reads: `w1`
sends the
call `c1`, with the key of intent 1, and the fingerprint `f1`. `decide_call(c1, whole)`: the call arrives, and
the
payment service decides it. `expire`: the time of the lease is over. Each note says what a step changed,
before and
after. Signs in the pictures that are made of text:

```text
{LEGEND}
```
"""


def _race() -> str:
    made = after_takeover(RACE, "keyed")
    made.ends_with("receipt", "yes")
    seen = made.value(5, "log[1]")
    assert seen == "running/1"
    return f"""## The race

The payment service keeps keys: for each key it has seen, it remembers the fingerprint and what it answered.

{shown(made)}
Step by step:

- `w1` takes the lease, lease version {made.value(1, "lease_version")}. It commits that the step is running,
  together
  with the **intent**: what it is about to ask for. Only then it sends the call.
- The lease runs out (step 4). Nobody tells `w1`. What `w1` sent is on its way, and no lease calls it back.
- `w2` takes over (step 5): lease version {made.value(5, "lease_version")}. It reads `{seen}`, that is:
  running, with
  intent 1. Whether the money was taken it cannot know. So it sends the same intent under the same key.
- The call of `w1` arrives first, is answered {made.says("decide_call(c1, whole)", "ok")}, and the money is
  taken. The
  call of `w2` is answered {made.says("decide_call(c2, whole)", "ok")} too, with the receipt of the first. The
  charge
  takes place {lands(made, 7)}, in step 7.
- `w2` commits the success with the receipt: {made.says("commit(w2, succeeded, f1)", "ok")}.
- `w1` has a receipt as well, a true one. Its commit is refused all the same, as
  {made.says("commit(w1, succeeded, f1)", "stale-lease-version")}. Nothing is lost by that: what it wanted to
  say has
  been said.

The same run as text, as a terminal shows it. A call that is on its way runs down a line of its own, from the
step in
which it was sent to the step in which it arrives:

{made.plain(ABOUT)}"""


def _late_request() -> str:
    record = after_takeover(W2_FIRST + "commit(w1, succeeded, f1)", "keyed")
    fence = after_takeover(W2_FIRST, "keyed", "fenced")
    fence.ends_with("believes[w1]", "-")
    return f"""## The call of the first worker comes last

The other order. The call of `w2` overtakes the call of `w1`, which arrives when the step is over and done.

{shown(record)}
The service knows the key. It answers {record.says("decide_call(c1, whole)", "ok")} from its record, and takes
no
money: the charge took place {lands(record, 7)}, in step 7. The commit that follows is refused,
{record.says("commit(w1, succeeded, f1)", "stale-lease-version")}.

Now the same run with a **fence**. Each call carries the lease version of its sender, here called its token. A
service
with a fence keeps the highest token that it has answered, and refuses lower ones.

{shown(fence)}
The call of `w2` has set the fence to {fence.ends_with("fence", "2")}. The call of `w1` has token 1, so it is
refused,
{fence.says("decide_call(c1, whole)", "stale-token")}, before anybody looks at its key. From this answer `w1`
learns
what it did not know, and stops acting as the owner: it has nothing left to commit.
"""


def _commits() -> str:
    first = after_takeover(
        """
        send_effect(w2, c2, 1, f1)
        decide_call(c1, whole)
        decide_call(c2, whole)
        receive_reply(c1)
        commit(w1, succeeded, f1)
        receive_reply(c2)
        commit(w2, succeeded, f1)
        """,
        "keyed",
    )
    expired = sound(
        run(
            effects,
            scope("keyed"),
            """
            acquire(w1)
            commit(w1, running, f1)
            send_effect(w1, c1, 1, f1)
            decide_call(c1, whole)
            receive_reply(c1)
            expire
            commit(w1, succeeded, f1)
            """,
        )
    )
    same_lease = run(
        core,
        core.scopes["small"],
        """
        acquire(w1)
        send_commit(w1, c1)
        send_commit(w1, c2)
        decide_commit(c2)
        decide_commit(c1)
        """,
    )
    assert same_lease.broken(CORE) == []
    return f"""## Which commit wins, and why

Not the first one. Here `w1` gets its receipt early, and its commit reaches the store before the commit of
`w2`:

{shown(first)}
The commit of `w1` is refused as {first.says("commit(w1, succeeded, f1)", "stale-lease-version")}, and the
later one of
`w2` is accepted, {first.says("commit(w2, succeeded, f1)", "ok")}. A commit names the two versions that its
sender
believes to stand: the lease version and the state version. The store compares both with its own and writes,
in one
transaction. Since step 5 the lease version is {first.value(5, "lease_version")}, and `w1` still names 1. From
the
takeover on, `w1` cannot win, however fast it is.

**Why the lease version?** It tells owners apart. Time does not: a worker cannot know that its lease is over
at the very
moment in which it sends something. If nobody has taken over yet, the versions still match, and the store
looks at its
own time. Then the code is {expired.says("commit(w1, succeeded, f1)", "lease-expired")}:

{in_text(expired)}
**Why the state version?** It tells apart what one owner saw. An owner may run several things at once, and two
of its
commits may rest on the same reading. The lease version is right in both. This run is one of the core model,
in which a
commit is a message that can be late; here `c1` and `c2` are commits:

{in_text(same_lease)}
The first to arrive is accepted, {same_lease.says("decide_commit(c2)", "ok")}. The other is refused,
{same_lease.says("decide_commit(c1)", "stale-state-version")}: it was decided on a state that is gone.
"""


def _keys() -> str:
    made = after_takeover(RACE, "keyed")
    stored = made.value(2, "intent[1]")
    assert stored == made.value(5, "intent[1]") == made.value(len(made.made), "intent[1]")
    minted = run(
        effects,
        scope("keyed", "key_per_retry"),
        TAKEOVER
        + """
        send_effect(w2, c2, 2, f1)
        decide_call(c1, whole)
        decide_call(c2, whole)
        """,
    )
    minted.gates_held()
    kept = made.value(7, "record[1]")
    assert kept == made.value(8, "record[1]")
    return f"""## Why there is one charge: both calls have one key

In the first run above, these are the two calls:

{both_calls(made)}
The tokens differ, since the owners do. The key is the same, and not by luck. It follows from what stands in
the
store: the instance, the step and the version of the intent, as in `order-42:charge:payment-v1`. `w1` wrote
the intent
in step 2, before it sent anything. `w2` read it in step 5. From step 2 to the end of the run the stored
intent is
`{stored}` (the fingerprint, and a revision that this service does not look at), and nobody derives it anew. A
key that `w2` made up, from the time or a random number, would have been
another key. The model has a switch for that mistake, `key_per_retry`; the charge then takes place
{lands(minted, 7, 8)}, and the run breaks {named(minted)}.

The service wrote its record in step 7, in the transaction of the charge: `{kept}`, the receipt for this
fingerprint.
In step 8 it found the record and answered from it. The record is still `{kept}`.
"""


def _conflict() -> str:
    conflict = after_takeover(
        """
        send_effect(w2, c2, 1, f2)
        decide_call(c1, whole)
        decide_call(c2, whole)
        receive_reply(c2)
        query(w2)
        commit(w2, succeeded, f1)
        """,
        "keyed",
        "intent_rederived",
    )
    wrong = after_takeover(
        """
        send_effect(w2, c2, 1, f2)
        decide_call(c2, whole)
        decide_call(c1, whole)
        """,
        "keyed",
        "intent_rederived",
    )
    assert wrong.value(7, "record[1]") == "receipt/f2"
    return f"""## The same key, another amount

Say the code of `w2` does not read the stored intent. It computes the amount again, and gets another one: a
price has
changed, or a rate. The key is right, the fingerprint is not.

{shown(conflict)}
The service refuses the call as {conflict.says("decide_call(c2, whole)", "key-conflict")}. Without the
fingerprint it
would have handed out the receipt of 10 euros as if it were the receipt of the other amount. The refusal tells
`w2`
nothing about the charge itself, so it asks (step 10), finds the receipt of the stored intent, and commits
that:
{conflict.says("commit(w2, succeeded, f1)", "ok")}. The charge took place {lands(conflict, 7)}.

This check has a limit. The service cannot know which amount is the right one. It keeps the one that comes
first:

{in_text(wrong)}
Now the wrong amount is charged, and the right call is the one that is refused,
{wrong.says("decide_call(c1, whole)", "key-conflict")}. It still took place {lands(wrong, 7)}, in step 7.
That it is the right one, no gate can promise. So the rule is: send what is stored, and derive nothing.
"""


def _opaque() -> str:
    twice = sound(
        run(
            effects,
            scope("request_duplicated"),
            """
            acquire(w1)
            commit(w1, running, f1)
            send_effect(w1, c1, 1, f1)
            decide_call(c1, again, whole)
            expire
            acquire(w2)
            decide_call(c1, whole)
            commit(w2, manual, f1)
            """,
        )
    )
    stuck = after_takeover("", "request_duplicated")
    assert not any(stuck.can(f"send_effect(w2, c2, {key}, {f})") for key in (0, 1, 2) for f in ("f1", "f2"))
    assert stuck.can("commit(w2, manual, f1)")
    assert not stuck.can("commit(w2, succeeded, f1)")
    assert not stuck.can("commit(w2, cancelled, f1)")
    undone = after_takeover("commit(w2, unwinding, f1)", "request_duplicated")
    assert [to for to in ("succeeded", "cancelled", "manual") if undone.can(f"commit(w2, {to}, f1)")] == [
        "manual"
    ]
    careless = after_takeover(
        """
        send_effect(w2, c2, 1, f1)
        decide_call(c1, whole)
        decide_call(c2, whole)
        receive_reply(c2)
        commit(w2, succeeded, f1)
        """,
        protocol=SENDS_AGAIN,
    )
    return f"""## Without gate 3

Take a service that keeps nothing: no key, no token. Then gates 1 and 2 do all that they can, and it is not
enough. The
network delivers one call twice:

{shown(twice)}
The charge took place {lands(twice, 4, 7)}, in steps 4 and 7. Look for the mistake: there is none. Each lease
was taken
when none was live. Each commit was accepted from the owner of the live lease, with both versions right; the
test of
this page checks it. The store was never asked whether money may be taken, so it could not say no.

So the model leaves `w2` one way out of such a charge: to hand it to a person (`manual`). It may not send
again, and
it may not call the step a success or cancelled, since it knows neither. What if it sends again all the same?
This is a
run of a changed model, without the guard that forbids it:

{shown(careless)}
Again the charge took place {lands(careless, 7, 8)}. The log is perfect: one intent, one success, with a
receipt. The
customer has paid two times. Of the claims this run breaks {named(careless)}.
"""


def _fence() -> str:
    steps = """
        query(w2)
        commit(w2, running, f2)
        send_effect(w2, c2, 2, f2)
        decide_call(c2, whole)
        decide_call(c1, whole)
        receive_reply(c2)
        commit(w2, succeeded, f1)
    """
    fenced = after_takeover("raise_fence(w2)" + steps, "keyed", "fenced")
    assert fenced.value(7, "knows[w2]") == "not-happened"
    unsure = after_takeover("query(w2)", "keyed")
    unsure.ends_with("knows[w2]", "nothing")
    assert not any(unsure.can(f"commit(w2, running, {f})") for f in ("f1", "f2"))
    key_alone = after_takeover(steps, "keyed", protocol=TRUSTS_A_QUERY)
    tombstone = after_takeover(
        """
        commit(w2, unwinding, f1)
        send_tombstone(w2, c2)
        decide_call(c2, whole)
        decide_call(c1, whole)
        """,
        "keyed",
    )
    assert tombstone.changes_of("landings") == []
    return f"""## What the fence adds

With keys, two calls for *one* intent make one charge. But the second owner may want something else. Say that
before it
charges, the order is changed: now it is the amount `f2`, a new intent with a new key. The old call is still
on its way.
For the key it is no duplicate, since nobody has used that key before.

So `w2` first raises the fence (step 6), which has no effect of its own, and then asks for the old key (step
7). Nothing
is found, and from now on nothing with a lower token can come. Only these two together prove that the old
charge has
not happened and never will. Then `w2` commits the new intent and sends it.

{shown(fenced)}
The old call is refused, {fenced.says("decide_call(c1, whole)", "stale-token")}. The charge took place
{lands(fenced, 10)}, in step 10, with the new amount.

Without a fence, that nothing is found proves nothing, and the model does not let `w2` go on: after the same
question it
knows {unsure.ends_with("knows[w2]", "nothing")}, and a new intent is not possible. A worker that takes *not
found* for
*has not happened* is a changed model again:

{shown(key_alone)}
A charge took place {lands(key_alone, 9, 10)}, in steps 9 and 10: each under a key of its own, and the record
is in
perfect order. Of the claims this run breaks {named(key_alone)}.

A service with keys and without a fence has another way: the owner commits that it gives the charge up, and
asks for
a **tombstone** under the old key. The late call is then refused as
{tombstone.says("decide_call(c1, whole)", "tombstoned")}. What does not help is to wait for a while and hope
that nothing is on its way.
"""


GATES = (
    ("gate", "who checks", "what is compared", "stops", "does not stop"),
    (
        "1, the lease",
        "the store",
        "the end of the lease with its own time",
        "a takeover while the lease is live",
        "what the former owner has sent",
    ),
    (
        "2, the commit",
        "the store",
        "lease version and state version",
        "a word about the step by who no longer is its owner",
        "anything outside of the store",
    ),
    (
        "3, by key",
        "the downstream",
        "key and fingerprint",
        "a second effect of the same intent",
        "the former owner's other intent",
    ),
    (
        "3, by fence",
        "the downstream",
        "the token",
        "whatever a former owner has sent, once the new one was there",
        "two copies of the present owner's call",
    ),
)


def _summary() -> str:
    copies = copies_at_a_fence()
    lands(copies, 4, 5)
    heading, *body = (row(*cells) for cells in GATES)
    table = "\n".join([heading, "|" + "---|" * len(GATES[0]), *body])
    return f"""## What each gate stops

{table}

No gate stands in for another. What the codes mean and what a caller does next is in [refusals](refusals.md);
the rules are in [the protocol](the-protocol.md).
"""
