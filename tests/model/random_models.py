"""Random small protocols, as source text in the modelling language, for the test that all readings agree."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

HEAD = '''"""A random model."""

from fencepost.model import *

workers = Sort("worker")
keys = Sort("key")
versions = Counter("version")
Phase = Enumeration("Phase", "idle", "held", "down")
Answer = Enumeration("Answer", "none", "ok", "taken", "stale")
Lease = Record("Lease", worker=workers, version=versions)
NOBODY = Lease(worker=workers.element(0), version=0)
small = Range(-1, 1)

p = Protocol("random", answers=Answer)
p.switch("storm", "on in half of the scopes")
p.switch("calm", "on in the other half")


def variable(name, domain, first, home="store"):
    p.variable(name, domain, first, home=home, meaning=name)


'''

VARIABLES: dict[str, str] = {
    "n": 'variable("n", versions, 0)',
    "m": 'variable("m", versions, 1, "worker")',
    "level": 'variable("level", small, 0)',
    "flag": 'variable("flag", BOOLEAN, False)',
    "phase": 'variable("phase", Phase, Phase.idle, "worker")',
    "who": 'variable("who", workers, workers.element(0))',
    "holder": 'variable("holder", Optional(workers), absent)',
    "seen": 'variable("seen", Optional(versions), absent, "worker")',
    "lease": 'variable("lease", Optional(Lease), absent)',
    "row": 'variable("row", Lease, NOBODY, "worker")',
    "up": 'variable("up", Family(workers, of=BOOLEAN), True)',
    "idle": 'variable("idle", Family(workers, of=BOOLEAN), False, "worker")',
    "ticks": 'variable("ticks", Family(workers, of=versions), 0)',
    "at": 'variable("at", Family(workers, of=Phase), Phase.idle, "worker")',
    "log": 'variable("log", Family(versions, of=Optional(workers)), absent)',
    "levels": 'variable("levels", Family(small, of=small), 0, "worker")',
    "used": 'variable("used", Family(keys, of=BOOLEAN), False)',
    "leases": 'variable("leases", Family(keys, of=Optional(Lease)), absent)',
    "rows": 'variable("rows", Family(keys, of=Lease), NOBODY, "worker")',
    "may": 'variable("may", Family(workers, keys, of=BOOLEAN), False)',
    "seen_at": 'variable("seen_at", Family(keys, small, of=Optional(versions)), absent)',
    "past": 'variable("past", Family(versions, of=BOOLEAN), False, HISTORY)',
}

KINDS: dict[str, str] = {"worker": "workers", "key": "keys", "number": "versions", "level": "small", "phase": "Phase"}
"""What a bound variable can be, and the domain it ranges over."""

Bound = Mapping[str, str]
"""Names in sight that are no state variables, with their kinds."""


class Writer:
    """Writes one random model; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random
        self.variables = [n for n in VARIABLES if pick.random() < 0.45 or n in ("n", "up", "used")]
        self.helpers: dict[str, str] = {}
        self.loops = pick.random() < 0.3
        self.codes = ("taken", "stale")
        self.names = 0
        self.state = "s"
        self.in_action = False
        self.names_fresh = False

    def model(self) -> str:
        """The whole text."""
        pick = self.random
        parts = [HEAD, *(f"{text}\n" for name, text in VARIABLES.items() if name in self.variables)]
        self.in_action = True
        parts += [self.helper() for _ in range(pick.randint(0, 2))]
        parts += [self.action(i) for i in range(pick.randint(2, 4))]
        self.in_action = False
        parts += [self.claim(i) for i in range(3)]
        parts += [self.step_claim(i) for i in range(2)]
        switch = pick.choice(("storm", "calm"))
        sizes = f'{{"worker": {pick.randint(1, 2)}, "key": {pick.randint(1, 2)}}}'
        bounds = f'{{"version": {pick.randint(1, 2)}}}'
        parts.append(f'\n\nSIZES, BOUNDS, SWITCHES = {sizes}, {bounds}, frozenset({{"{switch}"}})\n')
        return "".join(parts)

    # -- pieces

    def has(self, *names: str) -> list[str]:
        return [name for name in names if name in self.variables]

    def s(self, name: str) -> str:
        return f"{self.state}.{name}"

    def choose(self, options: list[Callable[[], str]]) -> str:
        return self.random.choice(options)()

    def sometimes(self, chance: float) -> bool:
        return self.random.random() < chance

    def fresh_name(self) -> str:
        self.names += 1
        return f"x{self.names}"

    def of_kind(self, bound: Bound, kind: str) -> list[Callable[[], str]]:
        return [lambda name=name: name for name, k in bound.items() if k == kind]  # type: ignore[misc]

    def calls(self, kind: str) -> list[Callable[[], str]]:
        return [lambda name=name: f"{name}({self.state})" for name, k in self.helpers.items() if k == kind]  # type: ignore[misc]

    # -- expressions

    def worker(self, bound: Bound, depth: int) -> str:
        options = self.of_kind(bound, "worker")
        options += [lambda: self.s("who")] * bool(self.has("who"))
        options += [lambda: self.s("row") + ".worker"] * bool(self.has("row"))
        if depth > 0:
            options += [lambda: self.s("holder") + ".value"] * bool(self.has("holder") and self.sometimes(0.1))
            options.append(
                lambda: f"ite({self.boolean(bound, depth - 1)}, {self.worker(bound, 0)}, {self.worker(bound, 0)})"
            )
        return self.choose(options or [lambda: "workers.element(0)"])

    def key(self, bound: Bound, depth: int) -> str:
        return self.choose(self.of_kind(bound, "key") or [lambda: "keys.element(0)"])

    def phase(self, bound: Bound, depth: int) -> str:
        options = [*self.of_kind(bound, "phase"), lambda: f"Phase.{self.random.choice(('idle', 'held', 'down'))}"]
        options += [lambda: self.s("phase")] * bool(self.has("phase"))
        options += [lambda: f"{self.s('at')}[{self.worker(bound, 0)}]"] * bool(self.has("at"))
        return self.choose(options)

    def number(self, bound: Bound, depth: int) -> str:
        options = [*self.of_kind(bound, "number"), *self.of_kind(bound, "level")]
        options += [lambda: self.s(self.random.choice(self.has("n", "m", "level")))] * 2
        options.append(lambda: str(self.random.randint(-1, 2)))
        options += [lambda: f"{self.s('ticks')}[{self.worker(bound, 0)}]"] * bool(self.has("ticks"))
        options += [lambda: f"{self.s('row')}.version"] * bool(self.has("row"))
        options += [lambda: f"{self.s('rows')}[{self.key(bound, 0)}].version"] * bool(self.has("rows"))
        options += self.calls("number")
        if depth > 0:
            options += [
                lambda: f"({self.number(bound, depth - 1)} {self.random.choice('+-')} {self.number(bound, 0)})",
                lambda: f"({self.number(bound, depth - 1)} + 1)",
                lambda: f"ite({self.boolean(bound, depth - 1)}, {self.number(bound, 0)}, {self.number(bound, 0)})",
                lambda: f"({self.number(bound, 0)} if {self.boolean(bound, 0)} else {self.number(bound, 0)})",
                lambda: f"-{self.number(bound, 0)}",
            ]
            if self.loops:
                options += [lambda: self.over("count", bound, depth), lambda: self.extreme(bound, depth)]
            if self.sometimes(0.15) and (names := self.has("seen", "lease")):
                options += [lambda: f"{self.s(names[-1])}.{'value' if names[-1] == 'seen' else 'version'}"]
            if self.has("levels"):
                options.append(lambda: f"{self.s('levels')}[{self.index(bound)}]")
        return self.choose(options)

    def index(self, bound: Bound) -> str:
        """A number that is rather small: it may still lie outside of what it indexes."""
        options = [*self.of_kind(bound, "number"), *self.of_kind(bound, "level"), lambda: "0", lambda: "1"]
        options += [lambda: self.s("n"), lambda: f"{self.s('n')} + 1"]
        options += [lambda: f"{self.s('n')} - 1"] * self.sometimes(0.2)
        options += [lambda: self.s("level")] * bool(self.has("level"))
        return self.choose(options)

    def extreme(self, bound: Bound, depth: int) -> str:
        name, kind = self.fresh_name(), self.random.choice(("worker", "key", "number"))
        body = self.number({**bound, name: kind}, depth - 1)
        return f"{self.random.choice(('lowest', 'highest'))}({KINDS[kind]}, lambda {name}: {body})"

    def over(self, word: str, bound: Bound, depth: int) -> str:
        inner, names, domains = dict(bound), [], []
        for _ in range(1 if word == "at_most_one" or self.sometimes(0.7) else 2):
            name, kind = self.fresh_name(), self.random.choice(tuple(KINDS))
            inner[name] = kind
            names.append(name)
            domains.append(KINDS[kind])
        return f"{word}({', '.join(domains)}, lambda {', '.join(names)}: {self.boolean(inner, depth - 1)})"

    def boolean(self, bound: Bound, depth: int) -> str:
        options = self.of_kind(bound, "boolean")
        options += [lambda: self.s("flag")] * bool(self.has("flag"))
        options += [lambda: f"{self.s('up')}[{self.worker(bound, 0)}]"]
        options += [lambda: f"{self.s('idle')}[{self.worker(bound, 0)}]"] * bool(self.has("idle"))
        options += [lambda: f"{self.s('used')}[{self.key(bound, 0)}]"] * bool(self.has("used"))
        options += [lambda: f"{self.s('may')}[{self.worker(bound, 0)}, {self.key(bound, 0)}]"] * bool(self.has("may"))
        options += [lambda: f"({self.number(bound, 0)} {self.order()} {self.number(bound, depth)})"] * 2
        options += [lambda: f"({self.worker(bound, 0)} {self.equal()} {self.worker(bound, 0)})"]
        options += [lambda: f"({self.phase(bound, 0)} {self.equal()} {self.phase(bound, 0)})"]
        options += [lambda: self.about_an_optional(bound)] * 2
        options += self.calls("boolean")
        options += [lambda: self.random.choice(("switched('storm')", "True"))] * self.sometimes(0.1)
        if not self.in_action and self.has("past"):
            options.append(lambda: f"{self.s('past')}[{self.of_kind(bound, 'number')[0]() if self.of_kind(bound, 'number') else '0'}]")
        if depth > 0:
            options += [
                lambda: f"(not {self.boolean(bound, depth - 1)})",
                lambda: f"({self.boolean(bound, depth - 1)} and {self.boolean(bound, depth - 1)})",
                lambda: f"({self.boolean(bound, depth - 1)} or {self.boolean(bound, depth - 1)})",
                lambda: self.over(self.random.choice(("every", "some", "at_most_one")), bound, depth),
                lambda: f"implies({self.boolean(bound, depth - 1)}, {self.boolean(bound, 0)})",
                lambda: f"implies({self.boolean(bound, depth - 1)}, lambda: {self.boolean(bound, 0)})",
                lambda: f"ite({self.boolean(bound, depth - 1)}, {self.boolean(bound, 0)}, {self.boolean(bound, 0)})",
                lambda: f"({self.number(bound, 0)} <= {self.number(bound, 0)} < {self.number(bound, 0)})",
                lambda: f"({self.boolean(bound, 0)} == {self.boolean(bound, 0)})",
            ]
            if self.loops:
                word, name = self.random.choice(("any", "all")), self.fresh_name()
                options.append(
                    lambda: f"{word}({self.boolean({**bound, name: 'worker'}, 0)} for {name} in workers)"
                )
        return self.choose(options)

    def about_an_optional(self, bound: Bound) -> str:
        """A comparison of an optional or a record, or a guarded use of its value."""
        options: list[Callable[[], str]] = []
        for text, kind in self.optionals(bound):
            value = f"{text}.version" if kind == "lease" else text
            options += [lambda text=text: f"{text}.present"]  # type: ignore[misc]
            options += [lambda text=text: f"({text} {self.equal()} absent)"]  # type: ignore[misc]
            options += [lambda text=text, kind=kind: f"({text} {self.equal()} {self.value(kind, bound)})"]  # type: ignore[misc]
            if kind != "worker":
                options += [
                    lambda text=text, value=value: f"({text}.present and {value} {self.order()} {self.number(bound, 0)})",  # type: ignore[misc]
                    lambda text=text, value=value: f"implies({text}.present, lambda: {value} < {self.number(bound, 0)})",  # type: ignore[misc]
                ]
            others = [other for other, k in self.optionals(bound) if k == kind]
            options += [lambda text=text, other=self.random.choice(others): f"({text} {self.equal()} {other})"]  # type: ignore[misc]
        if self.has("row"):
            options.append(lambda: f"({self.s('row')} {self.equal()} {self.value('lease', bound)})")
        return self.choose(options or [lambda: f"({self.s('n')} > 0)"])

    def optionals(self, bound: Bound) -> list[tuple[str, str]]:
        found = [(name, kind.removeprefix("optional ")) for name, kind in bound.items() if kind.startswith("optional ")]
        found += [(self.s("holder"), "worker")] * bool(self.has("holder"))
        found += [(self.s("seen"), "number")] * bool(self.has("seen"))
        found += [(self.s("lease"), "lease")] * bool(self.has("lease"))
        inside = self.of_kind(bound, "number")
        index = inside[0]() if inside else "0"
        found += [(f"{self.s('log')}[{index}]", "worker")] * bool(self.has("log"))
        found += [(f"{self.s('leases')}[{self.key(bound, 0)}]", "lease")] * bool(self.has("leases"))
        found += [(f"{self.s('seen_at')}[{self.key(bound, 0)}, 0]", "number")] * bool(self.has("seen_at"))
        return found

    def value(self, kind: str, bound: Bound) -> str:
        """A value of a kind that an optional may hold."""
        if kind == "worker":
            return self.worker(bound, 1)
        if kind == "number":
            return self.number(bound, 1)
        options = [lambda: f"Lease(worker={self.worker(bound, 0)}, version={self.number(bound, 1)})", lambda: "NOBODY"]
        options += [lambda: f"{self.s('row')}.changed(version={self.number(bound, 1)})"] * bool(self.has("row"))
        options += [lambda: f"{self.s('rows')}[{self.key(bound, 0)}]"] * bool(self.has("rows"))
        return self.choose(options)

    def optional(self, kind: str, bound: Bound) -> str:
        """What may be assigned to an optional of a kind."""
        own = [text for text, k in self.optionals(bound) if k == kind]
        options = [lambda: "absent", lambda: self.value(kind, bound), lambda: self.value(kind, bound)]
        options += [lambda: self.random.choice(own), lambda: f"ite({self.boolean(bound, 0)}, {self.random.choice(own)}, absent)"]
        options += [lambda: f"({self.value(kind, bound)} if {self.boolean(bound, 0)} else absent)"]
        return self.choose(options)

    def order(self) -> str:
        return self.random.choice(("<", "<=", ">", ">=", "==", "!="))

    def equal(self) -> str:
        return self.random.choice(("==", "!="))

    # -- statements

    def write(self, bound: Bound) -> str:
        """One write to the state."""
        w, k = self.worker(bound, 0), self.key(bound, 0)
        number, boolean = self.number(bound, 2), self.boolean(bound, 1)
        x, y, old = self.fresh_name(), self.fresh_name(), self.fresh_name()
        texts = {
            "n": [f"s.n = {number}", "s.n += 1"],
            "m": [f"s.m = {number}"],
            "level": [f"s.level = {number}", "s.level = s.level - 1"],
            "flag": [f"s.flag = {boolean}"],
            "phase": [f"s.phase = {self.phase(bound, 0)}"],
            "who": [f"s.who = {w}"],
            "holder": [f"s.holder = {self.optional('worker', bound)}"] if self.has("holder") else [],
            "seen": [f"s.seen = {self.optional('number', bound)}"] if self.has("seen") else [],
            "lease": [f"s.lease = {self.optional('lease', bound)}"] if self.has("lease") else [],
            "row": [f"s.row = {self.value('lease', bound)}"],
            "up": [
                f"s.up[{w}] = {boolean}",
                f"s.up.fill({boolean})",
                f"s.up.update_where(lambda {x}, {old}: {self.boolean({**bound, x: 'worker', old: 'boolean'}, 1)})",
            ],
            "idle": [f"s.idle[{w}] = {boolean}", "s.idle = s.up"],
            "ticks": [
                f"s.ticks[{w}] = {number}",
                f"s.ticks.update_where(lambda {x}, {old}: {self.number({**bound, x: 'worker', old: 'number'}, 1)})",
            ],
            "at": [f"s.at[{w}] = {self.phase(bound, 0)}"],
            "log": [f"s.log[{self.index(bound)}] = {self.optional('worker', bound)}"] if self.has("log") else [],
            "levels": [f"s.levels[{self.index(bound)}] = {number}"],
            "used": [f"s.used[{k}] = {boolean}"],
            "leases": [
                f"s.leases[{k}] = {self.optional('lease', bound)}",
                f"s.leases.update_where(lambda {x}, {old}: "
                f"{self.optional('lease', {**bound, x: 'key', old: 'optional lease'})})",
            ]
            if self.has("leases")
            else [],
            "rows": [f"s.rows[{k}] = {self.value('lease', bound)}"],
            "may": [
                f"s.may[{w}, {k}] = {boolean}",
                f"s.may.update_where(lambda {x}, {y}, {old}: "
                f"{self.boolean({**bound, x: 'worker', y: 'key', old: 'boolean'}, 1)})",
            ],
            "seen_at": [f"s.seen_at[{k}, {self.index(bound)}] = {self.optional('number', bound)}"]
            if self.has("seen_at")
            else [],
            "past": ["s.past[s.n] = True"],
        }
        return self.random.choice([text for name in self.variables for text in texts[name]] or ["pass"])

    def block(self, bound: Bound, depth: int, indent: str, *, guards: str) -> list[str]:
        """Some statements. `guards` is empty, ``when``, or ``refuse`` for both."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            draw = self.random.random()
            if draw < 0.2:
                lines += self.guard(bound, indent, guards)
            elif draw < 0.55 and depth > 0:
                lines += self.branch(bound, depth, indent, guards)
            elif draw < 0.59:
                name, w = self.fresh_name(), self.worker(bound, 0)
                lines += [f"{indent}{name} = s.up", f"{indent}{name}[{w}] = {self.boolean(bound, 1)}"]
            else:
                lines.append(f"{indent}{self.write(bound)}")
        return lines

    def guard(self, bound: Bound, indent: str, guards: str) -> list[str]:
        condition = self.boolean(bound, 2)
        if guards == "refuse" and self.sometimes(0.6):
            return [f'{indent}refuse_unless({condition}, "{self.random.choice(self.codes)}")']
        return [f"{indent}when({condition})"] if guards else [f"{indent}{self.write(bound)}"]

    def branch(self, bound: Bound, depth: int, indent: str, guards: str) -> list[str]:
        draw, inner, name = self.random.random(), indent + "    ", self.fresh_name()
        if draw < 0.15:
            return [f"{indent}if {self.boolean(bound, 1)}:", f"{inner}return"]
        if draw < 0.3:
            loop = [f"{indent}for {name} in (0, 1):"]
            return loop + self.block({**bound, name: "level"}, 0, inner, guards="")
        if draw < 0.5 and self.loops:
            loop = [f"{indent}for {name} in workers:"]
            return loop + self.block({**bound, name: "worker"}, 0, inner, guards="")
        lines = [f"{indent}if {self.boolean(bound, 1)}:", *self.block(bound, depth - 1, inner, guards=guards)]
        if self.sometimes(0.4):
            lines += [f"{indent}elif {self.boolean(bound, 1)}:", *self.block(bound, 0, inner, guards="")]
        if self.sometimes(0.4):
            lines += [f"{indent}else:", *self.block(bound, 0, inner, guards="")]
        return lines

    # -- functions

    def helper(self) -> str:
        name, kind = f"helper_{len(self.helpers)}", self.random.choice(("boolean", "number"))
        give = self.boolean if kind == "boolean" else self.number
        lines = [f"if {self.boolean({}, 1)}:", f"    return {give({}, 1)}", f"return {give({}, 1)}"]
        text = f"\n\n@derived\ndef {name}(s):\n" + "".join(f"    {line}\n" for line in lines)
        self.helpers[name] = kind
        return text

    def action(self, number: int) -> str:
        parameters: dict[str, tuple[str, str]] = {}
        for _ in range(self.random.choice((0, 1, 1, 2))):
            kind = self.random.choice(("worker", "worker", "key", "number", "level", "boolean", "phase", "fresh"))
            unless = self.has("used", "leases")
            if kind == "fresh" and unless:
                self.names_fresh = True
                parameters["fresh_key"] = ("key", f'p.fresh(keys, unless="{self.random.choice(unless)}")')
            elif kind == "boolean":
                parameters["yes"] = ("boolean", "BOOLEAN")
            elif kind != "fresh":
                parameters[f"the_{kind}"] = (kind, KINDS[kind])
        bound = {name: kind for name, (kind, _) in parameters.items()}
        domains = "".join(f", {name}={domain}" for name, (_, domain) in parameters.items())
        takes = "".join(f", {name}" for name in parameters)
        operation = self.sometimes(0.5)
        switch = ', switch="storm"' if self.sometimes(0.1) else ""
        text, answered = "", ""
        if operation and self.sometimes(0.6):
            lines = ["    if answer == Answer.ok:", *self.block(bound, 0, "        ", guards="")]
            lines += [*self.block(bound, 0, "    ", guards="")]
            text = f"\n\ndef learn_{number}(s{takes}, answer):\n" + "".join(f"{line}\n" for line in lines)
            answered = f", answered=learn_{number}"
        if operation:
            text += f'\n\n@p.operation("worker", home="store"{answered}{switch}{domains})\n'
        else:
            text += f'\n\n@p.action("{self.random.choice(("worker", "world"))}"{switch}{domains})\n'
        body = self.block(bound, 1, "    ", guards="refuse" if operation else "when")
        body += self.block(bound, 1, "    ", guards="refuse" if operation else "when")
        return text + f"def act_{number}(s{takes}):\n" + "".join(f"{line}\n" for line in body)

    def claim(self, number: int) -> str:
        # A literal element breaks the symmetry on which "the smallest unused" rests, so can_move would differ.
        extra = " or can_move(s, 'worker')" if number == 0 and self.sometimes(0.5) and not self.names_fresh else ""
        return f"\n\ndef claim_{number}(s):\n    return {self.boolean({}, 2)}{extra}\n"

    def step_claim(self, number: int) -> str:
        halves = []
        for state in ("before", "after", "after"):
            self.state = state
            halves.append(self.boolean({}, 1))
        self.state = "s"
        about = self.random.choice(("step.refused", "step.outcome == 'taken'", "step.outcome != 'ok'", "step.action == 'act_0'"))
        return (
            f"\n\ndef step_claim_{number}(before, after, step):\n"
            f"    return ({about}) or ({halves[0]}) or not ({halves[1]}) or after.n != before.n and {halves[2]}\n"
        )
