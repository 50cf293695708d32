"""How a state is packed: each cell in as many bits as it needs, in as many 64-bit words as that takes.

No cell straddles two words. A cell is stored minus its smallest value, so bits are never a signed number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.model.errors import ModelError
from fencepost.model.ground import Cell

WORD_BITS = 64
WORD_MASK = (1 << WORD_BITS) - 1
NUMBER_BITS = 62
"""Numbers and intermediate results stay below 2**62 in size, so that 64-bit arithmetic never overflows."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell is stored: `bits` bits from bit `shift` of word `word`, holding the value minus `low`."""

    word: int
    shift: int
    bits: int
    low: int
    high: int

    @property
    def mask(self) -> int:
        """The bits of the cell within its word."""
        return ((1 << self.bits) - 1) << self.shift

    def field(self, code: int) -> int:
        """`code` as it lies in the word."""
        return (code - self.low) << self.shift

    def code(self, word: int) -> int:
        """The value in a word."""
        return ((word & self.mask) >> self.shift) + self.low


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all cells.

    `unused` is a word that no state of a one-word layout equals, if there is one: what marks an empty slot.
    """

    places: Mapping[str, Place]
    words: int
    bits: int
    unused: int | None

    def pack(self, codes: Mapping[str, int]) -> tuple[int, ...]:
        """The words of a state given by the code of each cell."""
        words = [0] * self.words
        for name, place in self.places.items():
            code = codes[name]
            if not place.low <= code <= place.high:
                raise ValueError(f"{name} = {code} lies outside {place.low}..{place.high}")
            words[place.word] |= place.field(code)
        return tuple(words)

    def unpack(self, words: Sequence[int]) -> dict[str, int]:
        """The code of each cell."""
        return {name: place.code(int(words[place.word])) for name, place in self.places.items()}


def layout_of(cells: Iterable[Cell]) -> Layout:
    """Pack cells in their order, each into the first word that has room."""
    wanted: list[tuple[str, int, int, int]] = []
    for cell in cells:
        if min(cell.low, -cell.high) < -(1 << NUMBER_BITS):
            raise ModelError(
                f"{cell.name} ranges over {cell.low}..{cell.high}, beyond 2**{NUMBER_BITS}",
                instead="use smaller numbers: the compiled reading computes in 64 bits",
            )
        wanted.append((cell.name, cell.low, cell.high, (cell.high - cell.low).bit_length()))
    places, used = _fill(wanted)
    return Layout(places, len(used), sum(used), _unused(places, used))


def _fill(wanted: list[tuple[str, int, int, int]]) -> tuple[dict[str, Place], list[int]]:
    """Places first fit, and the bits used in each word."""
    places: dict[str, Place] = {}
    used = [0]
    for name, low, high, bits in wanted:
        word = next((i for i, taken in enumerate(used) if taken + bits <= WORD_BITS), len(used))
        if word == len(used):
            used.append(0)
        places[name] = Place(word, used[word] if bits else 0, bits, low, high)
        used[word] += bits
    return places, used


def _unused(places: Mapping[str, Place], used: list[int]) -> int | None:
    """A word that is no state of a one-word layout."""
    if len(used) > 1:
        return None
    if used[0] < WORD_BITS:
        return 1 << used[0]
    for place in places.values():
        if place.high - place.low + 1 < 1 << place.bits:
            return place.field(place.high + 1)
    return None
