"""Machine code kept between runs saves time and changes nothing, whatever happens to its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fencepost.checker.native import SearchResult, cache, explore, search
from fencepost.checker.native.cache import CodeCache

from .support import counter_model, grid_model


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "cache"
    monkeypatch.setenv("FENCEPOST_CACHE", str(made))
    return made


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each compilation was an optimising one."""
    seen: list[bool] = []
    compiled = search.compiled

    def counted(text: str, *, optimise: bool) -> bytes:
        seen.append(optimise)
        return compiled(text, optimise=optimise)

    monkeypatch.setattr(search, "compiled", counted)
    return seen


def grid() -> SearchResult:
    return explore(grid_model((30, 30, 30)))


def test_a_second_run_compiles_nothing_and_finds_the_same(
    directory: Path, compilations: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TUNING_STATES_LATE", 5000)
    monkeypatch.setattr(search, "TUNING_STATES_PER_CHARACTER", 0)
    first = grid()
    assert compilations == [False, True]
    second = grid()
    assert compilations == [False, True]
    assert second.words == first.words
    assert second.enabled == first.enabled
    assert len(list(directory.iterdir())) == 2


def test_another_model_is_another_entry(directory: Path, compilations: list[bool]) -> None:
    explore(counter_model(5))
    explore(counter_model(6))
    assert compilations == [False, False]
    assert explore(counter_model(5)).states == 6
    assert explore(counter_model(6)).states == 7
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"fencepost code 1\n", b"fencepost code 1\n" + bytes(500), b"torn"])
def test_damaged_files_are_replaced(directory: Path, compilations: list[bool], damage: bytes) -> None:
    first = explore(counter_model(5))
    for path in directory.iterdir():
        path.write_bytes(damage)
    assert explore(counter_model(5)).words == first.words
    explore(counter_model(5))
    assert compilations == [False, False]


def test_a_torn_file_is_noticed(directory: Path) -> None:
    kept = CodeCache("here")
    kept.put("quick", "text", b"code" * 100)
    assert kept.get("quick", "text") == b"code" * 100
    (path,) = directory.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert kept.get("quick", "text") is None
    assert list(directory.iterdir()) == []


def test_text_kind_and_target_are_told_apart(directory: Path) -> None:
    kept = CodeCache("here")
    kept.put("quick", "text", b"code")
    assert kept.get("quick", "other text") is None
    assert kept.get("tuned", "text") is None
    assert CodeCache("there").get("quick", "text") is None
    assert directory.exists()


def test_the_directory_stays_within_its_size(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT_BYTES", 1000)
    kept = CodeCache("here")
    for i in range(10):
        kept.put("quick", str(i), bytes(200))
        (newest,) = (p for p in directory.iterdir() if p == kept._path("quick", str(i)))
        os.utime(newest, (i, i))
    assert sum(path.stat().st_size for path in directory.iterdir()) <= 1000
    assert kept.get("quick", "9") == bytes(200)
    assert kept.get("quick", "0") is None


def test_an_empty_setting_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FENCEPOST_CACHE", "")
    explore(counter_model(5))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("FENCEPOST_CACHE")
    explore(counter_model(5))
    assert len(list((tmp_path / "fencepost").iterdir())) == 1


def test_a_directory_that_cannot_be_made_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "file" / "below"))
    assert explore(counter_model(5)).states == 6


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_code_that_others_could_have_written_is_not_run(directory: Path) -> None:
    CodeCache("here").put("quick", "text", b"code")
    directory.chmod(0o777)
    assert CodeCache("here").get("quick", "text") is None


def test_long_code_is_optimised_only_when_that_is_likely_to_pay(
    compilations: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TUNING_STATES_LATE", 5000)
    monkeypatch.setattr(search, "TUNING_STATES_PER_CHARACTER", 1_000)
    grid()
    assert compilations == [False]
