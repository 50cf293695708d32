"""All SQL of the downstream, as text (§6, §7); its schema is at the end.

To be read like `sql.py`: a line of a `where` is a guard and ends in the code of its refusal, and a line that
writes says its effect. The guards of an operation look at what stands for its key, its fence and its
resource, all of one moment; they come in the order fence, key, revision. A downstream that lacks a class
never writes its table, and so its guards always hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

APPLICATION_ID: Final = 0x46504453
"""Marks the file as ours ("FPDS"), in the field that SQLite's header has for it."""

SCHEMA_VERSION: Final = 1

ADMIT: Final = """
select kind, effect
  from (select 1)
  left join records on records.key = :key
  left join fences on fences.instance = :instance and fences.resource = :resource
  left join revisions on revisions.resource = :resource
 where (token is null or token <= :token)                   -- refuse: stale-token
   and (fingerprint is null or fingerprint = :fingerprint)  -- refuse: key-conflict
   and kind is not 'tombstone'                              -- refuse: tombstoned
   and kind is not 'expired'                                -- refuse: key-expired
   and refusal is not 'wrong-revision'                      -- refuse: wrong-revision
   and (kind is not null or ifnull(:expected_revision = ifnull(revision, 0), true))  -- refuse: wrong-revision
   and refusal is not 'declined'                            -- refuse: declined
"""

APPLY: Final = """
insert into effects (instance, resource, operation, parameters, fingerprint, key, token,
                     revision, applied_at_ms)
select :instance, :resource, :operation, :parameters, :fingerprint, :key, :token,
       iif(:revisioned, ifnull(max(revision), 0) + 1, null), :now_ms  -- effect: the effect happens
  from revisions
 where resource = :resource
returning number, key, fingerprint, instance, resource, token, revision
"""

RECORD_RECEIPT: Final = """
insert into records (key, kind, fingerprint, effect, decided_at_ms)
values (:key, 'receipt', :fingerprint, :number, :now_ms)  -- effect: the key holds the receipt
"""

RECORD_REFUSAL: Final = """
insert into records (key, kind, fingerprint, refusal, why, decided_at_ms)
values (:key, 'refusal', :fingerprint, :refusal, :why, :now_ms)  -- effect: the key holds the refusal
on conflict (key) do nothing
"""

RECORD_TOMBSTONE: Final = """
insert into records (key, kind, fingerprint, decided_at_ms)
values (:key, 'tombstone', :fingerprint, :now_ms)  -- effect: the key holds a tombstone
"""

RAISE_FENCE: Final = """
insert into fences (instance, resource, token)
values (:instance, :resource, :token)  -- effect: the token is recorded
on conflict (instance, resource) do update
   set token = max(token, excluded.token)  -- effect: the fence rises or stays
"""

RAISE_REVISION: Final = """
insert into revisions (resource, revision)
values (:resource, 1)  -- effect: the resource's revision becomes 1
on conflict (resource) do update
   set revision = revision + 1  -- effect: the resource's revision rises by one
"""

ADMIT_TOMBSTONE: Final = """
select kind
  from (select 1)
  left join records on records.key = :key
  left join fences on fences.instance = :instance and fences.resource = :resource
 where (token is null or token <= :token)                   -- refuse: stale-token
   and (fingerprint is null or fingerprint = :fingerprint)  -- refuse: key-conflict
   and kind is not 'expired'                                -- refuse: key-expired
"""

ADMIT_FENCE: Final = """
select token
  from (select 1)
  left join fences on fences.instance = :instance and fences.resource = :resource
 where (token is null or token <= :token)  -- refuse: stale-token
"""

QUERY: Final = """
select kind, fingerprint, effect, refusal, why
  from (select 1)
  left join records on records.key = :key
 where kind is not 'expired'  -- refuse: key-expired
"""

FIND_EFFECT: Final = """
select number, key, fingerprint, instance, resource, token, revision from effects where number = :number
"""

# The log of a downstream that is queryable and not keyed. It may hold several of one key; all are receipts.
FIND_EFFECT_BY_KEY: Final = """
select number, key, fingerprint, instance, resource, token, revision
  from effects where key = :key order by number limit 1
"""

