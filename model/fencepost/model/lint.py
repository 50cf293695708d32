"""What the modelling language forbids, found in the source text of actions, claims and their helpers.

Operator overloading cannot see these: Python would evaluate ``x is None`` on a symbolic value without asking
it, and the model would silently mean something else. Each finding names the user's line and what to write
instead.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from fencepost.model.errors import ModelError, Site
from fencepost.model.outside import (
    Outside,
    attributes_outside,
    names_outside,
    reason_against,
    remembers,
    wrapped,
)

_CHECKED: weakref.WeakSet[FunctionType] = weakref.WeakSet()
Finding = tuple[ast.AST, str, str]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_NODES: dict[str, tuple[list[str], dict[tuple[int, str], list[Definition]]]] = {}
"""For each file its lines, and its functions by first line and name."""


def check_function(function: Callable[..., Any]) -> None:
    """Raise ModelError at the first thing in `function`, or in a helper of it, that no reading could see."""
    if remembers(function):
        _refuse_memory(function)
    for layer in wrapped(function):
        plain = getattr(layer, "__func__", layer)
        if isinstance(plain, FunctionType) and plain not in _CHECKED and not _is_language(plain):
            _check_one(plain)


def _refuse_memory(function: Callable[..., Any]) -> None:
    what, instead = reason_against(function.__name__, function) or ("", "")
    plain = inspect.unwrap(function)
    raise ModelError(what, instead=instead, site=Site(*_start(plain)))


def _check_one(plain: FunctionType) -> None:
    _CHECKED.add(plain)
    try:
        _check(plain)
    except ModelError:
        _CHECKED.discard(plain)
        raise


def mark_checked(function: FunctionType) -> None:
    """Take a function as checked: it was made from the text of one that is."""
    _CHECKED.add(function)


def function_tree(function: Callable[..., Any]) -> tuple[ast.AST, int]:
    """The syntax tree of a function's own source, and by how much its line numbers must be raised.

    The tree is shared by all who ask: copy it before you change it.
    """
    shift = function.__code__.co_firstlineno - 1
    return _shifted(_definition(function), shift)


@functools.cache
def _shifted(definition: Definition, shift: int) -> tuple[ast.AST, int]:
    node = copy.deepcopy(definition)
    ast.increment_lineno(node, -shift)
    if isinstance(node, ast.Lambda):
        return ast.Module([ast.copy_location(ast.Expr(node), node)], []), shift
    return ast.Module([node], []), shift


def helpers_of(function: FunctionType) -> Iterator[Callable[..., Any]]:
    """The functions, not the language's own, that a function names."""
    for _, helper in helpers_by_name(function):
        yield helper


