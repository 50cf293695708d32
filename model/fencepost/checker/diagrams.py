"""A run as a sequence diagram: Mermaid text for a page, and lanes of plain text for a terminal.

Who is drawn, and which message goes where, is found in the protocol by `sequence`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from fencepost.checker.sequence import Diagram, Exchange, Fate, Moment, Passage, diagram
from fencepost.checker.traces import Trace
from fencepost.model import Protocol

LEGEND = """\
o   takes a step, or decides      ──>o   arrives, or asks      o<──>o   asks and is answered in one step
!   something happens to it       ┊      is on its way         x        is lost"""
"""What the signs of `plain` mean."""


# -- Mermaid


def mermaid(trace: Trace, protocol: Protocol, *, about: Iterable[str] = ()) -> str:
    """The run as Mermaid text, `sequenceDiagram`, which GitHub draws. `about` is as for `diagram`.

    What is on its way rests in a lane of its own, with a bar for as long as something is there.
    """
    made = diagram(trace, protocol, about=about)
    ids = {lane: f"k{n}" for n, lane in enumerate(made.lanes)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {ids[lane]} as {escaped(lane)}" for lane in made.callers]
    if made.passages:
        lines.append(f"    participant way as {escaped(made.carrier)}")
    lines += [f"    participant {ids[lane]} as {escaped(lane)}" for lane in made.keepers]
    for moment in made.moments:
        lines += [f"    {line}" for line in _mermaid_moment(made, moment, ids)]
    for passage in made.passages:
        if passage.fate is Fate.UNDER_WAY:
            lines.append(f"    Note over way: {escaped(f'{passage.text} is still on its way')}")
            lines.append("    deactivate way")
    return "\n".join(lines) + "\n"


def _mermaid_moment(made: Diagram, moment: Moment, ids: Mapping[str, str]) -> Iterator[str]:
    n, label = moment.number, f"{moment.number} {moment.label}"
    drawn = False
    for passage in made.passages:
        head = "--" if passage.is_answer else "-"
        since = f"of step {passage.departs}"
        target = ids.get(passage.target, "way")
        if n in passage.stops or (passage.ends == n and passage.fate is Fate.ARRIVES):
            yield f"way{head}){target}: {escaped(f'{label} · {passage.text} {since}')}"
            drawn = True
        if passage.ends == n and passage.fate is Fate.LOST:
            before = "" if drawn else f"{label} · "
            text = escaped(f"{before}{passage.text} {since} is lost")
            yield f"way{head}x{target}: {text}" if target != "way" else f"Note over way: {text}"
            drawn = True
        if passage.ends == n:
            yield "deactivate way"
    for passage in made.passages:
        if passage.departs == n:
            head = "--" if passage.is_answer else "-"
            text = passage.text if drawn else f"{label} · {passage.text}" if passage.is_answer else label
            yield f"{ids[passage.source]}{head})way: {escaped(text)}"
            yield "activate way"
            drawn = True
    if moment.exchange is not None:
        drawn = True
        yield from _mermaid_exchange(moment, moment.exchange, ids)
    for lane, notes in moment.changes.items():
        first = [] if drawn else [label]
        if first or notes:
            yield f"Note over {ids[lane]}: " + "<br/>".join(escaped(x) for x in [*first, *notes])
            drawn = True
    if not drawn:
        # Nobody's step, such as that of the clock, is noted across all lanes.
        across = dict.fromkeys([made.lanes[0], made.lanes[-1]] if moment.by is None else [moment.by])
        yield f"Note over {','.join(ids[lane] for lane in across)}: {escaped(label)}"


def _mermaid_exchange(moment: Moment, exchange: Exchange, ids: Mapping[str, str]) -> Iterator[str]:
    caller, callee = ids[exchange.caller], ids[exchange.callee]
    yield f"{caller}->>{callee}: {escaped(f'{moment.number} {moment.step.label}')}"
    if exchange.lost:
        yield f"{callee}--x{caller}: {escaped(f'{moment.answer} · the answer is lost')}"
    else:
        yield f"{callee}-->>{caller}: {escaped('what is kept' if exchange.reads else moment.answer)}"


_PLAIN = set(" .,:()[]/-_→·")


def escaped(text: str) -> str:
    """Text for Mermaid: whatever could mean something to it is written as a number, as in ``#59;``."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in text)


# -- plain text

