"""What a built-in variant of a protocol is: one thing different, and the claims that it is shown to break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol as Shape

from fencepost.model.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant: what is different, where it is looked at, what it breaks, and the faults it stands for.

    `scope` names the scope in which it is seen to break, and is empty where the protocol's own scopes show
    it. `breaks` has the claims by name, each with the length of the shortest run.
    """

    name: str
    protocol: Protocol
    story: str
    scope: str
    breaks: Mapping[str, int]
    faults: tuple[str, ...] = ()


class Adds(Shape):
    """What adds a variant, under the name of its protocol."""

    def __call__(
        self, protocol: Protocol, story: str, faults: tuple[str, ...] = (), *, scope: str = ..., **breaks: int
    ) -> None:
        """Add it, with the length of the shortest run for each claim that it breaks."""


def adding_to(variants: dict[str, Variant], *, scope: str) -> Adds:
    """A function that adds variants, each looked at in `scope` unless it names another."""
    usual = scope

    def add(
        protocol: Protocol, story: str, faults: tuple[str, ...] = (), *, scope: str = usual, **breaks: int
    ) -> None:
        variants[protocol.name] = Variant(protocol.name, protocol, story, scope, breaks, faults)

    return add
