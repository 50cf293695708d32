"""Models with one thing taken away: what a sweep tries, to see that something notices.

Each mutant is made from the source of the model itself: a guard removed, a refusal answered although the
operation goes on, one effect removed, one branch always or never taken, a whole action left out. Line numbers
stay those of the original, so errors and traces of a mutant point to the text that a person can read.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from fencepost.model.errors import ModelError
from fencepost.model.language import answer_refused_unless
from fencepost.model.lint import function_tree, helpers_of, mark_checked
from fencepost.model.protocol import Action, Protocol

GUARD, REFUSAL, ANSWER = "when", "refuse_unless", "answered only"
EFFECT, BRANCH, ACTION = "effect", "branch", "action"
KINDS = (GUARD, REFUSAL, ANSWER, EFFECT, BRANCH, ACTION)
"""The kinds of mutants: a `when` or `refuse_unless` removed; a refusal answered but not obeyed; and so on."""

LINE = "line"
"""The kind of a line that is made to say something else, in variants only: no sweep tries that."""

_FAMILY_WRITES = {"update_where", "fill"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: its kind, the action and line it is in, the text taken away, and the changed protocol."""

    kind: str
    action: str
    file: str
    line: int
    text: str
    how: str
    protocol: Protocol

    @property
    def name(self) -> str:
        """The mutant in one line."""
        return f"{self.action}: {self.how} `{self.text}`"


def mutants(protocol: Protocol, kinds: tuple[str, ...] = KINDS) -> list[Mutant]:
    """Every mutant of a protocol, in reading order."""
    found: list[Mutant] = []
    for action in protocol.actions.values():
        for place in _places(action):
            if place.kind in kinds:
                found += [_mutant(protocol, action, (place,))]
        if ACTION in kinds:
            rest = protocol.variant(f"{protocol.name} without {action.name}", without=[action.name])
            site = action.site
            found.append(
                Mutant(ACTION, action.name, site.file, site.line, action.name, "the action left out:", rest)
            )
    return found


def pairs(protocol: Protocol, names: set[str]) -> list[Mutant]:
    """Mutants in which two guards are removed at once, of those whose single removal has one of `names`."""
    single: list[tuple[Action, _Place]] = []
    for action in protocol.actions.values():
        for place in _places(action):
            if place.kind in (GUARD, REFUSAL) and _mutant(protocol, action, (place,)).name in names:
                single += [(action, place)]
    found = []
    for i, (first, one) in enumerate(single):
        for second, two in single[i + 1 :]:
            if first.name == second.name:
                found.append(_mutant(protocol, first, (one, two)))
            else:
                base = _mutant(protocol, first, (one,))
                both = _mutant(base.protocol, base.protocol.actions[second.name], (two,))
                text = f"{one.text}` and in {second.name} `{two.text}"
                found.append(replace(both, action=first.name, line=one.line, text=text, kind="pair"))
    return found


def without(protocol: Protocol, name: str, **lines: tuple[str, ...]) -> Protocol:
    """A variant in which actions lack some lines: each given by its refusal code or by a piece of its text.

    A piece that begins with ``if`` names a branch, which is then never taken. ModelError when a piece names
    no line of the action, or more than one.
    """
    made = protocol
    for action_name, pieces in lines.items():
        for piece in pieces:
            action = made.actions[action_name]
            how = "never taken:" if piece.startswith("if ") else "without"
            places = [p for p in _places(action) if p.how == how and piece in p.text]
            if len(places) != 1:
                have = "; ".join(p.text for p in _places(action) if p.how == how)
                raise ModelError(
                    f"{name}: {piece!r} names {len(places)} lines of {action_name}",
                    instead=f"its lines are: {have}",
                )
            made = _mutant(made, action, (places[0],)).protocol
    return made.variant(name)


