"""Terms: what a model's expressions become when an action or a claim is read symbolically.

Terms are immutable and hash-consed (equal terms are the same object), so comparing them is `is` and a
rewriting pass costs one visit per distinct term. The constructors simplify; they never fork and never look at
a scope. What may not live here: anything that knows about actions, solvers or machine code.

Operations, by name: ``const var bound limit not and or eq le add neg ite select store fill lambda forall
exists count``. A family (domain `Array`) is one term; `store`, `fill` and `lambda` make new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fencepost.model.domains import (
    BOOLEAN,
    INTEGER,
    Boolean,
    Counter,
    Enumeration,
    Integer,
    LeafDomain,
    Range,
    Sort,
)
from fencepost.model.nodes import Array as Array  # noqa: PLC0414  # whoever has terms has their nodes, too
from fencepost.model.nodes import Term as Term  # noqa: PLC0414
from fencepost.model.nodes import TermDomain as TermDomain  # noqa: PLC0414
from fencepost.model.nodes import node


def kind(domain: TermDomain) -> TermDomain:
    """What may be compared with what: all numbers are one kind, each sort and enumeration its own."""
    return INTEGER if isinstance(domain, (Counter, Range, Integer)) else domain


TRUE: Final = node("const", True, (), BOOLEAN)
FALSE: Final = node("const", False, (), BOOLEAN)


def boolean(value: bool) -> Term:
    """The constant `value`."""
    return TRUE if value else FALSE


def integer(value: int) -> Term:
    """The number `value`."""
    return node("const", int(value), (), INTEGER)


def constant(value: int, domain: LeafDomain) -> Term:
    """A constant of `domain` by its code: 0/1, the number itself, the element's or member's index."""
    if isinstance(domain, Boolean):
        return boolean(bool(value))
    if isinstance(domain, (Sort, Enumeration)):
        return node("const", int(value), (), domain)
    return integer(value)


def variable(name: str, domain: TermDomain) -> Term:
    """A state variable's value (a name that ends in ' is its value after the step)."""
    return node("var", name, (), domain)


def bound(name: str, domain: LeafDomain) -> Term:
    """A parameter of an action, or the variable of a quantifier."""
    return node("bound", name, (), domain)


def limit_of(domain: LeafDomain) -> Term:
    """The largest value of a numeric domain: of a counter the scope's bound, which a proof lacks."""
    if isinstance(domain, Counter):
        return node("limit", domain.name, (), INTEGER)
    assert isinstance(domain, Range)  # noqa: S101
    return integer(domain.high)


def is_const(term: Term) -> bool:
    """Whether `term` is a constant."""
    return term.op == "const"


def not_(a: Term) -> Term:
    """Negation."""
    if a.op == "const":
        return FALSE if a.payload else TRUE
    if a.op == "not":
        return a.args[0]
    return node("not", None, (a,), BOOLEAN)


def and_(items: Iterable[Term]) -> Term:
    """Conjunction; flattened, without repetitions, false when it contains a contradiction."""
    return _junction("and", items, TRUE, FALSE)


def or_(items: Iterable[Term]) -> Term:
    """Disjunction; flattened, without repetitions, true when it contains a term and its negation."""
    return _junction("or", items, FALSE, TRUE)


def _junction(op: str, items: Iterable[Term], neutral: Term, absorbing: Term) -> Term:
    seen: dict[Term, None] = {}
    for item in items:
        for part in item.args if item.op == op else (item,):
            if part is neutral:
                continue
            if part is absorbing or not_(part) in seen:
                return absorbing
            seen[part] = None
    if not seen:
        return neutral
    if len(seen) == 1:
        return next(iter(seen))
    return node(op, None, tuple(seen), BOOLEAN)


def implies(a: Term, b: Term) -> Term:
    """Implication."""
    return or_((not_(a), b))


def low_of(term: Term) -> int | None:
    """The smallest value at any size, if known."""
    if term.op == "const":
        return int(term.payload or 0)
    if term.op == "add":
        parts = [low_of(a) for a in term.args]
        return None if None in parts else sum(p for p in parts if p is not None)
    if term.op == "ite":
        low = [low_of(a) for a in term.args[1:]]
        return None if None in low else min(p for p in low if p is not None)
    domain = term.domain.value if isinstance(term.domain, Array) else term.domain
    if isinstance(domain, Range):
        return domain.low
    return 0 if isinstance(domain, Counter) or term.op == "count" else None


