"""What is checked: a protocol together with its claims, from the built-in core or from a user's file."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from fencepost.model import FencepostError, Protocol, Scope
from fencepost.model.domains import Range
from fencepost.model.protocol import did_you_mean
from fencepost.properties import CORE, Claim, Claims, Kind


class UsageError(FencepostError):
    """Something was asked for that does not exist; the message offers what does."""


MOST_ELEMENTS, MOST_BOUND = 64, 10**6
"""The largest sizes and bounds of a scope. Far beyond what a search can end in; more only takes memory."""


def refuse_beyond_limits(scope: Scope) -> None:
    """UsageError for sizes and bounds that are no whole numbers, or beyond any search."""
    for table, least, most, what in (
        (scope.sizes, 1, MOST_ELEMENTS, "size"), (scope.bounds, 0, MOST_BOUND, "bound"),
    ):  # fmt: skip
        for name, number in table.items():
            if type(number) is not int:
                raise UsageError(f"scope {scope.name!r}: {name}={number!r} is no {what}; give a whole number")
            if not least <= number <= most:
                shown = number if number < 10**12 else "10**12 or more"  # such as 10**5000, which has no text
                raise UsageError(
                    f"scope {scope.name!r}: {name}={shown} is no {what} from {least} to {most:,}: "
                    "every combination of values is laid out and looked at; a search of more would never end"
                )


@dataclass(frozen=True, slots=True)
class Subject:
    """A protocol and the claims about it; `file` is the user's own, `unbroken` the model that it varies."""

    protocol: Protocol
    claims: Claims
    file: str = ""
    variant: str = ""
    unbroken: Protocol | None = None

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"variant {self.variant}" if self.variant and self.unbroken is not None else self.protocol.name

    def scope(self, name: str) -> Scope:
        """A scope by name."""
        found = self.protocol.scopes.get(name)
        if found is None:
            remedy = did_you_mean(name, self.protocol.scopes, "it has none")
            raise UsageError(f"{self.protocol.name} has no scope {name!r}: {remedy}")
        self.refuse_beyond_limits(found)
        return found

    def refuse_beyond_limits(self, scope: Scope) -> None:
        """UsageError for a scope that no finite reading could look at: it would only be busy without end."""
        refuse_beyond_limits(scope)
        ranges = [d for a in self.protocol.actions.values() for _, d in a.parameters]
        ranges += [d for v in self.protocol.variables.values() for d in v.index]
        for domain in ranges:
            if isinstance(domain, Range) and domain.high - domain.low > MOST_BOUND:
                raise UsageError(
                    f"{self.protocol.name} has a parameter or index of Range({domain.low}, {domain.high}); "
                    f"each number is tried, so it may have {MOST_BOUND:,} at most"
                )

    def chosen(self, ids: Iterable[str] = ()) -> list[Claim]:
        """The promises with these ids or names, all when none is given; supporting invariants by name."""
        wanted = list(ids)
        promises = self.claims.promises()
        if not wanted:
            return promises
        candidates = [*promises, *self.supporting()]
        known = dict.fromkeys(x for c in candidates for x in (c.id, c.name))
        for one in wanted:
            if one not in known:
                close = difflib.get_close_matches(one, known, n=3)
                ids_only = dict.fromkeys(c.id for c in promises)
                remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else "see `fencepost list`"
                there = f"; the claims are {', '.join(ids_only)}" if ids_only and not close else ""
                raise UsageError(f"no claim {one!r}: {remedy}{there}")
        return [c for c in candidates if c.id in wanted or c.name in wanted]

    def supporting(self) -> list[Claim]:
        """The supporting invariants."""
        return list(self.claims.of_kind(Kind.SUPPORTING))

    def fingerprint(self) -> str:
        """A hash of the protocol's source text, its variables and answers: changes when the model does."""
        return fingerprint(self.protocol)


def fingerprint(protocol: Protocol) -> str:
    """A hash of what a protocol does."""
    from fencepost.model.errors import NeedsFiniteError
    from fencepost.model.trace import trace_action

    digest = hashlib.sha256()
    for variable in protocol.variables.values():
        digest.update(repr((variable.name, variable.index, variable.domain, variable.initially)).encode())
    for action in protocol.actions.values():
        digest.update(repr((action.name, action.actor, action.switch, action.parameters)).encode())
        try:
            for command in trace_action(protocol, action):
                digest.update(
                    repr((command.outcome, command.guard, sorted(command.updates.items()))).encode()
                )
        except NeedsFiniteError:
            digest.update(action.function.__code__.co_code)
    return digest.hexdigest()[:16]


def core_subject(variant: str = "") -> Subject:
    """The built-in core, or one of its variants."""
    from fencepost.model.core import core

    if not variant:
        return Subject(core, CORE)
    from fencepost.model.core.variants import VARIANTS

    if variant not in VARIANTS:
        raise UsageError(
            f"no variant {variant!r}: {did_you_mean(variant, VARIANTS, 'see `fencepost list variants`')}"
        )
    return Subject(VARIANTS[variant].protocol, CORE, variant=variant, unbroken=core)


def load(file: str = "", *, variant: str = "") -> Subject:
    """The subject of a command: the core or a variant of it, with what a user's file adds.

    In the file, every `Claims` object adds its claims, and a `Protocol` object (``core.variant(…)``,
    ``core.extended(…)`` or one of its own) takes the core's place. UsageError says what is wrong with a file.
    """
    if not file:
        return core_subject(variant)
    module = _run(Path(file))
    values = list(vars(module).values())
    own_claims = [v for v in values if isinstance(v, Claims) and v is not CORE]
    base = core_subject(variant)
    protocols = {id(v): v for v in values if isinstance(v, Protocol) and v is not base.protocol}
    protocols = {k: v for k, v in protocols.items() if v.name != "core"}
    if len(protocols) > 1:
        names = ", ".join(p.name for p in protocols.values())
        raise UsageError(
            f"{file} defines several protocols ({names}); keep one in a file, or delete the names of others"
        )
    if not own_claims and not protocols:
        raise UsageError(
            f"{file} defines neither claims nor a protocol; write `mine = Claims('mine')` and decorate "
            "functions with @mine.always() or @mine.each_step(), or make a protocol with core.variant(…)"
        )
    subject = base
    if protocols:
        protocol = next(iter(protocols.values()))
        if variant:
            raise UsageError(
                f"{file} brings its own protocol, {protocol.name!r}, so the variant {variant!r} would not be "
                "looked at; leave one of the two out"
            )
        related = set(base.protocol.variables) <= set(protocol.variables)
        claims = base.claims if related else Claims(protocol.name)
        subject = Subject(
            protocol, claims, unbroken=base.protocol if related else None, variant=protocol.name
        )
    claims = subject.claims
    for own in own_claims:
        claims = claims.joined(own.claims.values())
    return replace(subject, claims=claims, file=str(file))


def own_claims(subject: Subject) -> list[Claim]:
    """The promises that a user's file added."""
    return [c for c in subject.claims.promises() if c.name not in CORE.claims]


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give the path of a Python file with claims or a protocol")
    name = f"fencepost_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as Python; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import its neighbours; last, so that none hides a module
    try:
        spec.loader.exec_module(module)
    except FencepostError:
        raise
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: {error.msg}; mend the file") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a sys.exit(0) as well: it would look like success
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        where = f"{path}:{lines[-1].lineno}" if lines else str(path)
        raise UsageError(f"{where}: {type(error).__name__}: {error}; mend the file") from error
    return module