def with_lines(protocol: Protocol, name: str, **lines: Mapping[str, str]) -> Protocol:
    """A variant in which lines of actions say something else: for each action, what is replaced by what.

    A line is given by a piece of its text, and may stand in any helper of the action. What replaces the piece
    may have several lines. ModelError when a piece names no line of the action, or more than one.
    """
    made = protocol
    for action_name, changes in lines.items():
        for old, new in changes.items():
            action = made.actions[action_name]
            places = list(_lines(action, old, new))
            if len(places) != 1:
                raise ModelError(
                    f"{name}: {old!r} names {len(places)} lines of {action_name}",
                    instead="give a piece that one line has, and the name of the action that runs it",
                )
            made = _mutant(made, action, (places[0],)).protocol
    return made.variant(name)


@dataclass(frozen=True, slots=True)
class _Place:
    """One statement of one function that an action runs."""

    kind: str
    how: str
    function: Any
    line: int
    text: str
    change: Callable[[ast.stmt], Any]


def _places(action: Action) -> Iterator[_Place]:
    for function in _functions(action, _matters):
        tree, shift = function_tree(function)
        source = linecache.getlines(function.__code__.co_filename)
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and (changes := list(_changes(node))):
                text = source[node.lineno + shift - 1].strip().removesuffix(":")
                for kind, how, change in changes:
                    yield _Place(kind, how, function, node.lineno + shift, text, change)


def _functions(action: Action, wanted: Callable[[FunctionType], bool]) -> list[FunctionType]:
    """The functions of an action and the wanted ones of its helpers, each text once, in reading order."""
    found: dict[CodeType, FunctionType] = {}

    def visit(function: Any) -> None:
        if isinstance(function, FunctionType) and function.__code__ not in found:
            found[function.__code__] = function
            for helper in map(inspect.unwrap, helpers_of(function)):
                if isinstance(helper, FunctionType) and wanted(helper):
                    visit(helper)

    for role in _ROLES:
        if (root := getattr(action, role)) is not None:
            visit(inspect.unwrap(root))
    return list(found.values())


_ROLES = ("function", "answered")
"""The functions that an action has."""


def _lines(action: Action, old: str, new: str) -> Iterator[_Place]:
    """The lines of an action and of all its helpers that have the text `old`, to be changed to `new`."""
    for function in _functions(action, lambda _: True):
        tree, shift = function_tree(function)
        source = linecache.getlines(function.__code__.co_filename)
        for line in dict.fromkeys(node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)):
            text = source[line + shift - 1].strip()
            if old in text and not text.startswith("def "):
                yield _Place(LINE, "with", function, line + shift, text, _saying(text.replace(old, new)))


def _saying(text: str) -> Callable[[ast.stmt], Any]:
    """A change of a statement, or of the condition of an `if`, to what `text` says."""

    def change(node: ast.stmt) -> Any:
        if isinstance(node, ast.If):
            condition = ast.parse(text.removeprefix("el").removesuffix(":").removeprefix("if "), mode="eval")
            return ast.If(_at(condition.body, node), node.body, node.orelse, lineno=node.lineno)
        return [_at(statement, node) for statement in ast.parse(text).body]

    return change


def _at(new: Any, node: ast.stmt) -> Any:
    for part in ast.walk(new):
        ast.copy_location(part, node)
    return new


def _matters(helper: FunctionType) -> bool:
    """Whether a helper writes or guards, itself or in one that it calls.

    One that only computes a value is part of the line that uses it.
    """
    return any(map(_writes_or_guards, _reached([helper])))


def _writes_or_guards(function: FunctionType) -> bool:
    return _tree_writes_or_guards(function_tree(function)[0])


@functools.cache
def _tree_writes_or_guards(tree: ast.AST) -> bool:
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return any(kind in (EFFECT, GUARD, REFUSAL) for node in statements for kind, _, _ in _changes(node))


