"""Ground commands and claims as LLVM IR functions over the words of one state.

`@step0`, `@step1`, … write the successors of a state one after another to a buffer and return where it ends; `@check`
evaluates the claims over one state. What they count and find goes to the *job*, a block of 64-bit numbers that the
search driver reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.checker.native.branching import Choice, Leaf, Test, Tree, size_of, trees_of
from fencepost.checker.native.emit import Emitter, signed
from fencepost.checker.native.layout import WORD_MASK, Layout
from fencepost.checker.native.ranges import Ranges
from fencepost.checker.native.table import holds_states, words_of
from fencepost.model import terms as t
from fencepost.model.ground import GroundCommand

COMMANDS_PER_FUNCTION = 100
"""Compile time grows faster than the size of a function; a call costs a nanosecond."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked for: the `slot` of its hit in the job, the value that is a hit, and the term(s)."""

    name: str
    slot: int
    hit_when: bool
    state: t.Term | None
    steps: tuple[t.Term, ...] | None


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Where what lies in the job, in 64-bit numbers from its start."""

    commands: int
    hits: int

    STATES, PARENTS, TABLE, BUCKETS, COUNT, LIMIT, BUFFER, BLOCKED = range(8)
    DEAD, FIRST_DEAD, BOUNDARY, FIRST_BOUNDARY = range(8, 12)
    HEADER = 16

    @property
    def taken(self) -> int:
        """Start of the number of transitions taken, per command."""
        return self.HEADER

    @property
    def cut(self) -> int:
        """Start of the number of transitions cut, per command."""
        return self.HEADER + self.commands

    @property
    def found(self) -> int:
        """Start of the hits: two numbers each, state (-1: none yet) and command."""
        return self.HEADER + 2 * self.commands

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.found + 2 * self.hits


def entry_words(layout: Layout) -> int:
    """Numbers per successor in the buffer: its words, its parent, its bucket or hash, and a candidate's index."""
    return layout.words + (2 if holds_states(layout) else 3)


