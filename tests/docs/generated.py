"""Tables that come from the registries: of claims, of refusals, and of what the language forbids."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from fencepost.checker.subject import BUILT_IN, BuiltIn
from fencepost.model import ModelError, outside
from fencepost.model.lint import check_function
from fencepost.properties import REGISTRY, Claim, Kind
from fencepost.properties.refusals import as_markdown
from fencepost.reference import session

from ..conformance import caught  # noqa: TID252  # directories of tests are no packages
from .pages import row

_EDITED_BY = "<!-- made by the tests from the registries: REWRITE_DOCS=1 python -m pytest tests/docs -->"


def table(heading: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A table as text."""
    columns = list(heading)
    lines = [row(*columns), "|" + "---|" * len(columns), *(row(*values) for values in body)]
    return "\n".join(lines) + "\n"


# -- claims


def promises_in_short() -> str:
    """The claims of the README: one row for each id of each protocol."""
    return table(
        ("protocol", "id", "what is claimed"),
        (
            (b.name, i, " ".join(c.sentence for c in claims))
            for b in BUILT_IN.values()
            for i, claims in b.claims.ids().items()
        ),
    )


def claims_page() -> str:
    """``docs/claims.md``."""
    protocols = "\n".join(_protocol(b) for b in BUILT_IN.values())
    return f"""{_EDITED_BY}

# The claims

What fencepost claims of its protocols, of which each has its own part below. Each claim is one Python
function. `fencepost list claims` prints the same lists, and `fencepost explain S1` all there is to say about
one of them. Several claims can share an id; the verdict of an id is the worst of its claims.

A claim *needs off* the switches of the world against which it promises nothing: with each of them on it is
refuted, and `fencepost check S8 --on record_expired` shows by which run. That is no fault of the protocol.

A claim that cannot fail says nothing. Each *variant* of a model lacks a line, or has another one, and breaks
some claims; `fencepost check --variant NAME` shows the run. Claims with no variant here are broken by the
changes of a [sweep](what-a-verdict-means.md#what-a-sweep-says).

A claim of the form *if this, then that* holds wherever *this* never happens. So a claim names *witnesses*:
states or steps that must be reached, or its verdict is UNDETERMINED. *Supporting invariants* are what the
proofs need besides the claims. They are checked and proved like claims, and promise nothing.

{protocols}"""


def _protocol(b: BuiltIn) -> str:
    claims = b.claims
    off = any(c.needs_off for c in claims.promises())
    promises = table(
        ("id", "claim", "about", "what it says", *(["needs off"] * off), "its premise is reached by"),
        (
            (
                c.id, f"`{c.name}`", _about(c), c.sentence, *([_code(c.needs_off)] * off), _code(c.witnesses),
            )
            for c in claims.promises()
        ),
    )  # fmt: skip
    breaking = table(
        ("claim", "variants that break it, and the length of the shortest run"),
        ((f"{c.id} `{c.name}`", ", ".join(_broken_by(b, c)) or "-") for c in claims.promises()),
    )
    witnesses = table(
        ("witness", "what is reached", "for"),
        ((f"`{w.name}`", w.sentence, ", ".join(_witnessed_by(b, w))) for w in claims.of_kind(Kind.SOMETIMES)),
    )
    supporting = table(
        ("invariant", "what it says", *(["needs off"] * off), "for the proofs of"),
        (
            (f"`{c.name}`", c.sentence, *([_code(c.needs_off)] * off), ", ".join(c.supports))
            for c in claims.of_kind(Kind.SUPPORTING)
        ),
    )
    return f"""## Claims of {b.name}

{promises}
### How each of {b.name} is seen to fail

{breaking}
### Witnesses of {b.name}

{witnesses}
### Supporting invariants of {b.name}

{supporting}"""


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"


def _about(claim: Claim) -> str:
    return "each step" if claim.over_steps else "each state"


def _witnessed_by(b: BuiltIn, witness: Claim) -> Iterable[str]:
    return dict.fromkeys(c.id for c in b.claims.promises() if witness.name in c.witnesses)


def _broken_by(b: BuiltIn, claim: Claim) -> Iterator[str]:
    for variant in b.variants.values():
        steps = variant.breaks.get(claim.name)
        if steps is not None:
            yield f"`{variant.name}` ({steps})"


# -- stores that are broken on purpose