_UP, _DOWN, _LEFT, _RIGHT, _WAITS = 1, 2, 4, 8, 16
_SIGNS = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""A sign for each set of directions in which lines leave a cell."""

_GAP, _TRACK_GAP, _LEAST_NOTES = 4, 3, 30
"""Columns between lanes and between tracks, and the least width for notes, however narrow the page."""


def plain(trace: Trace, protocol: Protocol, *, width: int = 110, about: Iterable[str] = ()) -> list[str]:
    """The run as lines of text: a lane for each who takes part, a line for each step, time downwards.

    A message that is on its way runs down a track of its own, from the step in which it sets out to the one
    in which it ends. Changes are noted on the right, wrapped to `width`. `about` is as for `diagram`.
    """
    made = diagram(trace, protocol, about=about)
    tracks = _tracks(made.passages)
    labels = [f"{m.number:>{len(str(len(made.moments)))}}  {_printable(m.label)}" for m in made.moments]
    left = max((len(x) for x in [*labels, "step"]), default=0) + 3
    places, end = _layout(made, len(set(tracks.values())), left)
    heading = list("step".ljust(end))
    for lane, x in places.items():
        if isinstance(lane, str):
            name = _printable(lane)
            heading[x - len(name) // 2 : x - len(name) // 2 + len(name)] = name
    lines = ["".join(heading).rstrip()]
    for moment, label in zip(made.moments, labels, strict=True):
        notes = [_printable(note) for of_lane in moment.changes.values() for note in of_lane]
        wrapped = _wrapped(notes, max(_LEAST_NOTES, width - end))
        for number, note in enumerate(wrapped):
            row = _Row(end, [x for lane, x in places.items() if isinstance(lane, str)])
            for passage, track in tracks.items():
                row.pass_by(passage, moment.number, places[track], places, first=number == 0)
            if number == 0:
                row.take(moment, places)
            lines.append((row.text(label if number == 0 else "") + note).rstrip())
    return lines


def _printable(text: str) -> str:
    """Text on one line, whatever is in a name."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _wrapped(notes: list[str], width: int) -> list[str]:
    """Notes in lines, none broken in two."""
    whole = ", ".join(note.replace(" ", "\u00a0") for note in notes)
    lines = textwrap.wrap(whole, width, break_on_hyphens=False, break_long_words=False) or [""]
    return [line.replace("\u00a0", " ") for line in lines]


def _tracks(passages: tuple[Passage, ...]) -> dict[Passage, int]:
    """A track for each passage, none shared by two at the same step."""
    free_from: list[float] = []
    found: dict[Passage, int] = {}
    for passage in passages:
        track = next((n for n, step in enumerate(free_from) if step < passage.departs), len(free_from))
        until = float("inf") if passage.ends is None else passage.ends
        free_from[track : track + 1] = [until]
        found[passage] = track
    return found


def _layout(made: Diagram, tracks: int, left: int) -> tuple[dict[str | int, int], int]:
    """The column of each lane, and of each track between those who send and those who decide."""
    places: dict[str | int, int] = {}
    x = left
    for lane in made.callers:
        half = len(_printable(lane)) // 2
        places[lane] = x + half
        x += 2 * half + 1 + _GAP
    for track in range(tracks):
        places[track] = x + 1
        x += _TRACK_GAP
    x += _GAP if tracks else 0
    for lane in made.keepers:
        half = len(_printable(lane)) // 2
        places[lane] = x + half
        x += 2 * half + 1 + _GAP
    return places, x


class _Row:
    """One line of the plain form: where lines cross its cells, and the signs that stand on them."""

    def __init__(self, width: int, lanes: list[int]) -> None:
        self.cells = [0] * width
        self.signs: dict[int, str] = {}
        for x in lanes:
            self.cells[x] = _UP | _DOWN

    def line(self, start: int, end: int) -> None:
        """A horizontal line; its ends are not crossed but touched."""
        low, high = min(start, end), max(start, end)
        for x in range(low + 1, high):
            self.cells[x] |= _LEFT | _RIGHT
        self.cells[low] |= _RIGHT
        self.cells[high] |= _LEFT

    def head(self, start: int, end: int, sign: str = "") -> None:
        """The head of an arrow, beside its end."""
        self.signs[end - 1 if start < end else end + 1] = sign or (">" if start < end else "<")

    def pass_by(
        self, passage: Passage, step: int, track: int, places: Mapping[str | int, int], *, first: bool
    ) -> None:
        """What a passage leaves in the line of a step; lines that follow only go on with notes."""
        if step < passage.departs or (passage.ends is not None and step > passage.ends):
            return
        ends = passage.ends == step
        if not first:
            self.cells[track] |= 0 if ends else _UP | _DOWN | _WAITS
            return
        self.cells[track] |= (0 if step == passage.departs else _UP) | (0 if ends else _DOWN) | _WAITS
        if step == passage.departs:
            self.line(places[passage.source], track)
            self.signs[places[passage.source]] = "o"
        if step in passage.stops or (ends and passage.fate is Fate.ARRIVES):
            self.line(track, places[passage.target])
            self.head(track, places[passage.target])
        if ends and passage.fate is Fate.LOST:
            self.signs[track] = "x"

    def take(self, moment: Moment, places: Mapping[str | int, int]) -> None:
        """The step itself: who takes it, or what it happens to."""
        for lane in moment.changes:
            if moment.by is None:
                self.signs[places[lane]] = "!"
        if moment.by is not None:
            self.signs[places[moment.by]] = "o"
        if moment.exchange is not None:
            caller, callee = places[moment.exchange.caller], places[moment.exchange.callee]
            self.line(caller, callee)
            self.signs[caller] = self.signs[callee] = "o"
            if not moment.exchange.reads:
                self.head(caller, callee)
            self.head(callee, caller, "x" if moment.exchange.lost else "")

    def text(self, label: str) -> str:
        """The line, with what stands on its left."""
        drawn = [self.signs.get(x, self._sign(cell)) for x, cell in enumerate(self.cells)]
        return label + "".join(drawn[len(label) :])

    def _sign(self, cell: int) -> str:
        return "┊" if cell == _UP | _DOWN | _WAITS else _SIGNS[cell & ~_WAITS]
