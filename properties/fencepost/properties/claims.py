"""What a claim is: a plain predicate over states or steps, with an identity, a kind and its witnesses.

A claim is written once. Searching, proving, sampling and checking an implementation all use the same
function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fencepost.model import FencepostError

Predicate = Callable[..., Any]


class Kind(Enum):
    """What a claim speaks of."""

    ALWAYS = "always"
    """Every reachable state."""
    EACH_STEP = "each_step"
    """Every transition between reachable states: (before, after) or (before, after, step)."""
    SOMETIMES = "sometimes"
    """A witness: some reachable state or step is like this."""
    SUPPORTING = "supporting"
    """An invariant over states that a proof needs; true, but not a promise to anyone."""


class ClaimError(FencepostError):
    """A claim is declared wrongly; the message names it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: its id (S1, or a name of a user's own), name in full words, kind, predicate, sentence."""

    id: str
    name: str
    kind: Kind
    predicate: Predicate
    sentence: str
    section: str = ""
    witnesses: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    needs_off: tuple[str, ...] = ()
    """Switches of the world against which it says nothing: with each of them on, it is refuted (§17)."""
    by_shape: str = ""
    """For a claim that the shape of the state makes true: why nothing can break it."""

    @property
    def over_steps(self) -> bool:
        """Whether the predicate takes two states (and a step)."""
        return self.predicate.__code__.co_argcount > 1

    @property
    def place(self) -> str:
        """File and line of the predicate."""
        code = self.predicate.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"


_LISTS = ("witnesses", "supports", "needs_off")
"""What is given as a tuple of names. A plain string would be read as one name for each of its letters."""


def _refuse_misread(name: str, kind: Kind, details: Mapping[str, Any]) -> None:
    """ClaimError for details that would not say what they seem to say."""
    for what in _LISTS:
        given = details.get(what, ())
        if not isinstance(given, tuple) or not all(isinstance(x, str) for x in given):
            instead = (given,) if isinstance(given, str) else ("name", "...")
            raise ClaimError(
                f"claim {name!r} has {what}={given!r}, which is no tuple of names; write {what}={instead!r}"
            )
    if kind is Kind.SOMETIMES and details.get("needs_off"):
        raise ClaimError(
            f"{name!r} is a witness, which promises nothing and so needs nothing off; give needs_off to the "
            "claims that it is a witness of: where what they need off is on, it does not count for them"
        )


@dataclass(slots=True)
class Claims:
    """A set of claims that belong together; modules add to it with the decorators below."""

    name: str
    claims: dict[str, Claim] = field(default_factory=dict)
    about: str = ""
    """The name of the protocol that they speak of, where it is not the core or that of the same file."""

    def always(self, claim_id: str = "", **details: Any) -> Callable[[Predicate], Predicate]:
        """The decorated predicate over one state holds in every reachable state."""
        return self._decorator(Kind.ALWAYS, claim_id, details, (1,))

    def each_step(self, claim_id: str = "", **details: Any) -> Callable[[Predicate], Predicate]:
        """The decorated predicate over (before, after) or (before, after, step) holds on every transition."""
        return self._decorator(Kind.EACH_STEP, claim_id, details, (2, 3))

    def sometimes(self, claim_id: str = "", **details: Any) -> Callable[[Predicate], Predicate]:
        """The decorated predicate, over a state or a step, is true somewhere: a witness."""
        return self._decorator(Kind.SOMETIMES, claim_id, details, (1, 2, 3))

    def supporting(self, **details: Any) -> Callable[[Predicate], Predicate]:
        """The decorated predicate over one state is an invariant for proofs of the claims in `supports`."""
        return self._decorator(Kind.SUPPORTING, "", details, (1,))

    def _decorator(
        self, kind: Kind, claim_id: str, details: dict[str, Any], arity: tuple[int, ...]
    ) -> Callable[[Predicate], Predicate]:
        def add(predicate: Predicate) -> Predicate:
            name = predicate.__name__
            sentence = " ".join((inspect.getdoc(predicate) or "").split("\n\n", 1)[0].split())
            if name in self.claims:
                raise ClaimError(f"claim {name!r} is declared twice in {self.name}; rename one of them")
            if not sentence:
                raise ClaimError(
                    f"claim {name!r} has no docstring; write one sentence that a support engineer understands"
                )
            count = predicate.__code__.co_argcount
            if count not in arity:
                wanted = " or ".join(str(a) for a in arity)
                raise ClaimError(
                    f"claim {name!r} takes {count} arguments, but {kind.value} takes {wanted}: "
                    "always(s), each_step(before, after) or each_step(before, after, step)"
                )
            _refuse_misread(name, kind, details)
            made = Claim(claim_id or name, name, kind, predicate, sentence, **details)
            self.claims[name] = made
            return predicate

        return add

    def of_kind(self, *kinds: Kind) -> Iterator[Claim]:
        """The claims of some kinds, in order of declaration."""
        return (c for c in self.claims.values() if c.kind in kinds)

    def promises(self) -> list[Claim]:
        """What is claimed: `always` and `each_step`."""
        return list(self.of_kind(Kind.ALWAYS, Kind.EACH_STEP))

    def ids(self) -> dict[str, list[Claim]]:
        """The promises by id: S3, say, is a promise about states and one about steps."""
        found: dict[str, list[Claim]] = {}
        for claim in self.promises():
            found.setdefault(claim.id, []).append(claim)
        return found

    def witnesses_of(self, claim_id: str) -> list[Claim]:
        """The witnesses that the premise of a claim was really exercised."""
        names = dict.fromkeys(w for c in self.ids().get(claim_id, ()) for w in c.witnesses)
        missing = [n for n in names if n not in self.claims or self.claims[n].kind is not Kind.SOMETIMES]
        if missing:
            raise ClaimError(
                f"claim {claim_id} names the witness {missing[0]!r}, which no `sometimes` declares"
            )
        return [self.claims[n] for n in names]

    def joined(self, others: Iterable[Claim], name: str = "") -> Claims:
        """These claims and some more, as a set of its own."""
        made = Claims(name or self.name, dict(self.claims), self.about)
        for claim in others:
            if claim.name in made.claims:
                raise ClaimError(f"claim {claim.name!r} exists already; give yours another name")
            made.claims[claim.name] = claim
        return made
