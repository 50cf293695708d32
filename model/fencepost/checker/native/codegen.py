"""Ground commands and claims as LLVM IR functions over the words of one state.

`@step0`, `@step1`, … write the successors of a state one after another to a buffer and return where it ends;
`@check` evaluates the claims over one state. What they count and find goes to the *job*, a block of 64-bit
numbers that the search driver reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fencepost.checker.native.branching import Choice, Fork, Leaf, Tree, size_of, trees_of
from fencepost.checker.native.emit import Emitter, signed, weight_of
from fencepost.checker.native.job import JobLayout, Watch
from fencepost.checker.native.layout import WORD_MASK, Layout
from fencepost.checker.native.ranges import Ranges
from fencepost.checker.native.table import holds_states, words_of
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN
from fencepost.model.ground import GroundCommand

COMMANDS_PER_FUNCTION = 100
"""Compile time grows faster than the size of a function; a call costs a nanosecond."""


COSTLY = 16
"""From so many operations on, a term is evaluated only in states where a cell that it reads has changed."""


def entry_words(layout: Layout) -> int:
    """Numbers per entry of the buffer: words, parent, bucket or hash, and perhaps a candidate's index."""
    return layout.words + (2 if holds_states(layout) else 3)


class CommandCode:
    """Writes the functions that give a state's successors.

    `frequent` are the commands known to be taken often; with it, the code is the longer and faster kind.
    """

    def __init__(
        self,
        layout: Layout,
        job: JobLayout,
        commands: Sequence[GroundCommand],
        *,
        watches: Sequence[Watch],
        fault_slots: Mapping[int, int],
        internal_slot: int,
        frequent: set[int] | None,
    ) -> None:
        self.layout = layout
        self.job = job
        self.commands = commands
        self.watches = [watch for watch in watches if watch.steps is not None]
        self.fault_slots = fault_slots
        self.internal_slot = internal_slot
        self.frequent = frequent
        self.stride = 8 * entry_words(layout)
        self.e = Emitter(layout)
        Ranges(layout.places).check(_all_terms(commands, watches))

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
            if term.domain != BOOLEAN:
                self.e.number(term)
        end = self._trees(trees, "%out")
        self.e.do(f"ret ptr {end}")
        how = "alwaysinline" if alone else "noinline"
        head = (
            f"define internal ptr @step{number}({words_of(self.layout, '%w')}, ptr noalias %out,"
            f" ptr noalias %job, ptr %table, i64 %buckets, i64 %state) nounwind {how} {{"
        )
        return "\n".join([head, "entry:", *self.e.lines, "}"])

    # -- trees

    def _trees(self, trees: Sequence[Tree], out: str) -> str:
        for tree in trees:
            if isinstance(tree, Leaf):
                out = self._command(tree.command, out)
            elif isinstance(tree, Fork):
                out = self._test(tree, out)
            else:
                out = self._choice(tree, out)
        return out

    def _test(self, tree: Fork, out: str) -> str:
        e = self.e
        condition = e.truth(tree.condition)
        only = tree.then[0] if len(tree.then) == 1 and not tree.otherwise else None
        if isinstance(only, Leaf) and self._without_branch(only.command):
            return self._conditional(only.command, condition, out)
        start, join = e.block, e.label("join")
        then = e.label("then") if tree.then else join
        otherwise = e.label("else") if tree.otherwise else join
        e.fork(condition, then, otherwise)
        arms = [] if tree.then and tree.otherwise else [(out, start)]
        for label, trees in ((then, tree.then), (otherwise, tree.otherwise)):
            if trees:
                arms.append(self._arm(label, trees, out, join))
        return e.join("ptr", arms, join)

    def _without_branch(self, number: int) -> bool:
        """Whether it is cheaper to compute what a command does than to guess whether it does it."""
        command = self.commands[number]
        return (
            number in (self.frequent or ())
            and command.moves
            and not command.fits
            and all(value.op == "const" for value in command.updates.values())
            and all(
                watch.steps[number] is t.boolean(not watch.hit_when) for watch in self.watches if watch.steps
            )
        )

    def _conditional(self, number: int, condition: str, out: str) -> str:
        """Write the successor in any case, and keep it where `condition` holds."""
        e = self.e
        self._add(self.job.taken + number, e.value(f"zext i1 {condition} to i64"))
        end = self._store(self.commands[number].updates, out)
        return e.value(f"select i1 {condition}, ptr {end}, ptr {out}")

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
        e, places = self.e, self.layout.places
        mark = e.mark()
        ranges = Ranges(places)
        ranges.assume(command.guard)
        ways_out: list[tuple[str, str]] = []
        join = e.label("done")
        inside = [self._inside(ranges, term, low, high) for term, low, high in command.fits]
        self._unless(t.and_(inside), number, join=join, internal=False, out=out, ways_out=ways_out)
        inside = [self._inside(ranges, v, places[n].low, places[n].high) for n, v in command.updates.items()]
        self._unless(t.and_(inside), number, join=join, internal=True, out=out, ways_out=ways_out)
        self._watch(number)
        self._add(self.job.taken + number)
        end = self._store(command.updates, out)
        if ways_out:
            ways_out.append((end, e.block))
            e.jump(join)
            end = e.join("ptr", ways_out, join)
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
        self,
        condition: t.Term,
        number: int,
        *,
        internal: bool,
        join: str,
        out: str,
        ways_out: list[tuple[str, str]],
    ) -> None:
        """Go to `join` without a successor where `condition` is false: cut, or an internal error."""
        if condition is t.TRUE:
            return
        e = self.e
        good, bad = e.label("fits"), e.label("misfit")
        e.fork(e.truth(condition), good, bad)
        e.begin(bad)
        if internal:
            self._record(self.internal_slot, number)
        else:
            self._add(self.job.cut + number)
        self._add(self.job.BLOCKED)
        ways_out.append((out, bad))
        e.jump(join)
        e.begin(good)

    def _watch(self, number: int) -> None:
        for watch in self.watches:
            assert watch.steps is not None  # noqa: S101
            emit_watch(self.e, watch, watch.steps[number], command=number)

    def _record(self, slot: int, command: int) -> None:
        self.e.do(record(slot, command))

    def _add(self, place: int, what: str = "1") -> None:
        e = self.e
        address = e.value(f"getelementptr i64, ptr %job, i64 {place}")
        old = e.value(f"load i64, ptr {address}")
        e.do(f"store i64 {e.value(f'add i64 {old}, {what}')}, ptr {address}")

    def _store(self, updates: Mapping[str, t.Term], out: str) -> str:
        """Write an entry to the buffer; gives the place of the next one."""
        e, places = self.e, self.layout.places
        words: list[str] = []
        for word in range(self.layout.words):
            mine = {n: v for n, v in updates.items() if places[n].word == word and places[n].bits}
            words.append(self._word(word, mine))
            self._put(words[-1], out, word)
        self._put("%state", out, self.layout.words)
        if self.frequent is not None:
            arguments = ", ".join(f"i64 {word}" for word in words)
            self._put(
                e.value(f"call i64 @fetch({arguments}, ptr %table, i64 %buckets)"), out, self.layout.words + 1
            )
        return e.value(f"getelementptr i8, ptr {out}, i64 {self.stride}")

    def _put(self, value: str, out: str, place: int) -> None:
        address = self.e.value(f"getelementptr i64, ptr {out}, i64 {place}") if place else out
        self.e.do(f"store i64 {value}, ptr {address}")

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
        if isinstance(tree, Fork):
            found += [tree.condition, *_conditions(tree.then), *_conditions(tree.otherwise)]
        elif isinstance(tree, Choice):
            found.append(tree.subject)
            for _, below in tree.cases:
                found += _conditions(below)
    return found


