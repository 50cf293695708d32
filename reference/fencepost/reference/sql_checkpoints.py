"""The table of checkpoints (§14) and its statements, as text; to be read like `sql.py`.

A checkpoint is bytes of which the database knows nothing: what is asked of it, `checkpoint.py` says. There is
one for each instance, the latest, written in the transaction of its commit.
"""

from __future__ import annotations

from typing import Final

TO_VERSION_4: Final = (
    """
    create table checkpoints (
        instance text not null primary key references instances (instance),
        checkpoint blob not null
    ) strict
    """,
)
"""What makes version 4 of version 3. Rows of older files have no checkpoint before their next commit."""

# Runs last in an accepted commit.
WRITE_CHECKPOINT: Final = """
insert into checkpoints (instance, checkpoint)
values (:instance, :checkpoint)  -- effect: the checkpoint of this commit takes the place of the last one
on conflict (instance) do update set checkpoint = excluded.checkpoint
"""

# With the lease version of the commit that made the row's state version.
READ_CHECKPOINT: Final = """
select ifnull(lease_version, 0), checkpoint
  from (select 1)
  left join event_log on event_log.instance = :instance and event_log.state_version = :state_version
  left join checkpoints on checkpoints.instance = :instance
"""

# A person's word that the row is right, where its checkpoint is not. Not in the way of an owner.
VOUCH: Final = """
select instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
       unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
  from instances
 where instance = :instance                                 -- refuse: no-such-instance
   and (expires_at_ms is null or expires_at_ms <= :now_ms)  -- refuse: lease-live
   and state_version = :expected_state_version              -- refuse: stale-state-version
"""
