"""The compiled reading: a ground model as machine code over packed bit-fields, searched breadth-first.

Start reading at `search.explore`. The other modules, in the order in which a model passes through them:
`layout` (cells to bits), `ranges` (what a term can be), `branching` (which guard is tested when), `codegen`
(terms to LLVM IR), `skeleton` (the search loop in IR), `machine` (IR to machine code), `memory` (growing
arrays), `result` (what was found).
"""

from __future__ import annotations

from fencepost.checker.native.result import Hit, SearchResult
from fencepost.checker.native.search import Seek, StateClaim, StepClaim, explore

__all__ = ["Hit", "SearchResult", "Seek", "StateClaim", "StepClaim", "explore"]
