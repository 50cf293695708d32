"""What the language forbids: each misuse is an error that names the user's line and says what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from fencepost.model import ModelError, PathLimitError, Protocol, refuse_unless, when
from fencepost.model.core import core
from fencepost.model.language import Cut, Disabled, Fault, Refused
from fencepost.model.trace import trace_action, trace_claim
from fencepost.properties.core import CORE

from .support import Model, assert_names_the_line, benchmark_lease


class Case(NamedTuple):
    """A model, with a mark on the line that is wrong, and words that the error must contain."""

    name: str
    text: str
    words: tuple[str, ...]


def action(*lines: str, parameters: str = "", before: str = "") -> str:
    """The text of an action `act`; `parameters` as in ``w=workers``."""
    names = [part.split("=")[0].strip() for part in parameters.split(",") if part]
    head = f'@p.action("worker"{", " if parameters else ""}{parameters})\ndef act({", ".join(["s", *names])}):\n'
    return (f"{before}\n\n" if before else "") + head + "".join(f"    {line}\n" for line in lines)


def claim(*lines: str) -> str:
    return "def claim(s):\n" + "".join(f"    {line}\n" for line in lines)


HERE = "# <- here"

IN_THE_TEXT = (
    Case("is", action(f"when(s.phase is Phase.idle)  {HERE}"), ("`is`", "compare with ==")),
    Case("is not", action(f"when(s.phase is not Phase.idle)  {HERE}"), ("`is`", "compare with ==")),
    Case("is None", action("when(s.flag)", f"when(s.holder is None)  {HERE}"), ("`is None`", "x.present")),
    Case("is not None", action(f"when(s.holder is not None)  {HERE}"), ("`is None`", "x.present")),
    Case("== None", action(f"when(s.holder == None)  {HERE}"), ("None", "x.present")),
    Case("None !=", action(f"when(None != s.holder)  {HERE}"), ("None", "x.present")),
    Case(
        "is in a long condition",
        action("when(", "    s.flag", f"    and s.holder is None  {HERE}", "    and s.n == 0", ")"),
        ("`is None`", "x.present"),
    ),
    Case("case None", action("match s.holder:", f"    case None:  {HERE}", "        s.n = 1"), ("case None", "x.present")),
    Case("case True", action("match s.flag:", f"    case True:  {HERE}", "        s.n = 1"), ("case True", "==")),
    Case(
        "a class pattern",
        action("match s.n:", f"    case int():  {HERE}", "        s.n = 1"),
        ("class pattern", "compare with =="),
    ),
    Case(
        "a sequence pattern",
        action("match s.n:", f"    case [_, _]:  {HERE}", "        s.n = 1"),
        ("sequence pattern", "compare with =="),
    ),
    Case(
        "a mapping pattern",
        action("match s.n:", f"    case {{}}:  {HERE}", "        s.n = 1"),
        ("mapping pattern", "compare"),
    ),
    Case("isinstance", action(f"when(isinstance(s.n, int))  {HERE}"), ("isinstance()", "x.present")),
    Case("type", action(f"when(type(s.n) == int)  {HERE}"), ("type()", "x.present")),
    Case("callable", action(f"when(callable(s.n))  {HERE}"), ("callable()", "compare with ==")),
    Case("while", action(f"while s.n < 2:  {HERE}", "    s.n = s.n + 1"), ("`while`", "one action")),
    Case(
        "finally",
        action(f"try:  {HERE}", "    when(s.flag)", "finally:", "    s.n = 1"),
        ("`finally`", "after the guards"),
    ),
    Case(
        "except Exception",
        action("try:", "    when(s.flag)", f"except Exception:  {HERE}", "    s.n = 1"),
        ("`except`", "guards are no errors"),
    ),
    Case(
        "a bare except",
        action("try:", "    when(s.flag)", f"except:  {HERE}", "    s.n = 1"),
        ("`except`", "guards are no errors"),
    ),
    Case(
        "except of one kind",
        action("try:", "    s.n = s.unknown", f"except ModelError:  {HERE}", "    s.n = 1"),
        ("`except`", "remove it"),
    ),
    Case("a mutable global", action(f"when(s.n == limits[0])  {HERE}", before="limits = [1]"), ("mutable list 'limits'", "tuple")),
    Case("a dict", action(f"when(s.n == limits['n'])  {HERE}", before="limits = {'n': 1}"), ("mutable dict", "tuple")),
    Case(
        "an iterator",
        action(f"s.n = next(numbers)  {HERE}", before="numbers = iter((1, 2, 3))"),
        ("mutable tuple_iterator 'numbers'", "tuple"),
    ),
    Case(
        "an open object",
        action(f"when(s.n < config.most)  {HERE}", before="class Config:\n    most = 1\n\n\nconfig = Config()"),
        ("mutable Config 'config'", "frozen dataclass"),
    ),
    Case(
        "a mutable class attribute",
        action(f"when(s.n == Config.limits[0])  {HERE}", before="class Config:\n    limits = [1]"),
        ("mutable list 'Config.limits'", "tuple"),
    ),
    Case(
        "a mutable closure",
        "def make(limits):\n"
        '    @p.action("worker")\n'
        "    def act(s):\n"
        "        when(s.flag)\n"
        f"        when(s.n == limits[0])  {HERE}\n\n\n"
        "make([1])\n",
        ("mutable list 'limits'", "state variable"),
    ),
    Case(
        "a mutable default",
        "def helper(s, seen=[]):  # <- here\n    return s.flag\n\n\n" + action("when(helper(s))"),
        ("mutable default", "tuple"),
    ),
    Case("len", action(f"when(len(s.up) == 2)  {HERE}"), ("len()", "count(")),
    Case("hash", action(f"when(hash(s.n) == 2)  {HERE}"), ("hash()", "compare with ==")),
    Case("a set", action(f"when(s.phase in set(Phase.members))  {HERE}"), ("set()", "boolean family")),
    Case("min", action(f"s.n = min(s.n, s.m)  {HERE}"), ("min()", "lowest(", "ite(")),
    Case("max", action(f"s.n = max(s.n, s.m)  {HERE}"), ("max()", "highest(", "ite(")),
    Case("sorted", action(f"s.n = sorted((s.n, s.m))[0]  {HERE}"), ("sorted()", "lowest")),
    Case("sum", action(f"s.n = sum(1 for w in workers if s.up[w])  {HERE}"), ("sum()", "count(")),
    Case("min by another name", action(f"s.n = least(s.n, s.m)  {HERE}", before="least = min"), ("min()", "ite(")),
    Case("len as a value", action(f"when(any(map(len, (s.up,))))  {HERE}"), ("len()", "count(")),
    Case("int", action(f"s.n = int(s.flag)  {HERE}"), ("int()", "value itself")),
    Case("bool", action(f"s.flag = bool(s.n)  {HERE}"), ("bool()", "value itself")),
    Case("str", action(f"when(str(s.n) == '0')  {HERE}"), ("str()", "value itself")),
    Case("an f-string", action(f"when(f'{{s.n}}' == '0')  {HERE}"), ("f-string", "value itself")),
    Case("getattr", action(f"when(getattr(s, 'flag'))  {HERE}"), ("getattr()", "s.name")),
    Case("setattr", action(f"setattr(s, 'flag', True)  {HERE}"), ("setattr()", "s.name = ")),
    Case("print", action(f"print(s.n)  {HERE}"), ("print()", "simulate")),
    Case("&", action(f"when(s.flag & s.up[s.who])  {HERE}"), ("bitwise", "`and`")),
    Case("|", action(f"when(s.flag | s.up[s.who])  {HERE}"), ("bitwise", "`or`")),
    Case("|=", action(f"s.flag |= s.up[s.who]  {HERE}"), ("bitwise", "`or`")),
    Case("~", action(f"when(~s.flag)  {HERE}"), ("`~`", "`not`")),
    Case("walrus", action(f"when((n := s.n) == 0)  {HERE}"), (":=", "line of its own")),
    Case("with", action(f"with s.flag:  {HERE}", "    s.n = 1"), ("`with`", "remove it")),
    Case("global", action(f"global count_  {HERE}", "count_ = 1"), ("`global`", "state variable")),
    Case(
        "nonlocal",
        "def make():\n"
        "    calls = 0\n\n"
        '    @p.action("worker")\n'
        "    def act(s):\n"
        f"        nonlocal calls  {HERE}\n"
        "        calls = calls + 1\n\n\n"
        "make()\n",
        ("`nonlocal`", "state variable"),
    ),
    Case("assert", action(f"assert s.flag  {HERE}"), ("`assert`", "when(")),
    Case("raise", action("if s.flag:", f"    raise ValueError  {HERE}"), ("`raise`", "refuse_unless")),
    Case("del", action(f"del s.flag  {HERE}"), ("`del`", "assign a value")),
    Case("yield", action(f"yield s.flag  {HERE}"), ("no yield", "action of its own")),
    Case("an import", action(f"import os  {HERE}", "when(os.sep == '/')"), ("import inside", "top of the file")),
    Case("a slice", action(f"when(s.up[:1])  {HERE}"), ("slice", "update_where")),
    Case("time", action(f"when(time.time() > 0)  {HERE}"), ("module time", "parameter of the action")),
    Case("random", action(f"s.n = random.randint(0, 2)  {HERE}"), ("module random", "parameter of the action")),
    Case("a clock by its name", action(f"when(monotonic() > 0)  {HERE}"), ("monotonic of the module time", "parameter")),
    Case("operator.is_", action(f"when(operator.is_(s.phase, Phase.idle))  {HERE}"), ("is_()", "compare with ==")),
    Case(
        "a helper of a helper",
        f"def inner(s):\n    return s.holder is None  {HERE}\n\n\ndef outer(s):\n    return inner(s)\n\n\n"
        + action("when(outer(s))"),
        ("`is None`", "x.present"),
    ),
    Case(
        "a derived helper",
        f"@derived\ndef inner(s):\n    return s.holder is None  {HERE}\n\n\n" + action("when(inner(s))"),
        ("`is None`", "x.present"),
    ),
    Case(
        "a static method",
        f"class Rules:\n    @staticmethod\n    def free(s):\n        return s.holder is None  {HERE}\n\n\n"
        + action("when(Rules.free(s))"),
        ("`is None`", "x.present"),
    ),
    Case(
        "a helper that is a lambda",
        f"other = lambda s: s.flag\nfree = lambda s: s.holder is None  {HERE}\n\n\n" + action("when(free(s))"),
        ("`is None`", "x.present"),
    ),
    Case(
        "the second lambda of two in a line",
        f"other, free = (lambda s: s.flag), (lambda s: s.holder is None)  {HERE}\n\n\n" + action("when(free(s))"),
        ("`is None`", "x.present"),
    ),
    Case(
        "a helper that is a partial call",
        f"def held_by(s, w):\n    return s.holder is w  {HERE}\n\n\n"
        "mine = functools.partial(held_by, w=1)\n\n\n" + action("when(mine(s))"),
        ("`is`", "compare with =="),
    ),
    Case(
        "a helper in a closure",
        "def make():\n"
        "    def free(s):\n"
        f"        return s.holder is None  {HERE}\n\n"
        '    @p.action("worker")\n'
        "    def act(s):\n"
        "        when(free(s))\n\n\n"
        "make()\n",
        ("`is None`", "x.present"),
    ),
    Case(
        "a lambda inside",
        action("when(", "    every(", "        workers,", f"        lambda w: s.holder is None,  {HERE}", "    )", ")"),
        ("`is None`", "x.present"),
    ),
    Case(
        "a function inside",
        action("def free():", f"    return s.holder is None  {HERE}", "", "when(free())"),
        ("`is None`", "x.present"),
    ),
    Case(
        "what becomes of an answer",
        f'def learn(s, answer):\n    s.flag = answer is Answer.ok  {HERE}\n\n\n'
        '@p.operation("worker", home="store", answered=learn)\ndef act(s):\n    s.n = 1\n',
        ("`is`", "compare with =="),
    ),
    Case(
        "text that is not indented",
        action('s.kept = 0  # a long text: """', '"""', "starts at the margin", '"""', f"when(s.holder is None)  {HERE}").replace(
            "    starts", "starts"
        ),
        ("`is None`", "x.present"),
    ),
    Case("a claim", claim(f"return s.holder is None  {HERE}"), ("`is None`", "x.present")),
)