def high_of(term: Term) -> int | None:
    """The largest value at any size, if known."""
    if term.op == "const":
        return int(term.payload or 0)
    if term.op == "add":
        parts = [high_of(a) for a in term.args]
        return None if None in parts else sum(p for p in parts if p is not None)
    if term.op == "ite":
        high = [high_of(a) for a in term.args[1:]]
        return None if None in high else max(p for p in high if p is not None)
    domain = term.domain.value if isinstance(term.domain, Array) else term.domain
    return domain.high if isinstance(domain, Range) else None


def _split(term: Term) -> tuple[Term | None, int]:
    """`term` as (rest, constant): x + 1 is (x, 1)."""
    if term.op == "const":
        return None, int(term.payload or 0)
    if term.op == "add" and term.args[1].op == "const":
        return term.args[0], int(term.args[1].payload or 0)
    return term, 0


def without_constant(term: Term) -> tuple[Term, int]:
    """A number as a term and the constant that is added to it; of a constant alone, the term is zero."""
    rest, number = _split(term)
    return (integer(0) if rest is None else rest), number


def add(a: Term, b: Term) -> Term:
    """The sum; constants are gathered on the right."""
    rest_a, n = _split(a)
    rest_b, m = _split(b)
    if rest_a is None and rest_b is None:
        return integer(n + m)
    if rest_a is None or rest_b is None:
        rest = rest_a or rest_b
        assert rest is not None  # noqa: S101
        return rest if n + m == 0 else node("add", None, (rest, integer(n + m)), INTEGER)
    total = node("add", None, (rest_a, rest_b), INTEGER)
    return total if n + m == 0 else node("add", None, (total, integer(n + m)), INTEGER)


def negate(a: Term) -> Term:
    """Minus a; of constants and of variables under a difference (kept as a product by -1)."""
    rest, n = _split(a)
    if rest is None:
        return integer(-n)
    if rest.op == "neg":
        return add(rest.args[0], integer(-n))
    return add(node("neg", None, (rest,), INTEGER), integer(-n))


def eq(a: Term, b: Term) -> Term:  # noqa: PLR0912, C901
    """Equality of two values of one kind."""
    if a is b:
        return TRUE
    if a.op == "const" and b.op == "const":
        return boolean(a.payload == b.payload)
    if isinstance(a.domain, Boolean):
        for x, y in ((a, b), (b, a)):
            if x.op == "const":
                return y if x.payload else not_(y)
    else:
        (rest_a, n), (rest_b, m) = (_split(a), _split(b)) if kind(a.domain) is INTEGER else ((a, 0), (b, 0))
        if kind(a.domain) is INTEGER:
            if rest_a is rest_b:
                return boolean(n == m)
            if rest_a is not None and rest_b is not None:
                # The constant stands on the side where it is positive.
                less, more, by = (rest_a, rest_b, m - n) if n <= m else (rest_b, rest_a, n - m)
                a, b = less, add(more, integer(by))
            elif rest_b is None and rest_a is not None and n:
                a, b = rest_a, integer(m - n)
            elif rest_a is None and rest_b is not None and m:
                a, b = rest_b, integer(n - m)
            if lt(a, b) is TRUE or lt(b, a) is TRUE:
                return FALSE
        if a.op == "const":
            a, b = b, a
        if b.op == "const" and a.op == "ite" and (a.args[1].op == "const" or a.args[2].op == "const"):
            return ite(a.args[0], eq(a.args[1], b), eq(a.args[2], b))
    if b.op != "const" and a.rank > b.rank:
        a, b = b, a
    return node("eq", None, (a, b), BOOLEAN)


def lt(a: Term, b: Term) -> Term:
    """Strictly less."""
    return le(add(a, integer(1)), b)


