# The target `demo` runs in .venv-demo and all others in .venv; the first one that needs an environment creates it from the
# pinned requirements. Tasks that run less often (other environments, measurements, fuzzing, experiments) are sessions of
# nox: .venv/bin/nox -l
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SMALL := .venv-demo/bin
# Pinned requirements are complete: pip takes only the packages that they list, with one of their hashes.
# Python compiles a module when it is first imported; compiling all of them takes longer than installing them.
PIP := -m pip install --quiet --disable-pip-version-check --no-deps --no-compile

.PHONY: help setup demo test test-slow check docs clean

# The first target, so that `make` alone prints it.
help:  ## list the targets
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --require-hashes -r requirements/dev.txt
	$(BIN)/python $(PIP) --no-build-isolation --editable .
	touch $(READY)

# The small environment has the packages of the image: what `pip install '.[standard]'` installs, and a driver.
.venv-demo/.ready: requirements/docker.txt pyproject.toml $(shell find src -type f -not -path '*/__pycache__/*')
	$(PYTHON) -m venv .venv-demo
	$(SMALL)/python $(PIP) --require-hashes -r requirements/docker.txt
	$(SMALL)/python $(PIP) --no-build-isolation .
	touch .venv-demo/.ready

setup: $(READY)  ## create the environment .venv; all targets but demo do this, too

demo: .venv-demo/.ready  ## train, calibrate, predict and report on real data, in about a minute
	$(SMALL)/confide demo --out demo-output --force

test: $(READY)  ## run the everyday tests, in about a minute on two idle cores
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadgroup

test-slow: $(READY)  ## run the slow tests: simulations, whole grids, browsers, servers, in about six minutes on two idle cores
	$(BIN)/python -m pytest -m "slow and not long" --hypothesis-profile=thorough -n 2 --dist loadgroup

check: $(READY)  ## run linters and type checks, and check imports, workflows and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/zizmor --offline --pedantic --quiet .github/workflows
	$(BIN)/codespell .

docs: $(READY)  ## build the documentation in docs/_build/html; fails on a broken link
	rm -rf docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

clean:  ## remove the environments, caches, built documentation and packages
	rm -rf .venv .venv-* .nox demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
