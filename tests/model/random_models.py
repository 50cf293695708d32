"""Random small protocols, as source text in the modelling language, for the test that all readings agree."""

from __future__ import annotations

from .random_expressions import KINDS, Bound, Expressions

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

STIRS: dict[str, str] = {
    "n": '@p.action("world", v=versions)\ndef set_n(s, v):\n    s.n = v',
    "level": '@p.action("world", v=small)\ndef set_level(s, v):\n    s.level = v',
    "flag": '@p.action("world")\ndef turn_flag(s):\n    s.flag = not s.flag',
    "phase": '@p.action("world", f=Phase)\ndef set_phase(s, f):\n    when(f != s.phase)\n    s.phase = f',
    "who": '@p.action("world", w=workers)\ndef set_who(s, w):\n    s.who = w',
    "holder": '@p.action("world", w=workers, yes=BOOLEAN)\ndef set_holder(s, w, yes):\n'
    "    s.holder = w if yes else absent",
    "seen": '@p.action("world", v=versions, yes=BOOLEAN)\ndef set_seen(s, v, yes):\n'
    "    s.seen = ite(yes, v, s.seen)",
    "lease": '@p.action("world", w=workers, v=versions)\ndef set_lease(s, w, v):\n'
    "    s.lease = Lease(worker=w, version=v)",
    "up": '@p.action("world", w=workers)\ndef turn_up(s, w):\n    s.up[w] = not s.up[w]',
    "ticks": '@p.action("world", w=workers)\ndef tick(s, w):\n    s.ticks[w] += 1',
    "at": '@p.action("world", w=workers, f=Phase)\ndef set_at(s, w, f):\n    s.at[w] = f',
    "log": '@p.action("world", v=versions, w=workers)\ndef set_log(s, v, w):\n    s.log[v] = w',
    "leases": '@p.action("world", k=keys, w=workers)\ndef set_leases(s, k, w):\n'
    "    s.leases[k] = Lease(worker=w, version=s.n)",
    "rows": '@p.action("world", k=keys, v=versions)\ndef set_rows(s, k, v):\n'
    "    s.rows[k] = s.rows[k].changed(version=v)",
    "may": '@p.action("world", w=workers, k=keys)\ndef turn_may(s, w, k):\n    s.may[w, k] = not s.may[w, k]',
}
"""Actions that only stir: without them most random models would soon stand still."""


