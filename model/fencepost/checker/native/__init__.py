"""The compiled reading: a ground model as machine code over packed bit-fields, searched breadth-first.

Start reading at `search.explore`. The others, in the order in which a model passes through them: `layout`
(cells to bits), `ranges` (what a term can be), `branching` (which guard is tested when), `emit` and `codegen`
(terms, commands and claims as LLVM IR), `table` and `skeleton` (the search loop in IR), `machine` and `cache`
(IR to machine code), `memory` and `store` (arrays that grow), `job` (how driver and code talk), `result` and
`evaluate` (what was found).
"""

from __future__ import annotations

from fencepost.checker.native.result import Hit, SearchResult
from fencepost.checker.native.search import (
    Progress,
    Seek,
    StateClaim,
    StepClaim,
    explore,
    memory_limit_mb,
)

__all__ = ["Hit", "Progress", "SearchResult", "Seek", "StateClaim", "StepClaim", "explore", "memory_limit_mb"]
