"""What a function of a model uses from outside, and what of that no reading could keep track of."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import dis
import enum
import functools
import inspect
import operator
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from types import CodeType, FunctionType
from typing import Any, NamedTuple

_BUILTINS: dict[str, str] = {
    "isinstance": "compare with == or ask x.present",
    "issubclass": "compare with == or ask x.present",
    "type": "compare with == or ask x.present",
    "callable": "compare with == or ask x.present",
    "id": "compare with ==",
    "hash": "compare with ==",
    "len": "use count(domain, lambda x: …)",
    "sum": "use count(domain, lambda x: …)",
    "sorted": "use lowest, highest, or compare pairwise with every(…)",
    "min": "use lowest(domain, …) or ite(a < b, a, b)",
    "max": "use highest(domain, …) or ite(a < b, b, a)",
    "int": "use the value itself",
    "float": "use the value itself",
    "bool": "use the value itself",
    "str": "use the value itself",
    "ascii": "use the value itself",
    "dir": "name the variables one by one",
    "repr": "use the value itself",
    "format": "use the value itself",
    "set": "use a boolean family: s.used[x]",
    "frozenset": "use a boolean family: s.used[x]",
    "dict": "use a family: s.value[x]",
    "getattr": "write s.name",
    "hasattr": "write s.name, or ask x.present",
    "setattr": "write s.name = …",
    "delattr": "assign a value: a state variable always has one",
    "print": "run the model with `fencepost simulate` to look at states",
    "open": "a model reads nothing but its state",
    "input": "a model reads nothing but its state",
    "__import__": "import at the top of the file",
    "eval": "write the expression itself",
    "exec": "write the statement itself",
    "globals": "give the value as a constant",
    "locals": "name the variables one by one",
    "vars": "name the variables one by one",
}
_FORBIDDEN: dict[int, tuple[str, str]] = {
    **{id(getattr(builtins, name)): (f"{name}()", instead) for name, instead in _BUILTINS.items()},
    id(operator.is_): ("operator.is_()", "compare with =="),
    id(operator.is_not): ("operator.is_not()", "compare with !="),
    id(operator.attrgetter): ("operator.attrgetter()", "write s.name"),
    id(operator.methodcaller): ("operator.methodcaller()", "write the call itself"),
}
_MODULES = ("time", "random", "datetime", "uuid", "secrets", "os", "posix", "nt", "sys", "numpy.random")
_MUTABLE = (MutableSequence, MutableMapping, MutableSet, bytearray, Iterator)
_READS_NOTHING_ELSE = "a model reads nothing but its state; make the choice a parameter of the action"


class Outside(NamedTuple):
    """A value that a function uses by a name it has from outside, and the first line that does."""

    name: str
    value: Any
    line: int


def names_outside(function: FunctionType) -> Iterator[Outside]:
    """Every global, builtin and closure name that the function (or code nested in it) uses."""
    cells: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    seen: set[str] = set()
    for name, line, is_global in _loads(function.__code__):
        if name in seen:
            continue
        seen.add(name)
        if not is_global and name in cells:
            yield Outside(name, cells[name], line)
        elif is_global and name in function.__globals__:
            yield Outside(name, function.__globals__[name], line)
        elif is_global and hasattr(builtins, name):
            yield Outside(name, getattr(builtins, name), line)


@functools.lru_cache(maxsize=10_000)
def _loads(code: CodeType) -> tuple[tuple[str, int, bool], ...]:
    """The names that code loads from outside: (name, line, whether it is a global)."""
    return tuple(_loads_in(code))


def _loads_in(code: CodeType) -> Iterator[tuple[str, int, bool]]:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval, line, True
        elif instruction.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            yield instruction.argval, line, False
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loads(constant)


def attributes_outside(function: FunctionType, definition: ast.AST) -> Iterator[Outside]:
    """What the function uses of modules and classes: ``rules.may_act(s, w)``, ``Limits.most``."""
    roots = {item.name: item.value for item in names_outside(function)}
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute):
            names = _dotted(node)
            if names and names[0] in roots:
                found, value = _follow(roots[names[0]], names[1:])
                if found:
                    yield Outside(".".join(names), value, node.lineno)


def _dotted(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return [*before, node.attr]
    return []


def _follow(value: Any, names: list[str]) -> tuple[bool, Any]:
    for name in names:
        if not inspect.ismodule(value) and not inspect.isclass(value):
            return False, None
        try:
            value = inspect.getattr_static(value, name)
        except AttributeError:
            return False, None
        value = getattr(value, "__func__", value)  # of a static or class method
    return True, value


def reason_against(name: str, value: Any) -> tuple[str, str] | None:
    """What is wrong with using `value`, and what to do instead; for … stands the function's name."""
    if isinstance(value, functools.partial):
        for part in (*value.args, *value.keywords.values()):
            if (against := reason_against(name, part)) is not None:
                return against
        return reason_against(name, value.func)
    if remembers(value):
        return (
            f"{name} remembers what it gave (functools.cache), and the state that it is given changes",
            "remove the cache, or mark the helper @derived",
        )
    if isinstance(value, (operator.attrgetter, operator.methodcaller)):
        value = type(value)
    known = _FORBIDDEN.get(id(value))
    if known is not None:
        return f"{known[0]} cannot be seen by the readings", known[1]
    if isinstance(value, _MUTABLE) or _has_open_attributes(value):
        return (
            f"… reads the mutable {type(value).__name__} {name!r} from outside",
            "make it a tuple, a frozen dataclass or a state variable: readings happen at different times",
        )
    module = _module_of(value)
    if any(module == m or module.startswith(m + ".") for m in _MODULES):
        if inspect.ismodule(value):
            return f"… uses the module {module}", _READS_NOTHING_ELSE
        return f"… uses {name} of the module {module}", _READS_NOTHING_ELSE
    return None


def wrapped(value: Any) -> Iterator[Any]:
    """A function, and what it wraps, and what that wraps."""
    seen: set[int] = set()
    while id(value) not in seen:
        seen.add(id(value))
        yield value
        value = inspect.getattr_static(value, "__wrapped__", value) if callable(value) else value


def remembers(value: Any) -> bool:
    """Whether a helper, or what it wraps, gives again what it gave for the same arguments."""
    return any(hasattr(type(x), "cache_info") or "cache_info" in _own(x) for x in wrapped(value))


def _own(value: Any) -> Any:
    return getattr(value, "__dict__", {}) if isinstance(value, FunctionType) else {}


def _module_of(value: Any) -> str:
    if inspect.ismodule(value):
        return value.__name__
    owner = getattr(value, "__self__", None)  # random.random is a method of a hidden object
    if owner is not None and not inspect.ismodule(owner):
        return type(owner).__module__ or ""
    module = getattr(value, "__module__", None) if callable(value) else None
    return module if isinstance(module, str) else ""


def _has_open_attributes(value: Any) -> bool:
    """Whether it is an object of somebody's own class whose attributes can be set at any time."""
    kind: Any = type(value)
    if (
        inspect.ismodule(value)
        or inspect.isroutine(value)
        or inspect.isclass(value)
        or not hasattr(value, "__dict__")
    ):
        return False
    frozen = getattr(kind, "__dataclass_params__", None)
    if (dataclasses.is_dataclass(kind) and frozen is not None and frozen.frozen) or isinstance(
        value, enum.Enum
    ):
        return False
    module = kind.__module__
    return not module.startswith(("fencepost.", "typing", "builtins", "functools", "_frozen"))
