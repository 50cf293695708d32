"""What the modelling language forbids, found in the source text of actions, claims and their helpers.

Operator overloading cannot see these: Python would evaluate ``x is None`` on a symbolic value without asking it, and
the model would silently mean something else. Each finding names the user's line and what to write instead.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from fencepost.model.errors import ModelError, Site

_CALLS = {
    "isinstance": "compare with == or ask x.present",
    "issubclass": "compare with == or ask x.present",
    "type": "compare with == or ask x.present",
    "id": "compare with ==",
    "hash": "compare with ==",
    "len": "use count(domain, lambda x: …)",
    "sum": "use count(domain, lambda x: …)",
    "sorted": "use lowest, highest, or compare pairwise with every(…)",
    "min": "use lowest(domain, …) or ite(a < b, a, b)",
    "max": "use highest(domain, …) or ite(a < b, b, a)",
    "int": "use the value itself",
    "bool": "use the value itself",
    "str": "use the value itself",
    "repr": "use the value itself",
    "format": "use the value itself",
    "set": "use a boolean family: s.used[x]",
    "dict": "use a family: s.value[x]",
    "getattr": "write s.name",
    "setattr": "write s.name = …",
    "print": "run the model with `fencepost simulate` to look at states",
    "open": "a model reads nothing but its state",
    "input": "a model reads nothing but its state",
    "eval": "write the expression itself",
    "exec": "write the statement itself",
    "globals": "give the value as a constant",
    "vars": "name the variables one by one",
}
_MODULES = {"time", "random", "datetime", "uuid", "secrets", "os", "sys"}
_CHECKED: dict[Any, None] = {}
_BROAD = {"Exception", "BaseException"}


def check_function(function: Callable[..., Any]) -> None:
    """Raise ModelError at the first thing in `function`, or in a helper it calls, that no reading could see."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType) or function.__code__ in _CHECKED:
        return
    _CHECKED[function.__code__] = None
    try:
        _check(function)
    except ModelError:
        del _CHECKED[function.__code__]
        raise


def mark_checked(function: FunctionType) -> None:
    """Take a function as checked: it was made from the text of one that is."""
    _CHECKED[function.__code__] = None


def function_tree(function: Callable[..., Any]) -> tuple[ast.AST, int]:
    """The syntax tree of a function's own source, and by how much its line numbers must be raised."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        code = function.__code__
        raise ModelError(
            f"the source of {function.__name__} cannot be read ({error})",
            instead="define it in a file, not in an interactive session",
            site=Site(code.co_filename, code.co_firstlineno, function.__name__),
        ) from error
    text = textwrap.dedent("".join(lines))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        tree = ast.parse(f"(\n{text.strip().rstrip(',')}\n)")  # a lambda that stands inside a call
        first -= 1
    return tree, first - 1


def _check(function: FunctionType) -> None:
    _check_outside_names(function)
    if function.__name__ == "<lambda>":
        return  # its text stands inside the function that is checked
    tree, shift = function_tree(function)
    for node, what, instead in _findings(tree):
        line = getattr(node, "lineno", 1) + shift
        raise ModelError(
            what, instead=instead, site=Site(function.__code__.co_filename, line, function.__name__)
        )
    for helper in helpers_of(function):
        check_function(helper)


def _site(function: FunctionType) -> Site:
    return Site(function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__)


def _outside(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Every global and closure name that the function (or code nested in it) uses, with its value."""
    codes = [function.__code__]
    names: dict[str, None] = {}
    while codes:
        code = codes.pop()
        loads = (i for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
        names.update((i.argval, None) for i in loads)  # attribute names are not globals
        codes.extend(c for c in code.co_consts if inspect.iscode(c))
    for name in names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _check_outside_names(function: FunctionType) -> None:
    for name, value in _outside(function):
        if isinstance(value, (list, dict, set, bytearray)):
            raise ModelError(
                f"{function.__name__} reads the mutable {type(value).__name__} {name!r} from outside",
                instead="make it a tuple or frozenset, or a state variable: readings happen at different times",
                site=_site(function),
            )
        if inspect.ismodule(value) and value.__name__.split(".")[0] in _MODULES:
            raise ModelError(
                f"{function.__name__} uses the module {value.__name__}",
                instead="a model reads nothing but its state; make the choice a parameter of the action",
                site=_site(function),
            )
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        if isinstance(default, (list, dict, set)):
            raise ModelError("a mutable default argument", instead="use a tuple", site=_site(function))


def helpers_of(function: FunctionType) -> Iterator[Callable[..., Any]]:
    """The functions, not the language's own, that a function names."""
    for _, value in _outside(function):
        helper = inspect.unwrap(value) if callable(value) else value
        if isinstance(helper, FunctionType) and not _is_language(helper):
            yield helper


def _is_language(function: FunctionType) -> bool:
    module = function.__module__ or ""
    return module.startswith("fencepost.model.") and not module.startswith("fencepost.model.core")


def _findings(tree: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    for node in ast.walk(tree):
        yield from _finding(node)


def _finding(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:  # noqa: C901, PLR0912
    if isinstance(node, ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, (ast.Is, ast.IsNot)):
                none = isinstance(right, ast.Constant) and right.value is None
                what = (
                    "`is None` cannot be seen by the readings"
                    if none
                    else "`is` cannot be seen by the readings"
                )
                yield node, what, "ask x.present" if none else "compare with =="
            elif isinstance(right, ast.Constant) and right.value is None:
                yield node, "a comparison with None", "ask x.present"
    elif isinstance(node, (ast.MatchSingleton, ast.MatchClass)):
        yield (
            node,
            "`case None`, `case True` or a class pattern tests by identity or type",
            "ask x.present or use ==",
        )
    elif isinstance(node, (ast.While, ast.AsyncFor)):
        yield (
            node,
            "a `while` on state has no bound that the readings could see",
            "one step of the loop is one action",
        )
    elif isinstance(node, ast.Try):
        if node.finalbody:
            yield (
                node,
                "`finally` runs although a guard ended the action",
                "write the effect after the guards",
            )
        for handler in node.handlers:
            names = (
                [n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)]
                if handler.type
                else ["everything"]
            )
            if handler.type is None or set(names) & _BROAD:
                yield (
                    handler,
                    "an `except` that swallows guards or errors of the model",
                    "remove it: guards are no errors",
                )
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield node, f"`{type(node).__name__.lower()}` makes hidden state", "declare a state variable"
    elif isinstance(node, ast.JoinedStr):
        yield node, "an f-string of state cannot be read", "use the value itself"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield node, f"{node.func.id}() cannot be seen by the readings", _CALLS[node.func.id]
    elif isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFunctionDef)):
        yield (
            node,
            "an action is one atomic step: no await and no yield",
            "make each part an action of its own",
        )
    elif isinstance(node, ast.NamedExpr):
        yield node, "`:=` inside a condition hides an effect", "assign on a line of its own"
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node, "`with` runs code when a guard ends the action", "remove it"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        yield node, "a bitwise operator between conditions", "write `and`, `or`, !="
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield node, "`~` is no negation in Python", "write `not`"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield node, "a slice of state", "name the cells, or use update_where"
