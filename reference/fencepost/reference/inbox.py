"""What those without a lease do at a store (§4, §10, §11, §13, §14): each in one transaction of its own.

Each has an id of its own kind, and doing the same twice is answered with what was done first.
"""

from __future__ import annotations

from fencepost.reference import codes
from fencepost.reference.records import (
    Parameters,
    beginning_parameters,
    migration_of,
    migration_parameters,
    notified_of,
    plan_parameters,
    request_parameters,
    requested_of,
)
from fencepost.reference.running import Running
from fencepost.reference.values import Answer, ArgumentError, Ok, Refused, Row, text
from fencepost.reference.values_inbox import Beginning, Migration, Notified, Request, Requested


def trigger(run: Running, source: str, event_id: str, beginning: Beginning) -> Answer[Row]:
    """Begin the one instance of an event; see `Store.trigger`."""
    _is("trigger", beginning, Beginning)
    arguments: Parameters = {
        "source": text("trigger", "source", source),
        "event_id": text("trigger", "event_id", event_id),
        **beginning_parameters(beginning),
    }
    statements = run.statements
    with run.writing() as now_ms:
        arguments["now_ms"] = now_ms
        known = run.rows(statements.find_trigger, arguments)
        if known:
            arguments["instance"] = known[0][0]
            again = run.with_steps(run.guarded(statements.redeliver, arguments))
            # Who comes with another payload is told of nobody's work.
            return again if isinstance(again, Ok) else Refused(again.code, None)
        begun = run.guarded(statements.begin, arguments)
        if isinstance(begun, Refused):
            return begun
        run.rows(statements.record_trigger, arguments)
        for plan in beginning.steps:
            run.rows(statements.plan_step, {"instance": beginning.instance, **plan_parameters(plan)})
        for plan in beginning.steps:
            for needs in sorted(set(plan.depends_on)):
                needed = {"instance": beginning.instance, "step": plan.step, "needs": needs}
                run.rows(statements.plan_dependency, needed)
        return run.with_steps(begun)


def request(run: Running, instance: str, asked: Request) -> Answer[Requested]:
    """Put a request into the inbox of an instance; see `Store.request`."""
    _is("request", asked, Request)
    arguments: Parameters = {
        "instance": text("request", "instance", instance),
        **request_parameters(asked),
    }
    with run.writing() as now_ms:
        arguments["now_ms"] = now_ms
        known = run.rows(run.statements.find_request, arguments)
        if known:
            found = requested_of(known[0])
            return Ok(found) if found.request == asked else run.seen(codes.KEY_CONFLICT, instance)
        recorded = run.rows(run.statements.request, arguments)
        if recorded:
            return Ok(requested_of(recorded[0]))
        return run.refused(run.statements.request, arguments)


def register_migration(run: Running, migration: Migration) -> Answer[Migration]:
    """Register a way from one definition to another; see `Store.register_migration`."""
    _is("register_migration", migration, Migration)
    arguments = migration_parameters(migration)
    with run.writing():
        added = run.rows(run.statements.register_migration, arguments)
        found = migration_of(added[0] if added else run.rows(run.statements.find_migration, arguments)[0])
        if found == migration:
            return Ok(found)
        return Refused(run.reason(run.statements.register_migration, arguments), None)


def delivered(run: Running, instance: str, key: str, receipt: str) -> Answer[Notified]:
    """Record the receipt of a notification; see `Store.delivered`."""
    arguments: Parameters = {
        "instance": text("delivered", "instance", instance),
        "idempotency_key": text("delivered", "key", key),
        "receipt": text("delivered", "receipt", receipt),
    }
    with run.writing():
        changed = run.rows(run.statements.deliver, arguments)
        if changed:
            return Ok(notified_of(changed[0]))
        return run.seen(run.reason(run.statements.deliver, arguments), instance)


def _is(who: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise ArgumentError(f"{who}: expected a {kind.__name__}, not {value!r}; see values_inbox.py")