class CommandCode:
    """Writes the functions that give a state's successors."""

    def __init__(
        self,
        layout: Layout,
        job: JobLayout,
        commands: Sequence[GroundCommand],
        *,
        watches: Sequence[Watch],
        fault_slots: Mapping[int, int],
        internal_slot: int,
    ) -> None:
        self.layout = layout
        self.job = job
        self.commands = commands
        self.watches = [watch for watch in watches if watch.steps is not None]
        self.fault_slots = fault_slots
        self.internal_slot = internal_slot
        self.stride = 8 * entry_words(layout)
        self.e = Emitter(layout)

    def functions(self) -> list[str]:
        """The text of `@step0`, `@step1`, …; at least one."""
        groups: list[list[Tree]] = [[]]
        room = COMMANDS_PER_FUNCTION
        for tree in trees_of([command.guard for command in self.commands]):
            size = size_of(tree)
            if size > room and groups[-1]:
                groups.append([])
                room = COMMANDS_PER_FUNCTION
            groups[-1].append(tree)
            room -= size
        return [self._function(i, trees, alone=len(groups) == 1) for i, trees in enumerate(groups)]

    def _function(self, number: int, trees: Sequence[Tree], *, alone: bool) -> str:
        self.e = Emitter(self.layout)
        for term in t.variables_of(_conditions(trees)):
            if term.domain != t.BOOLEAN:
                self.e.number(term)
        end = self._trees(trees, "%out")
        self.e.do(f"ret ptr {end}")
        how = "alwaysinline" if alone else "noinline"
        head = (
            f"define internal ptr @step{number}({words_of(self.layout, '%w')}, ptr noalias %out, ptr noalias %job,"
            f" i64 %state) nounwind {how} {{"
        )
        return "\n".join([head, "entry:", *self.e.lines, "}"])

    # -- trees

    def _trees(self, trees: Sequence[Tree], out: str) -> str:
        for tree in trees:
            if isinstance(tree, Leaf):
                out = self._command(tree.command, out)
            elif isinstance(tree, Test):
                out = self._test(tree, out)
            else:
                out = self._choice(tree, out)
        return out

    def _test(self, tree: Test, out: str) -> str:
        e = self.e
        condition = e.truth(tree.condition)
        if not tree.otherwise and len(tree.then) == 1 and isinstance(tree.then[0], Leaf) and self._simple(tree.then[0].command):
            number = tree.then[0].command
            command = self.commands[number]
            address = e.value(f"getelementptr i64, ptr %job, i64 {self.job.taken + number}")
            old = e.value(f"load i64, ptr {address}")
            one = e.value(f"zext i1 {condition} to i64")
            e.do(f"store i64 {e.value(f'add i64 {old}, {one}')}, ptr {address}")
            end = self._store({n: v for n, v in command.updates.items() if self.layout.places[n].bits}, out)
            return e.value(f"select i1 {condition}, ptr {end}, ptr {out}")
        start, join = e.block, e.label("join")
        then = e.label("then") if tree.then else join
        otherwise = e.label("else") if tree.otherwise else join
        e.fork(condition, then, otherwise)
        arms = [] if tree.then and tree.otherwise else [(out, start)]
        for label, trees in ((then, tree.then), (otherwise, tree.otherwise)):
            if trees:
                arms.append(self._arm(label, trees, out, join))
        return e.join("ptr", arms, join)

    def _simple(self, number: int) -> bool:
        command = self.commands[number]
        return command.moves and not command.fits and all(v.op == "const" for v in command.updates.values()) and all(w.steps[number] is t.boolean(not w.hit_when) for w in self.watches)

    def _choice(self, tree: Choice, out: str) -> str:
        e = self.e
        subject = e.number(tree.subject)
        start, join = e.block, e.label("join")
        labels = [e.label("case") for _ in tree.cases]
        targets = " ".join(
            f"i64 {value}, label %{label}" for (value, _), label in zip(tree.cases, labels, strict=True)
        )
        e.do(f"switch i64 {subject}, label %{join} [{targets}]")
        arms = [(out, start)]
        for (_, trees), label in zip(tree.cases, labels, strict=True):
            arms.append(self._arm(label, trees, out, join))
        return e.join("ptr", arms, join)

    def _arm(self, label: str, trees: Sequence[Tree], out: str, join: str) -> tuple[str, str]:
        mark = self.e.mark()
        self.e.begin(label)
        end = self._trees(trees, out)
        block = self.e.block
        self.e.jump(join)
        self.e.release(mark)
        return end, block

    # -- commands

    def _command(self, number: int, out: str) -> str:
        command = self.commands[number]
        if command.outcome == "fault":
            self._record(self.fault_slots[number], number)
            self._add(self.job.BLOCKED)
            return out
        if not command.moves:
            self._add(self.job.cut + number)
            self._add(self.job.BLOCKED)
            return out
        e = self.e
        mark = e.mark()
        ranges = Ranges(self.layout.places)
        ranges.assume(command.guard)
        arms: list[tuple[str, str]] = []
        join = e.label("done")
        inside = [self._inside(ranges, term, low, high) for term, low, high in command.fits]
        self._unless(t.and_(inside), "cut", arms, out, join, number)
        stored = {name: term for name, term in command.updates.items() if self.layout.places[name].bits}
        places = self.layout.places
        inside = [self._inside(ranges, v, places[n].low, places[n].high) for n, v in command.updates.items()]
        self._unless(t.and_(inside), "internal", arms, out, join, number)
        self._watch(number)
        self._add(self.job.taken + number)
        end = self._store(stored, out)
        if arms:
            arms.append((end, e.block))
            e.jump(join)
            end = e.join("ptr", arms, join)
        e.release(mark)
        return end

    def _inside(self, ranges: Ranges, term: t.Term, low: int, high: int) -> t.Term:
        """What has to be tested for `term` to lie within low..high, which is then known."""
        lowest, highest = ranges.of(term)
        tests = [] if lowest >= low else [t.le(t.integer(low), term)]
        if highest > high:
            tests.append(t.le(term, t.integer(high)))
        ranges.narrow(term, low, high)
        return t.and_(tests)

    def _unless(
        self, condition: t.Term, what: str, arms: list[tuple[str, str]], out: str, join: str, number: int
    ) -> None:
        """Leave for `join` without a successor where `condition` is false: as a cut, or as an internal error."""
        if condition is t.TRUE:
            return
        e = self.e
        good, bad = e.label("fits"), e.label(what)
        e.fork(e.truth(condition), good, bad)
        e.begin(bad)
        if what == "cut":
            self._add(self.job.cut + number)
        else:
            self._record(self.internal_slot, number)
        self._add(self.job.BLOCKED)
        arms.append((out, bad))
        e.jump(join)
        e.begin(good)

    def _watch(self, number: int) -> None:
        for watch in self.watches:
            assert watch.steps is not None  # noqa: S101
            emit_watch(self.e, watch, watch.steps[number], command=number)

    def _record(self, slot: int, command: int) -> None:
        self.e.do(record(slot, command))

    def _add(self, place: int) -> None:
        e = self.e
        address = e.value(f"getelementptr i64, ptr %job, i64 {place}")
        old = e.value(f"load i64, ptr {address}")
        e.do(f"store i64 {e.value(f'add i64 {old}, 1')}, ptr {address}")

    def _store(self, updates: Mapping[str, t.Term], out: str) -> str:
        e = self.e
        for word in range(self.layout.words):
            address = e.value(f"getelementptr i64, ptr {out}, i64 {word}") if word else out
            mine = {n: v for n, v in updates.items() if self.layout.places[n].word == word}
            e.do(f"store i64 {self._word(word, mine)}, ptr {address}")
        parent = e.value(f"getelementptr i64, ptr {out}, i64 {self.layout.words}")
        e.do(f"store i64 %state, ptr {parent}")
        return e.value(f"getelementptr i8, ptr {out}, i64 {self.stride}")

    def _word(self, word: int, updates: Mapping[str, t.Term]) -> str:
        """The new value of one word."""
        e = self.e
        if not updates:
            return f"%w{word}"
        mask = constant = 0
        fields: list[str] = []
        for name, term in updates.items():
            place = self.layout.places[name]
            mask |= place.mask
            if term.op == "const":
                constant |= place.field(int(term.payload or 0))
                continue
            field = e.number(term)
            if place.low:
                field = e.value(f"sub i64 {field}, {place.low}")
            fields.append(e.value(f"shl i64 {field}, {place.shift}") if place.shift else field)
        result = e.value(f"and i64 %w{word}, {signed(~mask & WORD_MASK)}")
        if constant:
            result = e.value(f"or i64 {result}, {signed(constant)}")
        for field in fields:
            result = e.value(f"or i64 {result}, {field}")
        return result


