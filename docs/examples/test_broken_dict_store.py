"""The job store without its lock is right call by call, and wrong between two statements."""

from broken_dict_store import Unlocked

from fencepost.conformance import ConformanceSuite


class TestUnlocked(ConformanceSuite):
    adapter = Unlocked
    claims = ("S1",)
    examples = 20
    faults = False