def le(a: Term, b: Term) -> Term:
    """Less or equal; decided when the values' ranges at every size decide it."""
    rest_a, n = _split(a)
    rest_b, m = _split(b)
    if rest_a is rest_b:
        return boolean(n <= m)
    for choice in (a, b):
        if choice.op == "ite" and all(x.op == "const" for x in (a, b, *choice.args[1:]) if x is not choice):
            yes, no = ((le(x, b) if choice is a else le(a, x)) for x in choice.args[1:])
            return ite(choice.args[0], yes, no)
    high_a, low_b = high_of(a), low_of(b)
    if high_a is not None and low_b is not None and high_a <= low_b:
        return TRUE
    low_a, high_b = low_of(a), high_of(b)
    if low_a is not None and high_b is not None and low_a > high_b:
        return FALSE
    left = rest_a if rest_a is not None else integer(0)
    right = rest_b if rest_b is not None else integer(0)
    left = add(left, integer(n - m)) if n > m else left
    right = add(right, integer(m - n)) if m > n else right
    return node("le", None, (left, right), BOOLEAN)


def ite(condition: Term, a: Term, b: Term) -> Term:
    """`a` where `condition` holds, else `b`."""
    if condition is TRUE or a is b:
        return a
    if condition is FALSE:
        return b
    if condition.op == "not":
        return ite(condition.args[0], b, a)
    if isinstance(a.domain, Boolean):
        a, b = (TRUE if a is condition else a), (FALSE if b is condition else b)
        a, b = (FALSE if a is not_(condition) else a), (TRUE if b is not_(condition) else b)
        if a.op == "const":
            return or_((condition, b)) if a.payload else and_((not_(condition), b))
        if b.op == "const":
            return or_((not_(condition), a)) if b.payload else and_((condition, a))
    if a.op == "ite" and a.args[0] is condition:
        a = a.args[1]
    if b.op == "ite" and b.args[0] is condition:
        b = b.args[2]
    if a is b:
        return a
    return node("ite", None, (condition, a, b), a.domain if a.domain == b.domain else kind(a.domain))


def select(array: Term, index: tuple[Term, ...]) -> Term:
    """The cell of a family at `index`."""
    assert isinstance(array.domain, Array)  # noqa: S101
    if array.op == "fill":
        return array.args[0]
    if array.op == "lambda":
        return substitute(array.args[-1], dict(zip(array.args[:-1], index, strict=True)))
    if array.op == "ite":
        return ite(array.args[0], select(array.args[1], index), select(array.args[2], index))
    if array.op == "store":
        same = and_(eq(i, j) for i, j in zip(array.args[1:-1], index, strict=True))
        if same is TRUE:
            return array.args[-1]
        if same is FALSE:
            return select(array.args[0], index)
        return ite(same, array.args[-1], select(array.args[0], index))
    return node("select", None, (array, *index), array.domain.value)


def store(array: Term, index: tuple[Term, ...], value: Term) -> Term:
    """The family with one cell replaced."""
    if array.op == "store" and array.args[1:-1] == index:
        array = array.args[0]
    if value.op == "select" and value.args[0] is array and value.args[1:] == index:
        return array
    return node("store", None, (array, *index, value), array.domain)


def fill(domain: Array, value: Term) -> Term:
    """The family with the same value everywhere."""
    return node("fill", None, (value,), domain)


def function(variables: tuple[Term, ...], body: Term, domain: Array) -> Term:
    """The family whose cell at `variables` is `body`."""
    return node("lambda", None, (*variables, body), domain)


def _quantifier(op: str, variables: tuple[Term, ...], body: Term) -> Term:
    mentioned = variables_of((body,))
    variables = tuple(v for v in variables if v in mentioned)
    return node(op, None, (*variables, body), BOOLEAN) if variables else body


def forall(variables: tuple[Term, ...], body: Term) -> Term:
    """`body` for every value of `variables` (no domain is empty)."""
    return _quantifier("forall", variables, body)


def exists(variables: tuple[Term, ...], body: Term) -> Term:
    """`body` for some value of `variables`."""
    return _quantifier("exists", variables, body)


def count(variables: tuple[Term, ...], body: Term) -> Term:
    """For how many values `body` holds: a finite reading only."""
    return integer(0) if body is FALSE else node("count", None, (*variables, body), INTEGER)


def rebuild(term: Term, args: tuple[Term, ...]) -> Term:
    """The same operation on other operands, simplified again."""
    return _BUILDERS[term.op](term, args)