def _all_terms(commands: Sequence[GroundCommand], watches: Sequence[Watch]) -> Iterator[t.Term]:
    """Every term that is computed."""
    for command in commands:
        yield command.guard
        yield from command.updates.values()
        yield from (term for term, _, _ in command.fits)
    for watch in watches:
        yield from (watch.state,) if watch.state is not None else watch.steps or ()


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


def check_function(layout: Layout, watches: Sequence[Watch]) -> str:
    """The text of `@check`: look at one state (`%w0`, …) that was reached from another (`%p0`, …).

    What costs much to evaluate is evaluated only where a cell it reads has changed: elsewhere it has the
    value that it had in the state before, where it was no hit or not the first.
    """
    e = Emitter(layout)
    changes = [e.value(f"xor i64 %w{i}, %p{i}") for i in range(layout.words)]
    for watch in watches:
        if watch.state is None:
            continue
        if weight_of(watch.state) < COSTLY:
            emit_watch(e, watch, watch.state, command=-1)
            continue
        look, on = e.label("look"), e.label("same")
        e.fork(_changed(e, changes, watch.state), look, on)
        e.begin(look)
        mark = e.mark()
        emit_watch(e, watch, watch.state, command=-1)
        e.release(mark)
        e.jump(on)
        e.begin(on)
    e.do("ret void")
    parameters = f"{words_of(layout, '%w')}, {words_of(layout, '%p')}, ptr noalias %job, i64 %state"
    head = f"define internal void @check({parameters}) nounwind noinline {{"
    return "\n".join([head, "entry:", *e.lines, "}"])


def _changed(e: Emitter, changes: Sequence[str], term: t.Term) -> str:
    """Whether a cell that `term` reads has changed."""
    masks = [0] * len(changes)
    for variable in t.variables_of([term]):
        place = e.layout.places.get(str(variable.payload))
        if place is not None:
            masks[place.word] |= place.mask
    parts = [e.value(f"and i64 {c}, {signed(m)}") for c, m in zip(changes, masks, strict=True) if m]
    if not parts:
        return "true"
    result = parts[0]
    for part in parts[1:]:
        result = e.value(f"or i64 {result}, {part}")
    return e.value(f"icmp ne i64 {result}, 0")
