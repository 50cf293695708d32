"""The job store is as the protocol says."""

from dict_store import make

from fencepost.conformance import ConformanceSuite


class TestJobStore(ConformanceSuite):
    adapter = staticmethod(make)
    examples = 20