@pytest.mark.parametrize("case", IN_THE_TEXT, ids=[c.name for c in IN_THE_TEXT])
def test_what_operators_cannot_see_is_found_in_the_text_by_each_reading(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    for reading in (model.trace, model.run):
        with pytest.raises(ModelError) as caught:
            reading()
        assert_names_the_line(model, caught.value, *case.words)


IN_THE_VALUES = (
    Case("the truth of a number", action(f"when(s.n)  {HERE}"), ("truth of n", "== 0")),
    Case("the truth of a number in if", action(f"if s.n:  {HERE}", "    s.flag = True"), ("truth of n", "== 0")),
    Case("the truth of a number in and", action(f"when(s.flag and s.n)  {HERE}"), ("truth of n", "== 0")),
    Case("the truth of a member", action(f"when(not s.phase)  {HERE}"), ("truth of phase", "== Some.member")),
    Case("the truth of an element", action(f"when(s.who)  {HERE}"), ("truth of who", "compare it")),
    Case("the truth of a parameter", action(f"when(w)  {HERE}", parameters="w=workers"), ("truth of", "compare it")),
    Case("the truth of an optional", action(f"when(s.holder)  {HERE}"), ("truth of an optional", "x.present")),
    Case("the truth of a record", action(f"when(s.lease.present and s.lease.value)  {HERE}"), ("truth of a Lease", "==")),
    Case("the truth of a family", action(f"when(s.up)  {HERE}"), ("truth of the family up", "every")),
    Case("the truth of absent", action(f"when(s.flag and not absent)  {HERE}"), ("truth of absent", "x.present")),
    Case("range(x)", action(f"for i in range(s.n):  {HERE}", "    s.m = i"), ("Python number", "s.family[x]")),
    Case("tuple[x]", action(f"s.n = (0, 1, 2)[s.n]  {HERE}"), ("Python number", "s.family[x]")),
    Case("membership of a set", action(f"when(s.phase in {{Phase.idle}})  {HERE}"), ("hash", "compare with ==")),
    Case("a key of a dict", action(f"s.n = {{Phase.idle: 1}}[s.phase]  {HERE}"), ("hash", "compare with ==")),
    Case("hash of an optional", action(f"when({{s.holder: True}} == {{}})  {HERE}"), ("hash", "compare with ==")),
    Case("in a family", action(f"when(s.phase in s.at)  {HERE}"), ("`in`", "some(")),
    Case("a loop over a family", action(f"for x in s.up:  {HERE}", "    s.n = 1"), ("a loop over", "every / some / count")),
    Case("str.format", action(f"when('{{}}'.format(s.n) == '0')  {HERE}"), ("f-string", "value itself")),
    Case("text with %", action(f"when('%s' % s.n == '0')  {HERE}"), ("the text of", "value itself")),
    Case("a product", action(f"s.n = s.n * 2  {HERE}"), ("*", "only + and -")),
    Case("a power", action(f"s.n = s.n ** 2  {HERE}"), ("*", "only + and -")),
    Case("a quotient", action(f"s.n = s.n // 2  {HERE}"), ("division", "only + and -")),
    Case("a remainder", action(f"s.n = 7 % s.n  {HERE}"), ("division", "only + and -")),
    Case("an order of members", action(f"when(s.phase < Phase.held)  {HERE}"), ("not a number", "== and !=")),
    Case("an order of elements", action(f"when(s.who < w)  {HERE}", parameters="w=workers"), ("not a number", "== and !=")),
    Case("kinds mixed", action(f"when(s.who == s.n)  {HERE}"), ("worker", "number")),
    Case("a number for a boolean", action(f"when(s.flag == 1)  {HERE}"), ("not a boolean", "boolean is meant")),
    Case("a boolean for a number", action(f"s.n = True  {HERE}"), ("not a number", "number is meant")),
    Case("two optionals mixed", action(f"when(s.holder == s.seen)  {HERE}"), ("different kinds", "same kind")),
    Case("another optional assigned", action(f"s.holder = s.seen  {HERE}"), ("another kind", "same domain")),
    Case("a record changed in place", action(f"s.lease.version = 1  {HERE}"), ("assignment to 'version'", "whole variable")),
    Case(
        "a field of a record assigned",
        action("x = Lease(worker=s.who, version=s.n)", f"x.version = 1  {HERE}"),
        ("assignment to field 'version'", "x.changed("),
    ),
    Case("a field that is not there", action(f"when(s.lease.present and s.lease.verson == 1)  {HERE}"), ("no field 'verson'", "version")),
    Case("a record without a field", action(f"s.lease = Lease(worker=s.who)  {HERE}"), ("Lease", "exactly the fields")),
    Case("a family compared", action(f"when(s.up == s.idle)  {HERE}"), ("compared as a whole", "every(index")),
    Case("a family assigned from a value", action(f"s.up = True  {HERE}"), ("assigned as a whole", ".fill(")),
    Case("a family assigned from another kind", action(f"s.up = s.at  {HERE}"), ("assigned as a whole", "same kind")),
    Case("an unknown variable", action(f"when(s.flg)  {HERE}"), ("no state variable 'flg'", "did you mean 'flag'?")),
    Case("an unknown variable written", action(f"s.flg = True  {HERE}"), ("no state variable 'flg'", "did you mean 'flag'?")),
    Case("an unknown member", action(f"when(s.phase == Phase.idel)  {HERE}"), ("no member 'idel'", "idle, held, down")),
    Case("an unknown switch", action(f"when(switched('crush'))  {HERE}"), ("no switch 'crush'", "did you mean 'crash'?")),
    Case("None assigned", action("nothing = None", f"s.holder = nothing  {HERE}"), ("None used as a state value", "absent")),
    Case("absent for what is not optional", action(f"s.n = absent  {HERE}"), ("absent", "Optional(")),
    Case("absent compared with what is not optional", action(f"when(s.n == absent)  {HERE}"), ("not optional", "drop")),
    Case(".present of what is not optional", action(f"when(s.n.present)  {HERE}"), ("not optional", "as it is")),
    Case("too few indices", action(f"when(s.allowed[s.who])  {HERE}"), ("given 1 indices", "takes 2")),
    Case("an index of another kind", action(f"when(s.up[s.n])  {HERE}"), ("number", "worker is meant")),
    Case("a guard on a number", action(f"when(1)  {HERE}"), ("guard on 1", "comparison")),
    Case(
        "a guard inside a quantifier",
        action("s.flag = every(", "    workers,", f"    lambda w: when(s.up[w]),  {HERE}", ")"),
        ("a guard inside", "action's own body"),
    ),
    Case(
        "a guard inside a helper",
        f"@derived\ndef helper(s):\n    when(s.flag)  {HERE}\n    return s.n\n\n\n" + action("s.m = helper(s)"),
        ("a guard inside", "action's own body"),
    ),
    Case("a guard inside a claim", claim("x = s.n", f"when(s.flag)  {HERE}", "return x == 0"), ("a guard inside", "own body")),
    Case(
        "a write inside a helper",
        f"@derived\ndef helper(s):\n    s.flag = True  {HERE}\n    return s.n\n\n\n" + action("s.m = helper(s)"),
        ("flag written inside", "action's own body"),
    ),
    Case(
        "a write inside a quantifier",
        action("s.flag = some(workers, lambda w:", f"    s.up.fill(True)  {HERE}", ")"),
        ("up written inside", "action's own body"),
    ),
    Case("a write in a claim", claim("x = s.n", f"s.n = 1  {HERE}", "return x == 0"), ("n written by a claim", "only read")),
    Case("a cell written in a claim", claim(f"s.up[s.who] = True  {HERE}", "return s.flag"), ("up written by a claim", "only read")),
    Case("fill in a claim", claim(f"s.up.fill(True)  {HERE}", "return s.flag"), ("up written by a claim", "only read")),
    Case(
        "refuse_unless in a plain action",
        action("when(s.flag)", f'refuse_unless(s.n == 0, "taken")  {HERE}'),
        ("no operation", "protocol.operation("),
    ),
    Case(
        "an unknown code",
        '@p.operation("worker", home="store")\ndef act(s):\n    s.n = 1\n' + f'    refuse_unless(s.flag, "stale-verson")  {HERE}\n',
        ("'stale-verson' is no refusal code", "did you mean 'stale-version'?"),
    ),
    Case(
        "a refusal of what was decided",
        f'def learn(s, answer):\n    refuse_unless(s.flag, "taken")  {HERE}\n\n\n'
        '@p.operation("worker", home="store", answered=learn)\ndef act(s):\n    s.n = 1\n',
        ("is refused", "write `if`"),
    ),
    Case("history in a guard", action("when(s.flag)", f"when(s.last == 0)  {HERE}"), ("history variable last", "keeper")),
    Case("history in an if", action(f"if s.past[s.n]:  {HERE}", "    s.n = 1"), ("history variable past", "keeper")),
    Case(
        "history in a quantifier of a guard",
        action(f"when(every(versions, lambda v: not s.past[v]))  {HERE}"),
        ("history variable past", "keeper"),
    ),
    Case("history copied to state", action(f"s.n = s.last  {HERE}"), ("depends on the history variable last", "only history")),
    Case("history as an index of state", action(f"s.log[s.last] = s.who  {HERE}"), ("history variable last", "only history")),
    Case("can_move in an action", action(f"when(can_move(s, 'worker'))  {HERE}"), ("can_move", "for claims")),
    Case("a helper of two kinds", action(f"s.n = pick(s)  {HERE}", before="@derived\ndef pick(s):\n    return s.n if s.flag else False"), ("different kinds", "one kind")),
    Case("a choice of two kinds", action(f"s.n = ite(s.flag, s.n, s.phase)  {HERE}"), ("a choice between", "one kind")),
    Case("a lambda that gives nothing", action(f"when(every(workers, lambda w: None))  {HERE}"), ("gives nothing", "return")),
    Case("a quantifier over no domain", action(f"when(every(lambda w: s.up[w]))  {HERE}"), ("needs one or more domains", "every(workers")),
    Case("a quantifier over a family", action(f"when(every(s.up, lambda w: w))  {HERE}"), ("needs one or more domains", "every(workers")),
    Case("the value of absent", claim(f"return s.seen.value == 0  {HERE}"), ("absent optional", "implies(x.present")),
    Case("a field of absent", claim("return (", "    s.flag", f"    or s.lease.version == 0  {HERE}", ")"), ("absent optional", "implies")),
    Case("an order with absent", claim(f"return s.seen < 1  {HERE}"), ("absent optional", "implies")),
    Case("an index that is absent", claim(f"return s.up[s.holder]  {HERE}"), ("absent optional", "implies")),
    Case(
        "an index that is absent, in a quantifier",
        claim("return every(", "    workers,", f"    lambda w: w != s.who or s.up[s.holder],  {HERE}", ")"),
        ("absent optional", "implies"),
    ),
    Case("an index above its domain", claim(f"return not s.log[s.n + 1].present  {HERE}"), ("beyond its domain", "not x.present or")),
    Case("an index below its domain", claim(f"return not s.slot[s.level - 1]  {HERE}"), ("below -1", "implies")),
)


@pytest.mark.parametrize("case", IN_THE_VALUES, ids=[c.name for c in IN_THE_VALUES])
def test_what_operators_see_is_an_error_of_the_traced_reading(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    with pytest.raises(ModelError) as caught:
        model.trace()
    assert_names_the_line(model, caught.value, *case.words)


IN_BOTH = (
    Case("an unknown variable", claim(f"return s.flg  {HERE}"), ("no state variable 'flg'", "did you mean 'flag'?")),
    Case("an unknown variable written", action(f"s.flg = True  {HERE}"), ("no state variable 'flg'", "did you mean 'flag'?")),
    Case("an unknown switch", action(f"when(switched('crush'))  {HERE}"), ("no switch 'crush'", "did you mean 'crash'?")),
    Case("None assigned", action("nothing = None", f"s.holder = nothing  {HERE}"), ("None used as a state value", "absent")),
    Case("a number assigned to an element", action(f"s.who = 1  {HERE}"), ("1 is no",)),
    Case("a write in a claim", claim(f"s.n = 1  {HERE}", "return True"), ("n written by a claim", "only read")),
    Case("a cell written in a claim", claim(f"s.up[s.who] = True  {HERE}", "return True"), ("up written by a claim", "only read")),
    Case("fill in a claim", claim(f"s.up.fill(True)  {HERE}", "return True"), ("up written by a claim", "only read")),
    Case(
        "update_where in a claim",
        claim(f"s.up.update_where(lambda w, old: old)  {HERE}", "return True"),
        ("up written by a claim", "only read"),
    ),
    Case("a family assigned in a claim", claim(f"s.up = s.idle  {HERE}", "return True"), ("up written by a claim", "only read")),
    Case("the truth of a record", action(f"when(Lease(worker=s.who, version=0))  {HERE}"), ("a guard on",)),
    Case("the truth of an optional", action(f"when(not s.holder)  {HERE}"), ("truth of an optional", "x.present")),
    Case("the truth of a family", action(f"when(not s.up)  {HERE}"), ("truth of the family up", "every")),
    Case("a family compared", action(f"when(s.up == s.idle)  {HERE}"), ("compared as a whole", "every(index")),
    Case("a family assigned from another kind", action(f"s.up = s.at  {HERE}"), ("assigned as a whole", "same kind")),
    Case("another optional assigned", action(f"s.holder = s.seen  {HERE}"), ("another kind", "same domain")),
    Case("in a family", action(f"when(s.phase in s.at)  {HERE}"), ("`in`", "some(")),
    Case("a loop over a family", action(f"for x in s.up:  {HERE}", "    s.n = 1"), ("a loop over", "every / some / count")),
    Case("a field assigned", action("x = Lease(worker=s.who, version=s.n)", f"x.version = 1  {HERE}"), ("'version'", "x.changed(")),
    Case("a field that is not there", action(f"when(Lease(worker=s.who, version=0).verson == 1)  {HERE}"), ("no field 'verson'", "version")),
    Case("a record without a field", action(f"s.lease = Lease(worker=s.who)  {HERE}"), ("Lease", "exactly the fields")),
    Case("too few indices", action(f"when(s.allowed[s.who])  {HERE}"), ("given 1 indices", "takes 2")),
    Case("a guard on a number", action(f"when(1)  {HERE}"), ("guard on 1", "comparison")),
    Case("can_move in an action", action(f"when(can_move(s, 'worker'))  {HERE}"), ("can_move", "for claims")),
    Case("refuse_unless in a plain action", action(f'refuse_unless(s.n == 1, "taken")  {HERE}'), ("no operation", "protocol.operation(")),
    Case(
        "an unknown code",
        f'@p.operation("worker", home="store")\ndef act(s):\n    refuse_unless(s.flag, "stale-verson")  {HERE}\n',
        ("'stale-verson' is no refusal code", "did you mean 'stale-version'?"),
    ),
    Case("the value of absent", claim(f"return s.seen.value == 0  {HERE}"), ("absent optional",)),
    Case("an index below its domain", claim(f"return not s.slot[s.level - 2]  {HERE}"), ("below -1",)),
    Case("an index above its domain", claim(f"return not s.log[s.n + 3].present  {HERE}"), ("beyond its domain",)),
    Case("a guard inside a claim", claim(f"when(s.flag)  {HERE}", "return True"), ("guard",)),
)  # fmt: skip


@pytest.mark.parametrize("case", IN_BOTH, ids=[c.name for c in IN_BOTH])
def test_what_is_wrong_in_the_first_state_is_an_error_of_the_run_reading_too(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    for reading in (model.run, model.trace):
        with pytest.raises(ModelError) as caught:
            reading()
        assert_names_the_line(model, caught.value, *(case.words if reading == model.run else ()))


FAULTS = (
    Case("the value of absent", action(f"s.n = s.seen.value  {HERE}"), ("absent optional", "x.present")),
    Case("a field of absent", action(f"s.n = s.lease.version  {HERE}"), ("absent optional", "x.present")),
    Case("absent for what is not optional", action(f"s.n = s.seen  {HERE}"), ("absent optional", "x.present")),
    Case("an order with absent", action(f"when(s.seen > 0)  {HERE}"), ("absent optional", "x.present")),
    Case("a sum with absent", action(f"s.n = 1 + s.seen  {HERE}"), ("absent optional", "x.present")),
    Case("an index that is absent", action(f"s.up[s.holder] = False  {HERE}"), ("absent optional", "x.present")),
    Case("an index below its domain", action(f"s.slot[s.level - 2] = True  {HERE}"), ("an index of slot below -1",)),
    Case("a constant index below its domain", action(f"s.log[-1] = s.who  {HERE}"), ("an index of log below 0",)),
    Case(
        "an index that is absent, in a quantifier",
        action("s.flag = every(", "    workers,", f"    lambda w: s.up[s.holder],  {HERE}", ")"),
        ("absent optional", "x.present"),
    ),
    Case(
        "an index that is absent, in an update",
        action(f"s.up.update_where(lambda w, old: w != s.holder.value)  {HERE}"),
        ("absent optional", "x.present"),
    ),
    Case(
        "in a helper",
        f"@derived\ndef helper(s):\n    return s.seen.value + 1  {HERE}\n\n\n" + action("s.n = helper(s)"),
        ("absent optional", "x.present"),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=[c.name for c in FAULTS])
def test_what_is_not_there_is_a_fault_that_names_the_line(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    with pytest.raises(ModelError) as caught:
        model.run()
    assert_names_the_line(model, caught.value, *case.words)

    (error,) = [c.fault for c in trace_action(model.protocol, model.action()) if c.fault is not None]
    assert_names_the_line(model, error, *case.words)


def test_a_fault_for_one_value_comes_before_a_cut_for_another(tmp_path: Path) -> None:
    model = Model(tmp_path, action(f"s.flag = every(small, lambda i: s.slot[s.level - i])  {HERE}"))
    model.names["p"].variables["level"] = model.names["p"].variables["level"].__class__(
        "level", model.names["small"], (), 1, "store", ""
    )
    # For -1 the index is 2, the last; with level 2 it is 3, a cut, while for 2 it is 0.
    runner = model.runner()
    (state,) = {t.state for t in runner.transitions(runner.initial())}
    assert runner.codes(state)["flag"] == 0


def test_guards_are_no_exceptions_that_a_model_could_swallow() -> None:
    assert not any(issubclass(signal, Exception) for signal in (Disabled, Refused, Cut, Fault))
    with pytest.raises(Disabled):
        when(False)
    with pytest.raises(Refused, match="taken"):
        refuse_unless(False, "taken")


def test_the_language_says_when_it_is_used_outside_a_model(tmp_path: Path) -> None:
    model = Model(tmp_path, "def outside():\n    return every(workers, lambda w: True)  # <- here\n")
    with pytest.raises(ModelError) as caught:
        model.names["outside"]()
    assert_names_the_line(model, caught.value, "every used outside a model", "inside an action")


def test_too_many_paths_name_the_line_that_forks_and_what_to_fold(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        action(
            "when(s.flag)",
            "for i in (-1, 0, 1, 2):",
            "    for v in (0, 1, 2):",
            f"        if s.slot[i] != s.log[v].present:  {HERE}",
            "            s.n = 1",
        ),
    )
    with pytest.raises(PathLimitError) as caught:
        model.trace()
    assert_names_the_line(model, caught.value, "act forks into more than 512 paths", "ite(", "count(", "@derived")


TICK = "tick = itertools.count().__next__"
VARYING = (
    Case("a value", f"{TICK}\n\n\n@p.action('worker')  {HERE}\ndef act(s):\n    s.n = tick()\n", ("second time",)),
    Case("a guard", action(f"when(s.n == tick())  {HERE}", before=TICK), ("second time", "outside of its state")),
    Case(
        "one guard less",
        action("if tick() == 0:", f"    when(s.flag)  {HERE}", "s.n = 1", before=TICK),
        ("second time", "outside of its state"),
    ),
    Case(
        "a value in a helper",
        f"{TICK}\n\n\n@derived\ndef helper(s):\n    return s.n + tick()\n\n\n"
        f"@p.action('worker')  {HERE}\ndef act(s):\n    s.n = helper(s)\n",
        ("second time", "state variable or a parameter"),
    ),
    Case("a claim", f"{TICK}\n\n\ndef claim(s):  {HERE}\n    return s.n == tick()\n", ("second time", "outside")),
)


@pytest.mark.parametrize("case", VARYING, ids=[c.name for c in VARYING])
def test_what_differs_from_run_to_run_depends_on_something_outside_of_the_state(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, f"import itertools\n\n{case.text}")
    with pytest.raises(ModelError) as caught:
        model.trace()
    assert_names_the_line(model, caught.value, *case.words)


@pytest.mark.parametrize("protocol", [core, benchmark_lease().lease(2, 3)[0]], ids=["core", "lease"])
def test_tracing_an_action_twice_gives_the_same_terms(protocol: Protocol) -> None:
    for action in protocol.actions.values():
        assert trace_action(protocol, action) == trace_action(protocol, action)


def test_a_long_module_of_claims_is_traced_to_the_same_terms_each_time() -> None:
    for made in CORE.claims.values():
        assert trace_claim(core, made.predicate) is trace_claim(core, made.predicate)
