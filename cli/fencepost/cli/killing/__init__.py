"""Kills real worker processes of the reference, and audits what they leave behind.

`kill_workers` in `supervisor.py` is the one call. `orders.py` is the workflow that is run, `work.py` what a
worker process does, `points.py` where it waits for leave, `people.py` the process that cancels, approves and
decides. `nursery.py` is the lean process that forks them, `processes.py` how they are started and ended,
`fates.py` what happens to whom, `broken.py` what can be wrong on purpose.
"""
