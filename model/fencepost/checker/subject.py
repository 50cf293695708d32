"""What is checked: a protocol together with its claims, from the built-in core or from a user's file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from fencepost.model import FencepostError, Protocol, Scope
from fencepost.model.protocol import did_you_mean
from fencepost.properties import CORE, Claim, Claims, Kind


class UsageError(FencepostError):
    """Something was asked for that does not exist; the message offers what does."""


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
        return found

    def chosen(self, ids: Iterable[str] = ()) -> list[Claim]:
        """The promises with these ids or names; all of them when none is given."""
        wanted = list(ids)
        promises = self.claims.promises()
        if not wanted:
            return promises
        known = [*dict.fromkeys(c.id for c in promises), *(c.name for c in promises)]
        for one in wanted:
            if one not in known:
                raise UsageError(f"no claim {one!r}: {did_you_mean(one, known, 'see `fencepost list`')}")
        return [c for c in promises if c.id in wanted or c.name in wanted]

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
        sys.path.insert(0, folder)  # the file may import its neighbours
    try:
        spec.loader.exec_module(module)
    except FencepostError:
        raise
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: {error.msg}; mend the file") from error
    except Exception as error:
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        where = f"{path}:{lines[-1].lineno}" if lines else str(path)
        raise UsageError(f"{where}: {type(error).__name__}: {error}; mend the file") from error
    return module