class Writer(Expressions):
    """Writes one random model; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        pick = self.random
        self.variables = [n for n in VARIABLES if pick.random() < 0.45 or n in ("n", "up", "used")]
        self.loops = pick.random() < 0.3
        self.codes = ("taken", "stale")
        self.takes_fresh = pick.random() < 0.4
        self.actors: set[str] = set()

    def model(self) -> str:
        """The whole text."""
        pick = self.random
        parts = [HEAD, *(f"{text}\n" for name, text in VARIABLES.items() if name in self.variables)]
        self.in_action = True
        parts += [self.helper() for _ in range(pick.randint(0, 2))]
        parts += [self.action(i) for i in range(pick.randint(2, 4))]
        stirred = [name for name in STIRS if name in self.variables]
        parts += [f"\n\n{STIRS[name]}\n" for name in pick.sample(stirred, min(len(stirred), 2))]
        self.in_action = False
        parts += [self.claim(i) for i in range(3)]
        parts += [self.step_claim(i) for i in range(2)]
        switch = pick.choice(("storm", "calm"))
        sizes = f'{{"worker": {pick.randint(1, 2)}, "key": {pick.randint(1, 2)}}}'
        bounds = f'{{"version": {pick.randint(1, 2)}}}'
        parts.append(f'\n\nSIZES, BOUNDS, SWITCHES = {sizes}, {bounds}, frozenset({{"{switch}"}})\n')
        return "".join(parts)

    def write(self, bound: Bound) -> str:
        """One write to the state."""
        w, k = self.worker(bound, 0), self.key(bound, 0)
        number, boolean = self.number(bound, 2), self.boolean(bound, 1)
        x, y, old = self.fresh_name(), self.fresh_name(), self.fresh_name()
        of_worker_boolean, of_worker_number = ({**bound, x: "worker", old: k} for k in ("boolean", "number"))
        of_key_lease = {**bound, x: "key", old: "optional lease"}
        of_both = {**bound, x: "worker", y: "key", old: "boolean"}
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
                f"s.up.update_where(lambda {x}, {old}: {self.boolean(of_worker_boolean, 1)})",
            ],
            "idle": [f"s.idle[{w}] = {boolean}", "s.idle = s.up"],
            "ticks": [
                f"s.ticks[{w}] = {number}",
                f"s.ticks.update_where(lambda {x}, {old}: {self.number(of_worker_number, 1)})",
            ],
            "at": [f"s.at[{w}] = {self.phase(bound, 0)}"],
            "log": [f"s.log[{self.index(bound)}] = {self.optional('worker', bound)}"]
            if self.has("log")
            else [],
            "levels": [f"s.levels[{self.index(bound)}] = {number}"],
            "used": [f"s.used[{k}] = {boolean}"],
            "leases": [
                f"s.leases[{k}] = {self.optional('lease', bound)}",
                f"s.leases.update_where(lambda {x}, {old}: {self.optional('lease', of_key_lease)})",
            ]
            if self.has_by_key("leases", bound)
            else [],
            "rows": [f"s.rows[{k}] = {self.value('lease', bound)}"],
            "may": [
                f"s.may[{w}, {k}] = {boolean}",
                f"s.may.update_where(lambda {x}, {y}, {old}: {self.boolean(of_both, 1)})",
            ],
            "seen_at": [f"s.seen_at[{k}, {self.index(bound)}] = {self.optional('number', bound)}"]
            if self.has_by_key("seen_at", bound)
            else [],
            "past": ["s.past[s.n] = True"],
        }
        own = [text for name in self.variables for text in texts[name]]
        return self.random.choice([x for x in own if not self.takes_fresh or "keys.element" not in x])

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
            kind = self.random.choice(
                ("worker", "worker", "key", "number", "level", "boolean", "phase", "fresh")
            )
            unless = self.has("used", "leases")
            if kind == "fresh" and self.takes_fresh:
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
            self.actors.add("worker")
            text += f'\n\n@p.operation("worker", home="store"{answered}{switch}{domains})\n'
        else:
            actor = self.random.choice(("worker", "world"))
            self.actors.add(actor)
            text += f'\n\n@p.action("{actor}"{switch}{domains})\n'
        body = self.block(bound, 1, "    ", guards="refuse" if operation else "when")
        body += self.block(bound, 1, "    ", guards="refuse" if operation else "when")
        return text + f"def act_{number}(s{takes}):\n" + "".join(f"{line}\n" for line in body)

    def claim(self, number: int) -> str:
        # Unused ids are meant to be alike, so the smallest stands for all. Here they may not be: random moves
        # write about ids nobody took. `can_move` asks about any of them, a run about the smallest.
        asks = number == 0 and self.sometimes(0.7) and not self.takes_fresh
        actor = "worker" if "worker" in self.actors else "world"
        extra = f" or can_move(s, '{actor}')" if asks else ""
        return f"\n\ndef claim_{number}(s):\n    return {self.boolean({}, 2)}{extra}\n"

    def step_claim(self, number: int) -> str:
        halves = []
        for state in ("before", "after", "after"):
            self.state = state
            halves.append(self.boolean({}, 1))
        self.state = "s"
        about = self.random.choice(
            ("step.refused", "step.outcome == 'taken'", "step.outcome != 'ok'", "step.action == 'act_0'")
        )
        return (
            f"\n\ndef step_claim_{number}(before, after, step):\n"
            f"    return ({about}) or ({halves[0]}) or not ({halves[1]})"
            f" or after.n != before.n and {halves[2]}\n"
        )