def helpers_by_name(function: FunctionType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The same, each with the name by which the function uses it."""
    for outside in names_outside(function):
        for helper in _helper(outside):
            yield outside.name, helper


def _helper(outside: Outside) -> Iterator[FunctionType]:
    value = outside.value
    while isinstance(value, functools.partial):
        value = value.func
    for layer in wrapped(value):
        plain = getattr(layer, "__func__", layer)
        if isinstance(plain, FunctionType) and not _is_language(plain):
            yield plain


def _is_language(function: FunctionType) -> bool:
    module = str(function.__globals__.get("__name__", ""))  # a wrapper takes over another's __module__
    # The language is the modules beside each other; a built-in model is a package of its own beneath them.
    return module.startswith("fencepost.model.") and module.count(".") == len(("model", "language"))


def _definition(function: Callable[..., Any]) -> Definition:
    """The function's place in the tree of its file, found by its first line, and for lambdas by columns."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    known = _NODES.get(code.co_filename)
    if known is None or known[0] is not lines:
        known = _NODES[code.co_filename] = (lines, _functions("".join(lines)))
    found = known[1].get((code.co_firstlineno, code.co_name), [])
    if len(found) > 1:
        inside = {(line, column) for line, _, column, _ in code.co_positions()}
        found = [node for node in found if _spans(node, inside)] or found
    if not found:
        raise ModelError(
            f"the source of {function.__name__} cannot be read",
            instead="define it in a file, not in an interactive session, and run the file as it is now",
            site=Site(code.co_filename, code.co_firstlineno, function.__name__),
        )
    return found[0]


def _functions(text: str) -> dict[tuple[int, str], list[Definition]]:
    found: dict[tuple[int, str], list[Definition]] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A function made anew from this text may have no decorators.
            for line in {node.lineno, *(d.lineno for d in node.decorator_list[:1])}:
                found.setdefault((line, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found


def _spans(node: Definition, places: set[tuple[int | None, int | None]]) -> bool:
    """Whether the code of a lambda came from its body."""
    body = node.body
    return isinstance(body, ast.expr) and (body.lineno, body.col_offset) in places


def _check(function: FunctionType) -> None:
    definition = _definition(function)
    name, file = function.__name__, function.__code__.co_filename
    found = [(_place(node), what, instead) for node, what, instead in _findings(definition)]
    for (line, _), what, instead in sorted(found)[:1]:
        raise ModelError(what, instead=instead, site=Site(file, line, name))
    if any(f(function) for f in _LATER):
        raise ModelError(_NO_STEP[0], instead=_NO_STEP[1], site=Site(*_start(function)))
    outside = [*names_outside(function), *attributes_outside(function, definition)]
    for item in outside:
        against = reason_against(item.name, item.value)
        if against is not None:
            what, instead = against
            raise ModelError(what.replace("…", name), instead=instead, site=Site(file, item.line, name))
    _check_defaults(function, definition)
    for item in outside:
        for helper in _helper(item):
            check_function(helper)


_NO_STEP = ("an action is one atomic step: no await and no yield", "make each part an action of its own")
_LATER = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
"""What calls of a function give without running its body."""


def _start(function: FunctionType) -> tuple[str, int, str]:
    """Where the `def` of a function stands, below its decorators."""
    return function.__code__.co_filename, _place(_definition(function))[0], function.__name__


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _check_defaults(function: FunctionType, definition: Definition) -> None:
    arguments = definition.args
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    nodes = [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]
    for node, value in zip(nodes, values, strict=False):
        if isinstance(value, (list, dict, set, bytearray)):
            site = Site(function.__code__.co_filename, node.lineno, function.__name__)
            raise ModelError("a mutable default argument", instead="use a tuple", site=site)


def _findings(definition: Definition) -> Iterator[Finding]:
    """What is wrong in a function's body; its decorators and annotations are no part of the model."""
    body = definition.body
    nodes: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while nodes:
        node = nodes.pop()
        yield from _finding(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                nodes += [
                    x for x in (value if isinstance(value, list) else [value]) if isinstance(x, ast.AST)
                ]


_STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: (
        "a `while` on state has no bound that the readings could see",
        "one step of the loop is one action",
    ),
    ast.With: ("`with` runs code when a guard ends the action", "remove it"),
    ast.Global: ("`global` makes hidden state", "declare a state variable"),
    ast.Nonlocal: ("`nonlocal` makes hidden state", "declare a state variable"),
    ast.NamedExpr: ("`:=` inside a condition hides an effect", "assign on a line of its own"),
    ast.JoinedStr: ("an f-string of state cannot be read", "use the value itself"),
    ast.Assert: (
        "an `assert` is not part of any reading",
        "write when(…) or refuse_unless(…), or make it a claim",
    ),
    ast.Raise: ("a `raise` is not part of any reading", "end the action with when(…) or refuse_unless(…)"),
    ast.Delete: ("a `del` is not part of any reading", "assign a value; a state variable always has one"),
    ast.Import: ("an import inside a model hides what it uses", "import at the top of the file"),
    ast.ImportFrom: ("an import inside a model hides what it uses", "import at the top of the file"),
    ast.ClassDef: ("a class inside a model", "use a Record or an Enumeration"),
    ast.MatchSingleton: (
        "`case None`, `case True` and `case False` test by identity",
        "ask x.present, or use ==",
    ),
    ast.MatchClass: ("a class pattern tests by type", "ask x.present, or compare with =="),
    ast.MatchMapping: ("a mapping pattern tests by type", "compare the cells with =="),
    **dict.fromkeys(
        (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith),
        _NO_STEP,
    ),
}


def _finding(node: ast.AST) -> Iterator[Finding]:
    known = _STATEMENTS.get(type(node))
    if known is not None:
        yield node, *known
    elif isinstance(node, ast.Compare):
        yield from _comparison(node)
    elif isinstance(node, (ast.Try, ast.TryStar)):
        yield from _try(node)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        yield from _operation(node)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            yield node, "`~` is no negation in Python", "write `not`"
    elif isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Slice):
            yield node, "a slice of state", "name the cells, or use update_where"
    elif isinstance(node, ast.Match):
        yield from _sequence_patterns(node)


def _operation(node: ast.BinOp | ast.AugAssign) -> Iterator[Finding]:
    if isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        yield node, "a bitwise operator between conditions", "write `and`, `or`, !="
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        yield node, "the text of a state value, made with %, cannot be read", "use the value itself"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _attribute(node: ast.Attribute) -> Iterator[Finding]:
    """Attributes that tell of a value how Python keeps it, or that make text of it."""
    if node.attr.startswith("__") and node.attr.endswith("__"):
        yield node, f".{node.attr} tells of Python, not of the state", "use the value itself"
    elif _is_text(node.value):
        yield (
            node,
            f".{node.attr} of a text: like an f-string of state, it cannot be read",
            "use the value itself",
        )


def _comparison(node: ast.Compare) -> Iterator[Finding]:
    operands = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, operands[:-1], operands[1:], strict=True):
        none = any(isinstance(x, ast.Constant) and x.value is None for x in (left, right))
        if isinstance(operator, (ast.Is, ast.IsNot)):
            what = "`is None`" if none else "`is`"
            yield (
                right,
                f"{what} cannot be seen by the readings",
                "ask x.present" if none else "compare with ==",
            )
        elif none:
            yield right, "a comparison with None", "ask x.present"


def _try(node: ast.Try | ast.TryStar) -> Iterator[Finding]:
    if node.finalbody:
        yield node, "`finally` runs although a guard ended the action", "write the effect after the guards"
    for handler in node.handlers:
        yield (
            handler,
            "an `except` swallows errors of the model, or guards",
            "remove it: guards are no errors",
        )


def _sequence_patterns(node: ast.Match) -> Iterator[Finding]:
    """A sequence pattern never fits a state value; a tuple that is written out it only takes apart."""
    for case in node.cases:
        for pattern in ast.walk(case.pattern):
            own = pattern is case.pattern and isinstance(node.subject, ast.Tuple)
            if isinstance(pattern, ast.MatchSequence) and not own:
                yield pattern, "a sequence pattern tests by type", "compare with =="
