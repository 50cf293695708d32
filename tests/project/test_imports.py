"""Which part of fencepost may import which, and what each may not read at all."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

# part -> the source root it lives in and the other parts it may import
LAYERS: dict[str, tuple[str, frozenset[str]]] = {
    "model": ("model", frozenset()),
    "properties": ("properties", frozenset({"model"})),
    "checker": ("model", frozenset({"model", "properties"})),
    "conformance": ("properties", frozenset({"model", "properties", "checker"})),
    "reference": ("reference", frozenset()),
    "cli": ("cli", frozenset({"model", "properties", "checker", "conformance", "reference"})),
}
ROOTS = sorted({root for root, _ in LAYERS.values()})

# The modules of the reference that know the conformance suite; the rest of the reference may not know them.
ADAPTERS = (
    "fencepost.reference.adapter",
    "fencepost.reference.adapter_recovery",
    "fencepost.reference.adapter_replay",
    "fencepost.reference.adapter_triggers",
    "fencepost.reference.adapter_workflow",
    "fencepost.reference.broken_recoveries",
    "fencepost.reference.broken_stores",
)
ADAPTER_IMPORTS = frozenset({"model", "properties", "conformance"})

CLOCKS_AND_CHANCE = ("time", "random", "datetime", "uuid", "secrets", "os.urandom", "numpy.random")


def within(name: str, ancestor: str) -> bool:
    """Whether a dotted name is the ancestor or lies below it."""
    return name == ancestor or name.startswith(ancestor + ".")


def is_adapter(name: str) -> bool:
    """Whether a module is one of those that may know the conformance suite."""
    return any(within(name, adapter) for adapter in ADAPTERS)


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the project with its full dotted name; a package has the name of its directory."""
    for root in ROOTS:
        for path in sorted((PROJECT / root).rglob("*.py")):
            parts = path.relative_to(PROJECT / root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported_names(source: str, *, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything a module imports, relative imports resolved.

    `from a import b` yields `a` and `a.b`, since b may be a module. Imports inside functions and under
    TYPE_CHECKING count. So do `importlib.import_module("a")` and `__import__("a")` with a literal name.
    """
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield node.lineno, alias.name
            case ast.ImportFrom(module=base, names=names, level=level):
                if level:
                    parents = package.split(".")
                    start = ".".join(parents[: len(parents) - level + 1])
                    base = f"{start}.{base}" if base else start
                assert base is not None
                yield node.lineno, base
                for alias in names:
                    yield node.lineno, f"{base}.{alias.name}"
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name.lstrip(".")


def forbidden_imports(source: str, *, module: str, is_package: bool = False) -> list[str]:
    """One line for each import that goes against the direction."""
    own = module.split(".")[1]
    allowed = LAYERS[own][1] | {own}
    if is_adapter(module):
        allowed |= ADAPTER_IMPORTS
    found = []
    for line, name in imported_names(source, module=module, is_package=is_package):
        if not name.startswith("fencepost."):
            continue
        from_inside_reference = own == "reference" and not is_adapter(module)
        if name.split(".")[1] not in allowed or (from_inside_reference and is_adapter(name)):
            found.append(f"{module}:{line} imports {name}")
    return found


def clock_and_chance_reads(source: str, *, module: str, is_package: bool = False) -> list[str]:
    """One line for each import or use of a clock or of a source of randomness."""
    names = list(imported_names(source, module=module, is_package=is_package))
    names += [
        (node.lineno, ast.unparse(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in ("os.urandom", "numpy.random", "np.random")
    ]
    return [
        f"{module}:{line} reads {name}"
        for line, name in names
        if name == "np.random" or any(within(name, source_name) for source_name in CLOCKS_AND_CHANCE)
    ]


def test_imports_go_in_one_direction() -> None:
    found = []
    for module, path in modules():
        source = path.read_text(encoding="utf-8")
        found += forbidden_imports(source, module=module, is_package=path.name == "__init__.py")
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fencepost.model.commits", "import fencepost.checker"),
        ("fencepost.model.commits", "from fencepost import properties"),
        ("fencepost.model.commits", "from ..checker import explore"),
        ("fencepost.model.commits", "from .. import checker"),
        ("fencepost.model.commits", "def late():\n    from fencepost.cli.main import main"),
        ("fencepost.model.commits", "if TYPE_CHECKING:\n    from fencepost.checker import Verdict"),
        ("fencepost.model.commits", "importlib.import_module('fencepost.checker.explore')"),
        ("fencepost.model.commits", "__import__('fencepost.checker')"),
        ("fencepost.properties.safety", "from fencepost.checker.explore import explore"),
        ("fencepost.checker.explore", "from fencepost.conformance import Adapter"),
        ("fencepost.checker.explore", "from fencepost.reference import sqlite"),
        ("fencepost.conformance.suite", "import fencepost.cli.main as main"),
        ("fencepost.conformance.suite", "import fencepost.reference"),
        ("fencepost.reference.sqlite", "import fencepost.model"),
        ("fencepost.reference.sqlite", "from fencepost.conformance import Adapter"),
        ("fencepost.reference.worker", "from .adapter import make"),
        ("fencepost.reference.worker", "from . import adapter"),
        ("fencepost.reference.adapters", "import fencepost.conformance"),
        ("fencepost.reference.adapter", "import fencepost.checker"),
        ("fencepost.reference.adapter", "import fencepost.cli"),
        ("fencepost.cli.main", "import fencepost.unknown"),
    ],
)
def test_an_import_against_the_direction_is_noticed(module: str, source: str) -> None:
    assert forbidden_imports(source, module=module) != []


def test_a_relative_import_in_a_package_starts_at_the_package_itself() -> None:
    assert forbidden_imports("from . import checker", module="fencepost.model", is_package=True) == []
    assert forbidden_imports("from .. import checker", module="fencepost.model", is_package=True) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "fencepost.model.commits",
            "from .language import when\nfrom . import leases\nimport fencepost.model.world",
        ),
        ("fencepost.model.commits", "import dataclasses\nfrom enum import Enum\nimport fenceposts.checker"),
        ("fencepost.properties.safety", "from fencepost.model import commits"),
        ("fencepost.checker.explore", "from fencepost.properties import safety\nfrom fencepost import model"),
        ("fencepost.conformance.suite", "import fencepost.checker.explore\nfrom ..properties import safety"),
        ("fencepost.reference.worker", "from fencepost.reference import sqlite"),
        ("fencepost.reference.adapter", "from fencepost.conformance import Adapter\nfrom . import sqlite"),
        ("fencepost.cli.main", "from fencepost.reference.adapter import make\nimport fencepost.conformance"),
    ],
)
def test_an_import_along_the_direction_is_allowed(module: str, source: str) -> None:
    assert forbidden_imports(source, module=module) == []


def test_the_model_reads_no_clock_and_no_random_source() -> None:
    found = []
    for module, path in modules():
        if within(module, "fencepost.model"):
            source = path.read_text(encoding="utf-8")
            found += clock_and_chance_reads(source, module=module, is_package=path.name == "__init__.py")
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import datetime as dt",
        "from time import monotonic",
        "from random import choice",
        "import uuid, secrets",
        "from os import urandom",
        "import os\nos.urandom(8)",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy.random import default_rng",
    ],
)
def test_a_clock_or_random_source_in_the_model_is_noticed(source: str) -> None:
    assert clock_and_chance_reads(source, module="fencepost.model.world") != []


def test_a_module_of_the_model_named_after_a_clock_is_not_a_clock() -> None:
    assert clock_and_chance_reads("from . import time\nimport os", module="fencepost.model.world") == []


def test_the_reference_imports_with_the_standard_library_alone() -> None:
    program = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "before = set(sys.modules)\n"
        "import fencepost.reference\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n')\n"
    )
    # -I -S: neither the environment, nor the working directory, nor site-packages.
    command = [sys.executable, "-I", "-S", "-c", program, str(PROJECT / "reference")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    loaded = done.stdout.split()
    assert "fencepost.reference" in loaded
    foreign = [
        name
        for name in loaded
        if name != "fencepost"
        and not within(name, "fencepost.reference")
        # The build's own settings, whose name contains the platform's.
        and not name.startswith("_sysconfigdata_")
        and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert foreign == []


def test_each_part_is_a_typed_package_in_its_own_root() -> None:
    found = {
        path.parent.relative_to(PROJECT)
        for root in ROOTS
        for path in (PROJECT / root).glob("*/*/__init__.py")
    }
    expected = {Path(root, "fencepost", part) for part, (root, _) in LAYERS.items()}
    assert found == expected
    assert [path for path in sorted(expected) if not (PROJECT / path / "py.typed").is_file()] == []


def test_the_namespace_has_no_init_file() -> None:
    assert [root for root in ROOTS if (PROJECT / root / "fencepost" / "__init__.py").exists()] == []
    assert not (PROJECT / "fencepost").exists()


def test_each_directory_of_modules_below_a_part_is_a_package() -> None:
    directories = {path.parent for _, path in modules()}
    assert sorted(str(d.relative_to(PROJECT)) for d in directories if not (d / "__init__.py").is_file()) == []