def _reached(roots: Iterable[FunctionType]) -> dict[FunctionType, list[FunctionType]]:
    """Whom each function uses: of some functions, and of those that they use, directly or through others."""
    used: dict[FunctionType, list[FunctionType]] = {}
    todo = list(roots)
    while todo:
        function = todo.pop()
        if function not in used:
            helpers = map(inspect.unwrap, helpers_of(function))
            used[function] = [h for h in helpers if isinstance(h, FunctionType)]
            todo += used[function]
    return used


def _changes(node: ast.stmt) -> Iterator[tuple[str, str, Callable[[ast.stmt], ast.stmt]]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Name) and called.id == "when":
            yield GUARD, "without", _pass
        elif isinstance(called, ast.Name) and called.id == "refuse_unless":
            yield REFUSAL, "without", _pass
            yield ANSWER, "refused and yet done:", _answer_only
        elif isinstance(called, ast.Attribute) and called.attr in _FAMILY_WRITES:
            yield EFFECT, "without", _pass
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(isinstance(x, (ast.Attribute, ast.Subscript)) for x in targets):
            yield EFFECT, "without", _pass
    elif isinstance(node, ast.If):
        yield BRANCH, "always taken:", lambda n: _test(n, value=True)
        yield BRANCH, "never taken:", lambda n: _test(n, value=False)


def _pass(node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Pass(), node)


def _answer_only(node: ast.stmt) -> ast.stmt:
    assert isinstance(node, ast.Expr)  # noqa: S101
    assert isinstance(node.value, ast.Call)  # noqa: S101
    name = ast.copy_location(ast.Name("answer_refused_unless__", ast.Load()), node)
    state = ast.copy_location(ast.Name("state__", ast.Load()), node)
    call = ast.Call(name, [state, *node.value.args], node.value.keywords)
    return ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)


def _test(node: ast.stmt, *, value: bool) -> ast.stmt:
    assert isinstance(node, ast.If)  # noqa: S101
    test = ast.copy_location(ast.Constant(value), node.test)
    return ast.copy_location(ast.If(test, node.body, node.orelse), node)


class _Replace(ast.NodeTransformer):
    def __init__(self, line: int, place: _Place) -> None:
        self.line, self.place, self.hit = line, place, False

    def visit(self, node: ast.AST) -> Any:
        if (
            not self.hit
            and isinstance(node, ast.stmt)
            and node.lineno == self.line
            and (self.place.kind == LINE or any(kind == self.place.kind for kind, _, _ in _changes(node)))
        ):
            self.hit = True
            return self.place.change(node)
        return self.generic_visit(node)


def _mutant(protocol: Protocol, action: Action, chosen: tuple[_Place, ...]) -> Mutant:
    changed = action
    for place in chosen:
        made = _rebuilt(changed, place)
        changed = replace(
            changed,
            function=made.get("function", changed.function),
            answered=made.get("answered", changed.answered),
        )
    first = chosen[0]
    text = "` and `".join(p.text for p in chosen)
    name = f"{protocol.name} with {action.name} {first.how} {text}"
    whole = protocol.variant(name)
    whole.actions[action.name] = changed
    kind = first.kind if len(chosen) == 1 else "pair"
    return Mutant(kind, action.name, first.function.__code__.co_filename, first.line, text, first.how, whole)


def _rebuilt(action: Action, place: _Place) -> dict[str, FunctionType]:
    """The functions of an action with the statement at `place` changed, on every path that leads to it."""
    found = {role: getattr(action, role) for role in _ROLES}
    roots: dict[str, Any] = {role: inspect.unwrap(f) for role, f in found.items() if f is not None}
    used = _reached(roots.values())
    made = {f: _edited(f, place) for f in used if _same_text(place.function, f)}
    edited = set(made)
    while more := [f for f, helpers in used.items() if f not in made and any(h in made for h in helpers)]:
        made.update((f, _with_globals(f, f.__code__, dict(f.__globals__))) for f in more)
    for old, new in made.items():
        _use_made(old, new, [h for h in used[old] if h in made], made)
    if not edited:
        raise ModelError(
            f"{place.function.__name__} is not reached from {action.name}", instead="name a line that it runs"
        )
    return {role: made[root] for role, root in roots.items() if root in made}