EXPIRE: Final = """
update records
   set kind = 'expired'  -- effect: that something was recorded is all that is kept
     , effect = null     -- effect: the receipt goes
     , refusal = null    -- effect: the refusal goes
     , why = null        -- effect: with its words
 where kind <> 'expired' and decided_at_ms < :before_ms
returning key
"""

# What a refusal shows, and one column for each guard of the statement that refused.
EXPLANATION: Final = """
select token, fingerprint, iif(:revisioned, ifnull(revision, 0), null), why
     , {verdicts}
  from (select 1)
  left join records on records.key = :key
  left join fences on fences.instance = :instance and fences.resource = :resource
  left join revisions on revisions.resource = :resource
"""

SCHEMA: Final = (
    # The truth: each effect that happened, once for each time that it did.
    """
    create table effects (
        number integer primary key,
        instance text not null check (instance <> ''),
        resource text not null check (resource <> ''),
        operation text not null check (operation <> ''),
        parameters text not null check (parameters <> ''),
        fingerprint text not null check (fingerprint <> ''),
        key text not null check (key <> ''),
        token integer not null check (token >= 0),
        revision integer check (revision > 0),
        applied_at_ms integer not null check (applied_at_ms >= 0)
    ) strict
    """,
    "create index effects_by_key on effects (key, number)",
    """
    create trigger effects_are_not_undone before delete on effects
    begin select raise(abort, 'what happened has happened'); end
    """,
    """
    create trigger effects_are_not_rewritten before update on effects
    begin select raise(abort, 'what happened has happened'); end
    """,
    # What each key holds. Never deleted: an expired one keeps its place, lest it be "not found".
    """
    create table records (
        key text not null primary key check (key <> ''),
        kind text not null check (kind in ('receipt', 'refusal', 'tombstone', 'expired')),
        fingerprint text not null check (fingerprint <> ''),
        effect integer unique references effects (number),
        refusal text check (refusal in ('declined', 'wrong-revision')),
        why text,
        decided_at_ms integer not null check (decided_at_ms >= 0),
        check ((kind = 'receipt') = (effect is not null)),
        check ((kind = 'refusal') = (refusal is not null)),
        check ((kind = 'refusal') = (why is not null))
    ) strict, without rowid
    """,
    """
    create trigger records_are_kept before delete on records
    begin select raise(abort, 'a key keeps what it holds'); end
    """,
    """
    create trigger records_are_not_rewritten before update on records
    when new.kind <> 'expired' or new.key <> old.key or new.fingerprint <> old.fingerprint
    begin select raise(abort, 'a key keeps what it holds'); end
    """,
    """
    create table fences (
        instance text not null check (instance <> ''),
        resource text not null check (resource <> ''),
        token integer not null check (token >= 0),
        primary key (instance, resource)
    ) strict, without rowid
    """,
    """
    create trigger fences_never_fall before update on fences when new.token < old.token
    begin select raise(abort, 'a fence never falls'); end
    """,
    """
    create table revisions (
        resource text not null primary key check (resource <> ''),
        revision integer not null check (revision > 0)
    ) strict, without rowid
    """,
    """
    create trigger revisions_count before update on revisions when new.revision <> old.revision + 1
    begin select raise(abort, 'a revision rises by one'); end
    """,
)


@dataclass(frozen=True, slots=True)
class DownstreamStatements:
    """The statements of one downstream; to break it, open it with another text for one of them.

    `opening` runs once for each connection; `between` runs after an effect and before its record. Both are
    empty, and are there for downstreams that are broken on purpose.
    """

    admit: str = ADMIT
    apply: str = APPLY
    record_receipt: str = RECORD_RECEIPT
    record_refusal: str = RECORD_REFUSAL
    record_tombstone: str = RECORD_TOMBSTONE
    raise_fence: str = RAISE_FENCE
    raise_revision: str = RAISE_REVISION
    admit_tombstone: str = ADMIT_TOMBSTONE
    admit_fence: str = ADMIT_FENCE
    query: str = QUERY
    find_effect: str = FIND_EFFECT
    find_effect_by_key: str = FIND_EFFECT_BY_KEY
    expire: str = EXPIRE
    opening: tuple[str, ...] = ()
    between: tuple[str, ...] = ()


DOWNSTREAM_STATEMENTS: Final = DownstreamStatements()