_BUILDERS: Mapping[str, Callable[[Term, tuple[Term, ...]], Term]] = {
    "not": lambda _, a: not_(a[0]),
    "and": lambda _, a: and_(a),
    "or": lambda _, a: or_(a),
    "eq": lambda _, a: eq(a[0], a[1]),
    "le": lambda _, a: le(a[0], a[1]),
    "add": lambda _, a: add(a[0], a[1]),
    "neg": lambda _, a: negate(a[0]),
    "ite": lambda _, a: ite(a[0], a[1], a[2]),
    "select": lambda _, a: select(a[0], a[1:]),
    "store": lambda _, a: store(a[0], a[1:-1], a[-1]),
    "fill": lambda t, a: node("fill", None, a, t.domain),
    "lambda": lambda t, a: node("lambda", None, a, t.domain),
    "forall": lambda _, a: forall(a[:-1], a[-1]),
    "exists": lambda _, a: exists(a[:-1], a[-1]),
    "count": lambda _, a: count(a[:-1], a[-1]),
}
BINDERS: Final = frozenset({"forall", "exists", "count", "lambda"})


def substitute(term: Term, replace: Mapping[Term, Term], cache: dict[Term, Term] | None = None) -> Term:
    """`term` with free variables replaced. A bound variable that would capture something is renamed first."""
    done: dict[Term, Term] = {} if cache is None else cache
    incoming = frozenset().union(*(free_bounds(value) for value in replace.values()))

    def visit(t: Term) -> Term:
        found = done.get(t)
        if found is not None:
            return found
        if t in replace:
            result = replace[t]
        elif not t.args:
            result = t
        elif t.op in BINDERS and any(v in incoming or v in replace for v in t.args[:-1]):
            result = visit(_renamed(t, incoming | replace.keys()))
        else:
            args = tuple([visit(a) for a in t.args])
            result = t if args == t.args else rebuild(t, args)
        done[t] = result
        return result

    return visit(term)


def _renamed(term: Term, taken: frozenset[Term]) -> Term:
    """A binder with variables of other names: none of `taken`, and none that its body has."""
    avoid = {*taken, *variables_of([term.args[-1]])}
    names: dict[Term, Term] = {}
    for variable in term.args[:-1]:
        assert isinstance(variable.domain, LeafDomain)  # noqa: S101
        other, number = variable, 0
        while other in avoid:
            number += 1
            other = bound(f"{variable.payload}~{number}", variable.domain)
        avoid.add(other)
        names[variable] = other
    return rebuild(term, (*names.values(), substitute(term.args[-1], names)))


_FREE: dict[Term, frozenset[Term]] = {}


def free_bounds(term: Term) -> frozenset[Term]:
    """The `bound` variables that occur in `term` outside of their binders."""
    found = _FREE.get(term)
    if found is None:
        if term.op == "bound":
            found = frozenset((term,))
        else:
            found = frozenset().union(*(free_bounds(a) for a in term.args))
            if term.op in BINDERS:
                found -= frozenset(term.args[:-1])
        _FREE[term] = found
    return found


def variables_of(terms: Iterable[Term]) -> dict[Term, None]:
    """Every `var` and `bound` node below `terms`, in order of first appearance."""
    seen: set[Term] = set()
    found: dict[Term, None] = {}
    stack = list(terms)
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.op in ("var", "bound"):
            found[t] = None
        stack.extend(t.args)
    return found


_INFIX: Final = {"eq": "==", "le": "<=", "add": "+", "and": "and", "or": "or"}


def show(term: Term) -> str:
    """`term` as a person would write it."""
    args = [show(a) for a in term.args]
    if term.op == "const":
        if isinstance(term.domain, Enumeration):
            return term.domain.members[int(term.payload or 0)].name
        if isinstance(term.domain, Sort):
            return term.domain.element(int(term.payload or 0)).label
        return str(term.payload)
    if term.op in ("var", "bound"):
        return str(term.payload)
    if term.op == "limit":
        return f"limit of {term.payload}"
    if term.op == "not":
        return f"not {args[0]}"
    if term.op in _INFIX:
        return "(" + f" {_INFIX[term.op]} ".join(args) + ")"
    if term.op == "ite":
        return f"({args[1]} if {args[0]} else {args[2]})"
    if term.op == "select":
        return f"{args[0]}[{', '.join(args[1:])}]"
    if term.op == "neg":
        return f"-{args[0]}"
    if term.op in BINDERS:
        return f"{term.op}({', '.join(args[:-1])}: {args[-1]})"
    return f"{term.op}({', '.join(args)})"
