from __future__ import annotations

import pytest

from .console import Console


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Console:
    return Console(tmp_path_factory.mktemp("console"))
