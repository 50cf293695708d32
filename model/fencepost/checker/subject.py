"""What is checked: a protocol together with its claims, one of those that are built in, or of a user's file.

`BUILT_IN` is the registry of the protocols that come with fencepost. All else asks it: a protocol is added
there, with its claims, its variants, and the scopes that are looked at where none is named.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from fencepost.checker.fingerprints import fingerprint
from fencepost.model import FencepostError, Protocol, Scope
from fencepost.model.clocks import clocks
from fencepost.model.clocks import scopes as clocks_scopes
from fencepost.model.core import core
from fencepost.model.domains import Range
from fencepost.model.effects import effects
from fencepost.model.effects import scopes as effects_scopes
from fencepost.model.protocol import did_you_mean, listed
from fencepost.model.recovery import recovery
from fencepost.model.recovery import scopes as recovery_scopes
from fencepost.model.replay import replay
from fencepost.model.replay import scopes as replay_scopes
from fencepost.model.triggers import scopes as triggers_scopes
from fencepost.model.triggers import triggers
from fencepost.model.workflow import scopes as workflow_scopes
from fencepost.model.workflow import workflow
from fencepost.properties import (
    CLOCKS,
    CORE,
    EFFECTS,
    RECOVERY,
    REPLAY,
    TRIGGERS,
    WORKFLOW,
    Claim,
    ClaimError,
    Claims,
    Kind,
)

if TYPE_CHECKING:
    from fencepost.model.variants import Variant


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
    """A protocol and the claims about it; `file` is the user's own, `unbroken` the model that it varies.

    Raises ClaimError for a claim that needs a switch off which the protocol does not have.
    """

    protocol: Protocol
    claims: Claims
    file: str = ""
    variant: str = ""
    unbroken: Protocol | None = None

    def __post_init__(self) -> None:
        switches = self.protocol.switches
        for claim in self.claims.claims.values():
            for name in claim.needs_off:
                if name not in switches:
                    remedy = did_you_mean(name, switches, empty="it has no switch at all")
                    raise ClaimError(
                        f"claim {claim.name!r} needs the switch {name!r} off, which {self.protocol.name} "
                        f"does not have: {remedy}"
                    )

    @property
    def built_in(self) -> BuiltIn | None:
        """The built-in protocol that this is, or varies; None for a protocol of the user's own."""
        base = self.protocol if self.unbroken is None else self.unbroken
        return next((b for b in BUILT_IN.values() if b.protocol is base), None)

    @property
    def model(self) -> str:
        """The name of the built-in protocol that this is, or varies; else of the user's own."""
        return self.protocol.name if self.built_in is None else self.built_in.name

    @property
    def default_scopes(self) -> tuple[str, ...]:
        """The scopes that are looked at where none is named, in order.

        A built-in variant may have one of its own, in which it is seen to break. A protocol of the user's own
        has `small`, or the first that it declares.
        """
        scopes, base = self.protocol.scopes, self.built_in
        variant = None if base is None or not self.variant else base.variants.get(self.variant)
        own = "" if variant is None else variant.scope
        wanted = (own,) if own else ("small",) if base is None else base.scopes
        return tuple(n for n in wanted if n in scopes) or tuple(scopes)[:1]

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Scopes that go by one name because none alone has everything: `small`, `usual`, `large`.

        A scope of the protocol's own with such a name is that scope, and no group.
        """
        if self.built_in is None:
            return {}
        found = {"small": self.built_in.scopes, **self.built_in.groups}
        return {
            name: tuple(n for n in scopes if n in self.protocol.scopes)
            for name, scopes in found.items()
            if name not in self.protocol.scopes
        }

    def scopes_named(self, name: str) -> tuple[str, ...]:
        """The scopes of a group, or the one of that name; none where the protocol has neither."""
        return self.groups.get(name) or ((name,) if name in self.protocol.scopes else ())

    @property
    def sweep_scopes(self) -> tuple[str, ...]:
        """The scopes in which a sweep looks where none is named, in order."""
        wanted = ("quick",) if self.built_in is None else self.built_in.sweep_scopes
        return tuple(n for n in wanted if n in self.protocol.scopes) or self.default_scopes

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"variant {self.variant}" if self.variant and self.unbroken is not None else self.protocol.name

    def scope(self, name: str = "") -> Scope:
        """A scope by name; without one, the first of those that are looked at by default."""
        name = name or next(iter(self.default_scopes), "small")
        found = self.protocol.scopes.get(name)
        if found is None:
            remedy = did_you_mean(name, [*self.groups, *self.protocol.scopes], empty="it has none")
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
        refuse_unknown(wanted, [self])
        return [c for c in candidates if c.id in wanted or c.name in wanted]

    def has(self, claim: str) -> bool:
        """Whether a promise or supporting invariant has this id or name."""
        return any(claim in (c.id, c.name) for c in (*self.claims.promises(), *self.supporting()))

    def supporting(self) -> list[Claim]:
        """The supporting invariants."""
        return list(self.claims.of_kind(Kind.SUPPORTING))

    def fingerprint(self) -> str:
        """A hash of the protocol's source text, its variables and answers: changes when the model does."""
        return fingerprint(self.protocol)


