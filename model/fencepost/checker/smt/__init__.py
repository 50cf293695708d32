"""The readings that a solver decides: proofs for all sizes, induction on an instance, bounded model checking.

Z3 is loaded when something is asked, never by an import.
"""

from fencepost.checker.smt.bounded import (
    BoundedResult,
    Counterexample,
    InductionResult,
    counterexample_to_induction,
    induct,
    leaves_its_field,
)
from fencepost.checker.smt.proof import ProofResult, Result, prove
from fencepost.checker.smt.search import SearchResult, bmc

__all__ = [
    "BoundedResult",
    "Counterexample",
    "InductionResult",
    "ProofResult",
    "Result",
    "SearchResult",
    "bmc",
    "counterexample_to_induction",
    "induct",
    "leaves_its_field",
    "prove",
]
