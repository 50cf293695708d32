"""The readings that a solver decides: proofs for all sizes, counterexamples to induction, bounded model checking.

Z3 is loaded when something is asked, never by an import.
"""

from fencepost.checker.smt.induct import ProofResult, Result, prove

__all__ = ["ProofResult", "Result", "prove"]