def refuse_unknown(claims: Iterable[str], subjects: Iterable[Subject]) -> None:
    """UsageError for an id or name that no claim of these subjects has; close ones are offered."""
    among = list(subjects)
    promises = [c for s in among for c in s.claims.promises()]
    candidates = [*promises, *(c for s in among for c in s.supporting())]
    known = dict.fromkeys(x for c in candidates for x in (c.id, c.name))
    for one in claims:
        if one not in known:
            owners = [b.name for b in BUILT_IN.values() if b.subject().has(one)]
            if owners:
                raise UsageError(f"{one} is a claim of {listed(owners)}, which is not looked at here")
            close = difflib.get_close_matches(one, known, n=3)
            ids_only = dict.fromkeys(c.id for c in promises)
            remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else "see `fencepost list`"
            there = f"; the claims are {', '.join(ids_only)}" if ids_only and not close else ""
            raise UsageError(f"no claim {one!r}: {remedy}{there}")


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A protocol that comes with fencepost: what is claimed of it, and what is looked at by default."""

    protocol: Protocol
    claims: Claims
    variants_in: str
    """The module of its `VARIANTS`, which is loaded only when they are asked for."""
    scopes: tuple[str, ...]
    """Looked at where none is named, in order; what each is for, its `why` says."""
    sweep_scopes: tuple[str, ...]
    """The scopes for sweeps, which search a changed protocol hundreds of times."""
    unneeded_in: str
    """The module of its `UNNEEDED`: why lines are there that no claim needs."""
    groups: Mapping[str, tuple[str, ...]]
    """Scopes that go by one name, such as `usual`: looked at together when that is asked for."""
    in_evidence: bool = False
    """Whether `evidence` tells of it without being asked to; there is a minute for all that it tells of."""

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    @property
    def variants(self) -> Mapping[str, Variant]:
        """Its variants by name."""
        found: Mapping[str, Variant] = importlib.import_module(self.variants_in).VARIANTS
        return found

    @property
    def unneeded(self) -> Mapping[tuple[str, str], str]:
        """Why lines of it are there that no claim needs, by action and line."""
        found: Mapping[tuple[str, str], str] = importlib.import_module(self.unneeded_in).UNNEEDED
        return found

    def subject(self, variant: str = "") -> Subject:
        """The protocol or one of its variants, with its claims."""
        if not variant:
            return Subject(self.protocol, self.claims)
        _with_variant(variant, [self])
        return Subject(self.variants[variant].protocol, self.claims, variant=variant, unbroken=self.protocol)


def _built_in(
    protocol: Protocol,
    claims: Claims,
    scopes: tuple[str, ...],
    sweep_scopes: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    *,
    in_evidence: bool = False,
) -> BuiltIn:
    """A protocol whose modules are named as all are."""
    name = protocol.name
    return BuiltIn(
        protocol,
        claims,
        f"fencepost.model.{name}.variants",
        scopes,
        sweep_scopes,
        f"fencepost.properties.unneeded_{name}" if name != DEFAULT else "fencepost.properties.unneeded",
        groups,
        in_evidence,
    )


DEFAULT = core.name
"""What claims are about that do not say so."""

BUILT_IN: Mapping[str, BuiltIn] = MappingProxyType(
    {
        b.name: b
        for b in (
            _built_in(core, CORE, ("small",), ("quick",), in_evidence=True),
            _built_in(
                effects,
                EFFECTS,
                ("small", "rederived", "fenced-queryable"),
                effects_scopes.SWEEP,
                effects_scopes.GROUPS,
                in_evidence=True,
            ),
            _built_in(
                workflow, WORKFLOW, workflow_scopes.SMALL, workflow_scopes.SWEEP, workflow_scopes.GROUPS
            ),
            _built_in(
                triggers,
                TRIGGERS,
                ("small", "arrivals", "notices"),
                triggers_scopes.SWEEP,
                triggers_scopes.GROUPS,
            ),
            _built_in(recovery, RECOVERY, ("small", "racing"), recovery_scopes.SWEEP, recovery_scopes.GROUPS),
            _built_in(
                replay, REPLAY, ("small", "direct", "changed"), replay_scopes.SWEEP, replay_scopes.GROUPS
            ),
            _built_in(clocks, CLOCKS, ("small",), clocks_scopes.SWEEP, clocks_scopes.GROUPS),
        )
    }
)
"""By name, in the order in which they are read."""


def built_in(model: str) -> BuiltIn:
    """A built-in protocol by name."""
    if model not in BUILT_IN:
        raise UsageError(f"no model {model!r}: {did_you_mean(model, BUILT_IN, empty='there is none')}")
    return BUILT_IN[model]


def core_subject(variant: str = "") -> Subject:
    """The built-in core, or one of its variants."""
    return BUILT_IN[core.name].subject(variant)


def _with_variant(variant: str, among: Iterable[BuiltIn]) -> BuiltIn:
    """The one that has the variant; UsageError when none has it, or several do."""
    candidates = list(among)
    found = [b for b in candidates if variant in b.variants]
    if not found:
        known = [name for b in candidates for name in b.variants]
        remedy = did_you_mean(variant, known, "see `fencepost list variants`")
        raise UsageError(f"no variant {variant!r}: {remedy}")
    if len(found) > 1:
        names = listed(b.name for b in found)
        raise UsageError(f"{names} each have a variant {variant!r}; say which is meant, with --model")
    return found[0]


def load(file: str = "", *, variant: str = "", model: str = "") -> Subject:
    """One subject: the core, or the built-in `model`; a variant; with what a user's file adds.

    In the file, every `Claims` object adds its claims, and a `Protocol` object (``core.variant(…)``,
    ``core.extended(…)`` or one of its own) takes the place of what it is made from. Of a file with claims
    about several protocols, the first. UsageError says what is wrong with a file.
    """
    if not file and not variant:
        return built_in(model or DEFAULT).subject()
    return load_all(file, variant=variant, model=model)[0]


def load_all(file: str = "", *, variant: str = "", model: str = "") -> tuple[Subject, ...]:
    """All that a command looks at: every built-in protocol, or what `model`, `variant` and a file leave.

    A file of claims is about the protocols that its claims name (``Claims("mine", about="effects")``), the
    core where they name none; a file with a protocol is about that.
    """
    among = [built_in(model)] if model else list(BUILT_IN.values())
    bearer = _with_variant(variant, among) if variant else None
    if not file:
        return (bearer.subject(variant),) if bearer is not None else tuple(b.subject() for b in among)
    module = _run(Path(file))
    values = list(vars(module).values())
    own = [v for v in values if isinstance(v, Claims) and all(v is not b.claims for b in BUILT_IN.values())]
    protocols = {id(v): v for v in values if isinstance(v, Protocol) and v.name not in BUILT_IN}
    if bearer is not None:
        protocols.pop(id(bearer.variants[variant].protocol), None)
    if len(protocols) > 1:
        names = ", ".join(p.name for p in protocols.values())
        raise UsageError(
            f"{file} defines several protocols ({names}); keep one in a file, or delete the names of others"
        )
    if not own and not protocols:
        raise UsageError(
            f"{file} defines neither claims nor a protocol; write `mine = Claims('mine')` and decorate "
            "functions with @mine.always() or @mine.each_step(), or make a protocol with core.variant(…)"
        )
    if protocols:
        if variant:
            (protocol,) = protocols.values()
            raise UsageError(
                f"{file} brings its own protocol, {protocol.name!r}, so the variant {variant!r} would not be "
                "looked at; leave one of the two out"
            )
        return (_with_protocol(file, next(iter(protocols.values())), own, model),)
    return _with_claims(file, own, [bearer] if bearer is not None else among, variant, model)


def _with_protocol(file: str, protocol: Protocol, own: list[Claims], model: str) -> Subject:
    """A protocol of the user's own. One that has all variables of a built-in protocol varies that one."""
    related = [b for b in BUILT_IN.values() if set(b.protocol.variables) <= set(protocol.variables)]
    base = max(related, key=lambda b: len(b.protocol.variables), default=None)
    if model and (base is None or base.name != model):
        raise UsageError(
            f"{file} brings its own protocol, {protocol.name!r}, which is not made from {model}; "
            "leave --model out"
        )
    names = [protocol.name] if base is None else [protocol.name, base.name]
    claims = Claims(protocol.name) if base is None else base.claims
    for mine in own:
        if mine.about and mine.about not in names:
            raise UsageError(
                f"{file}: the claims {mine.name!r} are about {mine.about!r}, and the file's protocol is "
                f"{' of '.join(names)}; put them into a file of their own"
            )
        claims = claims.joined(mine.claims.values())
    unbroken = None if base is None else base.protocol
    return Subject(protocol, claims, file=str(file), unbroken=unbroken, variant=protocol.name)


def _with_claims(
    file: str, own: list[Claims], among: list[BuiltIn], variant: str, model: str
) -> tuple[Subject, ...]:
    """The built-in protocols that a file has claims about, with these claims."""
    unsaid = among[0].name if variant or model else DEFAULT
    about: dict[str, list[Claims]] = {}
    for mine in own:
        about.setdefault(built_in(mine.about or unsaid).name, []).append(mine)
    found = []
    for b in among:
        subject = b.subject(variant)
        claims = subject.claims
        for mine in about.get(b.name, ()):
            claims = claims.joined(mine.claims.values())
        if b.name in about:
            found.append(replace(subject, claims=claims, file=str(file)))
    if not found:
        said = f"the variant {variant!r} is one of {among[0].name}" if variant else f"--model says {model}"
        names = listed(about)
        raise UsageError(f"{file} has claims about {names}, but {said}; leave one of the two out")
    return tuple(found)


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