def broken_stores() -> str:
    """The stores that the checks of implementations refute."""
    return table(("store", "kind of fault", "what is wrong", "refuted by", "grade"), caught.rows())


# -- refusals


def refusals_page() -> str:
    """``docs/refusals.md``."""
    registry = "\n".join(as_markdown())
    return f"""{_EDITED_BY}

# The refusals

Every call on the store ends in one of three ways: accepted, refused with one of these codes, or unknown.
A code is *definite* if the call that it answers changed nothing. Where several apply, the first of the
list is given.

{registry}

The codes are listed once, in `properties/fencepost/properties/refusals.py`. `fencepost explain
{REGISTRY[0].code}` says which operations give a code.
"""


# -- what the language forbids

STATEMENTS: Mapping[str, str] = {
    "`while`": "while s.n < 2:\n    s.n = s.n + 1",
    "`try` … `except`": "try:\n    when(s.flag)\nexcept Exception:\n    s.n = 1",
    "`try` … `finally`": "try:\n    when(s.flag)\nfinally:\n    s.n = 1",
    "`with`": "with s.flag:\n    s.n = 1",
    "`raise`": "raise ValueError",
    "`assert`": "assert s.flag",
    "`del`": "del s.flag",
    "`global`": "global n\nn = 1",
    "`nonlocal`": "k = 1\ndef helper():\n    nonlocal k\n    k = 2\nhelper()",
    "`import`": "import os",
    "`from` … `import`": "from os import sep",
    "`class`": "class Helper:\n    pass",
    "`case None`": "match s.flag:\n    case None:\n        s.n = 1",
    "`case int()`": "match s.n:\n    case int():\n        s.n = 1",
    "`case [_, _]`": "match s.n:\n    case [_, _]:\n        s.n = 1",
    "`case {}`": "match s.n:\n    case {}:\n        s.n = 1",
    "`yield`, `await`, `async`": "yield s.flag",
    "`:=`": "when((n := s.n) == 0)",
    "an f-string": "when(f'{s.n}' == '0')",
    "a slice": "when(s.up[:1])",
}
"""How a page calls a statement, and an example of it."""

SAME_AS_YIELD = (ast.Await, ast.YieldFrom, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)


def statements(directory: Path) -> str:
    """Statements that no reading could see, with the message that each gets."""
    found = ((name, *refused(text, directory)) for name, text in STATEMENTS.items())
    return table(("not", "why", "instead"), found)


def refused(text: str, directory: Path) -> tuple[str, str]:
    """What the language says of some lines in an action: what is wrong, and what to do."""
    try:
        check_function(function_of(text, directory))
    except ModelError as error:
        return error.what, error.instead
    raise AssertionError(f"not forbidden: {text}")


def function_of(text: str, directory: Path) -> Callable[..., None]:
    """An action with these lines, in a file of its own."""
    body = "".join(f"    {line}\n" for line in text.splitlines())
    whole = f"from fencepost.model import when\n\ndef act(s):\n{body}"
    path = directory / f"lines_{abs(hash(text))}.py"
    path.write_text(whole, encoding="utf-8")
    names: dict[str, Callable[..., None]] = {}
    exec(compile(whole, str(path), "exec"), names)  # noqa: S102
    return names["act"]


def builtins() -> str:
    """Functions of Python that no reading could see, by what to write instead."""
    by_remedy: dict[str, list[str]] = {}
    for name, instead in outside._BUILTINS.items():
        by_remedy.setdefault(instead, []).append(f"`{name}`")
    return table(("not", "instead"), ((", ".join(names), instead) for instead, names in by_remedy.items()))


def ways_to_end() -> str:
    """How a pass of a worker may end, as the members of `Ended` say below themselves."""
    (ended,) = (
        node
        for node in ast.parse(inspect.getsource(session)).body
        if isinstance(node, ast.ClassDef) and node.name == "Ended"
    )
    said = []
    for member, docstring in pairwise(ended.body[1:]):
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
            assert isinstance(docstring, ast.Expr), member.targets[0].id
            assert isinstance(docstring.value, ast.Constant), member.targets[0].id
            name = getattr(session.Ended, member.targets[0].id).value
            said.append((f"`{name}`", " ".join(str(docstring.value.value).split())))
    assert len(said) == len(session.Ended)
    return table(("It ended", "which means"), said)


def modules() -> str:
    """The modules of clocks and chance, in one line."""
    return ", ".join(f"`{name}`" for name in outside._MODULES) + "\n"
