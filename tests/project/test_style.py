"""The rules of style that no linter checks."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

CODE = ("model", "properties", "reference", "cli", "tests", "benchmarks")
TEXT = (*CODE, "docs", ".ci")

MODULE_LINES = 500  # what a person reads in one sitting
LINE_CHARACTERS = 110

# A path that exists for one person or on one machine only, or a place to install from.
MACHINE_SPECIFIC = re.compile(
    r"(?<![\w.:/-])/(?:home|Users|root|work|opt|mnt)/\w|[A-Z]:\\Users|index-ur[l]\b"
)
UPWARD_PATH = re.compile(r"(?<![\w/.])(?:\.\./)+[\w./-]*")


def code_files() -> Iterator[Path]:
    for directory in CODE:
        yield from sorted((PROJECT / directory).rglob("*.py"))


def text_files() -> Iterator[tuple[Path, str]]:
    paths = [path for path in PROJECT.iterdir() if path.suffix in (".md", ".toml") or path.name == "Makefile"]
    for directory in TEXT:
        paths += [path for path in (PROJECT / directory).rglob("*") if path.is_file()]
    for path in sorted(paths):
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or compiled code


def machine_specific(text: str, *, directory: Path) -> list[str]:
    """What in the text is a path of one machine, or leads out of the project from the file's directory."""
    places = [match.group() for match in MACHINE_SPECIFIC.finditer(text)]
    upward = [match.group() for match in UPWARD_PATH.finditer(text)]
    return places + [path for path in upward if not (directory / path).resolve().is_relative_to(PROJECT)]


def test_a_module_is_read_in_one_sitting() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in code_files()}
    too_long = {str(path.relative_to(PROJECT)): n for path, n in lengths.items() if n > MODULE_LINES}
    assert too_long == {}


def test_lines_fit_the_width() -> None:
    too_long = [
        f"{path.relative_to(PROJECT)}:{number}: {len(line)} characters"
        for path in code_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > LINE_CHARACTERS
    ]
    assert too_long == []


def test_nothing_names_a_place_on_one_machine() -> None:
    found = {
        str(path.relative_to(PROJECT)): names
        for path, text in text_files()
        if (names := machine_specific(text, directory=path.parent))
    }
    assert found == {}


@pytest.mark.parametrize("place", ["home/ada", "Users/ada", "root/x", "opt/x", "mnt/x"])
def test_a_place_on_one_machine_is_noticed(place: str) -> None:
    assert machine_specific(f"see /{place}/notes.md", directory=PROJECT) != []


def test_a_path_is_noticed_only_if_it_leads_out_of_the_project() -> None:
    up = ".." + "/"
    assert machine_specific(f"see {up}model/README.md", directory=PROJECT / "docs") == []
    assert machine_specific(f"see {up}{up}notes.md", directory=PROJECT / "docs") == [f"{up}{up}notes.md"]
