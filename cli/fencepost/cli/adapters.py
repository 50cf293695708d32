"""Adapters as the command line names them: ``sqlite``, ``package.module:make``, ``path/to/file.py:make``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from fencepost.checker.subject import Subject, UsageError
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.counterparts import counterparts
from fencepost.conformance.suite import ConformanceSuite
from fencepost.model.protocol import did_you_mean

BUILT_IN = {"sqlite": "fencepost.reference.adapter:make_reference"}

_NEEDED = ("name", "capabilities", "fresh_world", "open_worker", "observe", "close_world")


def load_adapter(spec: str) -> Adapter:
    """The adapter that `spec` names; UsageError says what is missing.

    After the colon stands an adapter, a function without arguments that makes one, or a `ConformanceSuite`.
    Modules are looked up in the current directory as well.
    """
    where, colon, attribute = BUILT_IN.get(spec, spec).rpartition(":")
    if not colon or not where or not attribute:
        remedy = did_you_mean(spec, BUILT_IN, "write package.module:make or path/to/file.py:make")
        raise UsageError(f"{spec!r} names no adapter; {remedy}")
    module = _module(spec, where)
    found: Any = getattr(module, attribute, None)
    if found is None:
        known = [n for n in vars(module) if not n.startswith("_")]
        remedy = did_you_mean(attribute, known, "name a function that makes an adapter").split("; known:")[0]
        raise UsageError(f"{where} has no {attribute!r}; {remedy}")
    adapter = _made(spec, found) if isinstance(found, type) or not hasattr(found, "fresh_world") else found
    missing = [n for n in _NEEDED if not hasattr(adapter, n)]
    if missing:
        raise UsageError(
            f"{spec} gives {type(adapter).__name__}, which is no adapter: it has no {', '.join(missing)}; "
            "see fencepost.conformance.adapter"
        )
    made: Adapter = adapter
    return made


def subjects_for(adapter: Adapter, subjects: Iterable[Subject], claims: Iterable[str] = ()) -> list[Subject]:
    """Those that an implementation can be run beside: the core, and others if it has what they are about.

    UsageError for one of `claims` that only the others have.
    """
    among = list(subjects)
    fitting = [s for s in among if _can_be_asked(s.model, adapter)]
    for claim in claims:
        owners = [s for s in among if s.has(claim)]
        if owners and not any(s is f for s in owners for f in fitting):
            model = owners[0].model
            about = counterparts().get(model)
            if about is None:
                raise UsageError(
                    f"{claim} is a claim about {model}, which implementations cannot be run beside yet; "
                    f"`fencepost check {claim}` looks at the model"
                )
            raise UsageError(
                f"{claim} is a claim about {model}, which {adapter.name} does not declare to have; "
                f"{about.remedy()}"
            )
    return fitting


def why_not(model: str, adapter: Adapter) -> str:
    """Why an adapter cannot be run beside a protocol that it does not have."""
    about = counterparts().get(model)
    if about is None:
        look = f"`fencepost check --model {model}` looks at the model"
        return f"implementations cannot be run beside {model} yet; {look}"
    return f"{adapter.name} does not declare to have {model}; {about.remedy()}"


def _can_be_asked(model: str, adapter: Adapter) -> bool:
    """Whether adapters speak of a protocol at all, and this one says that it has what it is about."""
    found = counterparts().get(model)
    return found is not None and found.is_had_by(adapter)


def _made(spec: str, make: Any) -> Any:
    """What a function or class makes without arguments."""
    if not callable(make):
        return make
    try:
        inspect.signature(make).bind()
    except TypeError as error:
        raise UsageError(
            f"{spec} cannot be called without arguments ({error}); name a function that can"
        ) from error
    made = make()
    return made.make_adapter() if isinstance(made, ConformanceSuite) else made


def _module(spec: str, where: str) -> ModuleType:
    if where.endswith(".py"):
        return _from_file(Path(where))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: nothing in it may hide a module
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            raise UsageError(
                f"no module {where!r} (for {spec!r}); install it, or run this where it can be imported"
            ) from error
        raise


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give the path of the Python file with the adapter")
    name = f"fencepost_adapter_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as Python; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.resolve().parent))  # what stands beside it; last, so that none hides a module
    spec.loader.exec_module(module)
    return module