def _use_made(
    old: FunctionType,
    new: FunctionType,
    helpers: Iterable[FunctionType],
    made: Mapping[FunctionType, FunctionType],
) -> None:
    """Let a function that was made anew use the helpers that were made anew, by the names that it has."""
    left = set(helpers)
    for name, value in old.__globals__.items():
        helper = inspect.unwrap(value) if callable(value) else value
        if isinstance(helper, FunctionType) and helper in made:
            new.__globals__[name] = made[helper]
            left.discard(helper)
    held = [cell.cell_contents for cell in old.__closure__ or () if callable(cell.cell_contents)]
    left |= {h for value in held if isinstance(h := inspect.unwrap(value), FunctionType) and h in made}
    if left:
        raise ModelError(
            f"{next(iter(left)).__name__} is not reached from {old.__name__} by a global name",
            instead="define helpers with effects at the top of a module",
        )


def _same_text(wanted: FunctionType, function: FunctionType) -> bool:
    a, b = (_WRITTEN.get(f.__code__, f.__code__) for f in (wanted, function))
    return (a.co_filename, a.co_firstlineno, a.co_name) == (b.co_filename, b.co_firstlineno, b.co_name)


_EDITED_TREES: dict[CodeType, ast.AST] = {}
_WRITTEN: dict[CodeType, CodeType] = {}
"""What was written, by what became of it: that has no decorators, and so begins on another line."""


def _edited(function: FunctionType, place: _Place) -> FunctionType:
    known = _EDITED_TREES.get(function.__code__)
    if known is None:
        tree, shift = function_tree(function)
        tree = ast.increment_lineno(copy.deepcopy(tree), shift)
    else:
        tree = copy.deepcopy(known)
    editor = _Replace(place.line, place)
    new = editor.visit(tree)
    if not editor.hit:
        raise ModelError(
            f"line {place.line} of {function.__name__} cannot be changed", instead="put it on its own line"
        )
    functions = (n for n in ast.walk(new) if isinstance(n, ast.FunctionDef))
    definition = next(n for n in functions if n.name == function.__name__)
    definition.decorator_list = []
    if place.kind == ANSWER:
        argument = definition.args.args[0].arg
        target, value = ast.Name("state__", ast.Store()), ast.Name(argument, ast.Load())
        alias = ast.Assign([target], value, lineno=definition.lineno)
        definition.body.insert(0, ast.fix_missing_locations(ast.copy_location(alias, definition.body[0])))
    body: list[ast.stmt] = [definition]
    if function.__code__.co_freevars:
        arguments = [ast.arg(n) for n in function.__code__.co_freevars]
        signature = ast.arguments([], arguments, None, [], [], None, [])
        outer = ast.copy_location(ast.FunctionDef("outer__", signature, [definition], []), definition)
        body = [outer]
    module = ast.fix_missing_locations(ast.Module(body, []))
    code = _find(compile(module, function.__code__.co_filename, "exec"), function.__name__)
    _EDITED_TREES[code] = new
    _WRITTEN[code] = _WRITTEN.get(function.__code__, function.__code__)
    names = {**function.__globals__, "answer_refused_unless__": answer_refused_unless}
    return _with_globals(function, code, names)


def _find(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            if constant.co_name == "outer__":
                return _find(constant, name)
    raise ModelError(f"no code for {name}", instead="define it with def")


def _with_globals(function: FunctionType, code: CodeType, names: dict[str, Any]) -> FunctionType:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[n] for n in code.co_freevars)
    made = FunctionType(code, names, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    made.__module__ = function.__module__
    mark_checked(made)
    return made
