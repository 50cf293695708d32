"""Random expressions over random state variables, as source text in the modelling language."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

KINDS: dict[str, str] = {
    "worker": "workers",
    "key": "keys",
    "number": "versions",
    "level": "small",
    "phase": "Phase",
}
"""What a bound variable can be, and the domain it ranges over."""

Bound = Mapping[str, str]
"""Names in sight that are no state variables, with their kinds."""


def always(text: str) -> Callable[[], str]:
    return lambda: text


class Expressions:
    """Writes random expressions about some state variables; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[str] = []
        self.helpers: dict[str, str] = {}
        self.names = 0
        self.state = "s"
        self.loops = False
        self.in_action = False
        self.takes_fresh = False

    def has(self, *names: str) -> list[str]:
        return [name for name in names if name in self.variables]

    def has_by_key(self, name: str, bound: Bound) -> bool:
        """Whether there is a family over keys, and a key in sight: none is named where ids are fresh."""
        return bool(self.has(name)) and (not self.takes_fresh or "key" in bound.values())

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
        return [always(name) for name, k in bound.items() if k == kind]

    def calls(self, kind: str) -> list[Callable[[], str]]:
        names = [name for name, k in self.helpers.items() if k == kind]
        return [always(f"{name}({self.state})") for name in names]

    # -- expressions

    def worker(self, bound: Bound, depth: int) -> str:
        options = self.of_kind(bound, "worker")
        options += [lambda: self.s("who")] * bool(self.has("who"))
        options += [lambda: self.s("row") + ".worker"] * bool(self.has("row"))
        if depth > 0:
            options += [lambda: self.s("holder") + ".value"] * bool(
                self.has("holder") and self.sometimes(0.3)
            )
            options.append(
                lambda: (
                    f"ite({self.boolean(bound, depth - 1)}, {self.worker(bound, 0)}, {self.worker(bound, 0)})"
                )
            )
        return self.choose(options or [lambda: "workers.element(0)"])

    def key(self, bound: Bound, _depth: int) -> str:
        return self.choose(self.of_kind(bound, "key") or [lambda: "keys.element(0)"])

    def phase(self, bound: Bound, _depth: int) -> str:
        options = [
            *self.of_kind(bound, "phase"),
            lambda: f"Phase.{self.random.choice(('idle', 'held', 'down'))}",
        ]
        options += [lambda: self.s("phase")] * bool(self.has("phase"))
        options += [lambda: f"{self.s('at')}[{self.worker(bound, 0)}]"] * bool(self.has("at"))
        return self.choose(options)

    def number(self, bound: Bound, depth: int) -> str:
        options = [*self.of_kind(bound, "number"), *self.of_kind(bound, "level")]
        options += [lambda: self.s(self.random.choice(self.has("n", "m", "level")))] * 2
        options.append(lambda: str(self.random.randint(-1, 2)))
        options += [lambda: f"{self.s('ticks')}[{self.worker(bound, 0)}]"] * bool(self.has("ticks"))
        options += [lambda: f"{self.s('row')}.version"] * bool(self.has("row"))
        options += [lambda: f"{self.s('rows')}[{self.key(bound, 0)}].version"] * self.has_by_key(
            "rows", bound
        )
        options += self.calls("number")
        if depth > 0:
            options += [
                lambda: (
                    f"({self.number(bound, depth - 1)} {self.random.choice('+-')} {self.number(bound, 0)})"
                ),
                lambda: f"({self.number(bound, depth - 1)} + 1)",
                lambda: (
                    f"ite({self.boolean(bound, depth - 1)}, {self.number(bound, 0)}, {self.number(bound, 0)})"
                ),
                lambda: f"({self.number(bound, 0)} if {self.boolean(bound, 0)} else {self.number(bound, 0)})",
                lambda: f"-{self.number(bound, 0)}",
            ]
            if self.loops:
                options += [lambda: self.over("count", bound, depth), lambda: self.extreme(bound, depth)]
            if self.sometimes(0.4) and (names := self.has("seen", "lease")):
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
        options += [lambda: f"{self.s('used')}[{self.key(bound, 0)}]"] * self.has_by_key("used", bound)
        options += [
            lambda: f"{self.s('may')}[{self.worker(bound, 0)}, {self.key(bound, 0)}]"
        ] * self.has_by_key("may", bound)
        options += [lambda: f"({self.number(bound, 0)} {self.order()} {self.number(bound, depth)})"] * 2
        options += [lambda: f"({self.worker(bound, 0)} {self.equal()} {self.worker(bound, 0)})"]
        options += [lambda: f"({self.phase(bound, 0)} {self.equal()} {self.phase(bound, 0)})"]
        options += [lambda: self.about_an_optional(bound)] * 2
        options += self.calls("boolean")
        options += [lambda: self.random.choice(("switched('storm')", "True"))] * self.sometimes(0.1)
        if not self.in_action and self.has("past"):
            options.append(lambda: f"{self.s('past')}[{self.a_version(bound)}]")
        if depth > 0:
            options += [
                lambda: f"(not {self.boolean(bound, depth - 1)})",
                lambda: f"({self.boolean(bound, depth - 1)} and {self.boolean(bound, depth - 1)})",
                lambda: f"({self.boolean(bound, depth - 1)} or {self.boolean(bound, depth - 1)})",
                lambda: self.over(self.random.choice(("every", "some", "at_most_one")), bound, depth),
                lambda: f"implies({self.boolean(bound, depth - 1)}, {self.boolean(bound, 0)})",
                lambda: f"implies({self.boolean(bound, depth - 1)}, lambda: {self.boolean(bound, 0)})",
                lambda: self.choice(
                    self.boolean(bound, depth - 1), self.boolean(bound, 0), self.boolean(bound, 0)
                ),
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
        found = self.optionals(bound)
        if self.has("row") and (not found or self.sometimes(0.2)):
            return f"({self.s('row')} {self.equal()} {self.value('lease', bound)})"
        if not found:
            return f"({self.s('n')} > 0)"
        text, kind = self.random.choice(found)
        number = f"{text}.version" if kind == "lease" else text
        options = [f"{text}.present", f"({text} {self.equal()} absent)"]
        options.append(f"({text} {self.equal()} {self.value(kind, bound)})")
        options.append(f"({text} {self.equal()} {self.random.choice([o for o, k in found if k == kind])})")
        if kind != "worker":
            options.append(f"({text}.present and {number} {self.order()} {self.number(bound, 0)})")
            options.append(f"implies({text}.present, lambda: {number} < {self.number(bound, 0)})")
        return self.random.choice(options)

    def optionals(self, bound: Bound) -> list[tuple[str, str]]:
        found = [
            (name, kind.removeprefix("optional "))
            for name, kind in bound.items()
            if kind.startswith("optional ")
        ]
        found += [(self.s("holder"), "worker")] * bool(self.has("holder"))
        found += [(self.s("seen"), "number")] * bool(self.has("seen"))
        found += [(self.s("lease"), "lease")] * bool(self.has("lease"))
        found += [(f"{self.s('log')}[{self.a_version(bound)}]", "worker")] * bool(self.has("log"))
        found += [(f"{self.s('leases')}[{self.key(bound, 0)}]", "lease")] * self.has_by_key("leases", bound)
        found += [(f"{self.s('seen_at')}[{self.key(bound, 0)}, 0]", "number")] * self.has_by_key(
            "seen_at", bound
        )
        return found

    def value(self, kind: str, bound: Bound) -> str:
        """A value of a kind that an optional may hold."""
        if kind == "worker":
            return self.worker(bound, 1)
        if kind == "number":
            return self.number(bound, 1)
        options = [
            lambda: f"Lease(worker={self.worker(bound, 0)}, version={self.number(bound, 1)})",
            lambda: "NOBODY",
        ]
        options += [lambda: f"{self.s('row')}.changed(version={self.number(bound, 1)})"] * bool(
            self.has("row")
        )
        options += [lambda: f"{self.s('rows')}[{self.key(bound, 0)}]"] * self.has_by_key("rows", bound)
        return self.choose(options)

    def optional(self, kind: str, bound: Bound) -> str:
        """What may be assigned to an optional of a kind."""
        own = [text for text, k in self.optionals(bound) if k == kind]
        options = [lambda: "absent", lambda: self.value(kind, bound), lambda: self.value(kind, bound)]
        options += [
            lambda: self.random.choice(own),
            lambda: f"ite({self.boolean(bound, 0)}, {self.random.choice(own)}, absent)",
        ]
        options += [lambda: f"({self.value(kind, bound)} if {self.boolean(bound, 0)} else absent)"]
        return self.choose(options)

    def order(self) -> str:
        return self.random.choice(("<", "<=", ">", ">=", "==", "!="))

    def equal(self) -> str:
        return self.random.choice(("==", "!="))

    def choice(self, *parts: str) -> str:
        return f"ite({', '.join(parts)})"

    def a_version(self, bound: Bound) -> str:
        """An index of versions that always lies inside."""
        inside = self.of_kind(bound, "number")
        return inside[0]() if inside else "0"