def _conditions(trees: Sequence[Tree]) -> list[t.Term]:
    """Every term that the trees test."""
    found: list[t.Term] = []
    for tree in trees:
        if isinstance(tree, Test):
            found += [tree.condition, *_conditions(tree.then), *_conditions(tree.otherwise)]
        elif isinstance(tree, Choice):
            found.append(tree.subject)
            for _, below in tree.cases:
                found += _conditions(below)
    return found


def record(slot: int, command: int) -> str:
    """The call that notes a hit, unless there was one."""
    return f"call void @record(ptr %job, i64 {slot}, i64 %state, i64 {command})"


def emit_watch(e: Emitter, watch: Watch, term: t.Term, *, command: int) -> None:
    """Note a hit where `term` has the value that is one."""
    never = t.boolean(not watch.hit_when)
    if term is never:
        return
    if term.op == "const":
        e.do(record(watch.slot, command))
        return
    hit, on = e.label("hit"), e.label("on")
    truth = e.truth(term)
    e.fork(truth, *((hit, on) if watch.hit_when else (on, hit)))
    e.begin(hit)
    e.do(record(watch.slot, command))
    e.jump(on)
    e.begin(on)


def check_function(layout: Layout, watches: Sequence[Watch]) -> str | None:
    """The text of `@check`, or None when there is nothing to check in a single state."""
    e = Emitter(layout)
    mine = [(w, w.state) for w in watches if w.state is not None and w.state is not t.boolean(not w.hit_when)]
    if not mine:
        return None
    for watch, term in mine:
        emit_watch(e, watch, term, command=-1)
    e.do("ret void")
    head = f"define internal void @check({words_of(layout, '%w')}, ptr noalias %job, i64 %state) nounwind alwaysinline {{"
    return "\n".join([head, "entry:", *e.lines, "}"])
