"""Kills real worker processes of the reference, and audits what they leave behind.

`kill_workers` in `supervisor.py` is the one call. `work.py` is what a worker process does, `nursery.py` the
lean process that forks workers, `processes.py` how they are started and ended, `fates.py` what happens to
whom, `broken.py` what can be wrong on purpose.
"""
