# make check     every claim and how it is known, within a minute
# make test      the tests, without the slow ones
# make test-all  all tests, and lint
# make lint      ruff, mypy, pyright
# make bench     the benchmarks
#
# Needs Python 3.11 or later (PYTHON=python3.12 chooses one); the rest is installed into .venv.

PYTHON ?= python3
# One process per core; empty for one process.
PYTEST_ARGS ?= -n auto

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install

.PHONY: check test test-all lint bench

check: .venv/test.stamp
	$(BIN)/fencepost evidence

test: .venv/test.stamp
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# The empty -m takes the place of "not slow" in pyproject.toml; a sweep of a whole protocol takes a while.
test-all: .venv/test.stamp lint
	$(BIN)/python -m pytest -m "" --timeout 7200 $(PYTEST_ARGS)

lint: .venv/lint.stamp
	$(BIN)/ruff check
	$(BIN)/python tests/project/type_check.py

bench: .venv/test.stamp
	$(BIN)/python benchmarks/run.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

# An order-only prerequisite: what matters about the interpreter is that it is there, not its date.
.venv/test.stamp: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[test]'
	@touch $@

.venv/lint.stamp: pyproject.toml .venv/test.stamp
	$(PIP) -e '.[test,lint]'
	@touch $@
