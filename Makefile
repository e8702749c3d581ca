# Everything runs inside .venv, which the first target that needs it sets up from the pinned requirements. What is run
# more seldom (environments of their own, measurements, fuzzing, experiments) is a session of nox: .venv/bin/nox -l
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Files of pins are complete: pip takes what they name, if it has one of the hashes there, and nothing else.
PIP := -m pip install --quiet --disable-pip-version-check --no-deps

.PHONY: help setup demo test test-slow check docs smoke clean

# The first target, so that `make` alone prints it.
help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --require-hashes -r requirements/dev.txt
	$(BIN)/python $(PIP) --no-build-isolation --editable .
	touch $(READY)

setup: $(READY)  ## the environment .venv, which the others make as well

demo: $(READY)  ## the main job on real data, in under two minutes
	$(BIN)/confide demo --out demo-output --force

test: $(READY)  ## the everyday test suite, in under four minutes on two cores
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadgroup

test-slow: $(READY)  ## the slower tests: simulations, long enumerations, whole grids, browsers, servers
	$(BIN)/python -m pytest -m slow --hypothesis-profile=thorough -n 2 --dist loadgroup

check: $(READY)  ## lint, strict types, package imports, the workflows, and the words and sentences of the texts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/zizmor --offline --pedantic --quiet .github/workflows
	$(BIN)/codespell .
	$(BIN)/python docs/_ext/readability.py --check

docs: $(READY)  ## the documentation in docs/_build/html; fails on a broken link, or on one that needs the network
	rm -rf docs/_build
	$(BIN)/python docs/_ext/packages.py --check
	$(BIN)/python docs/_ext/price_picture.py --check
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/_ext/site_check.py docs/_build/html

smoke: $(READY)  ## every command that the documents name, in its small form, in some minutes
	$(BIN)/nox -s extras peers nvflare mlflow
	$(BIN)/python $(PIP) --require-hashes -r requirements/fuzz.txt
	$(BIN)/python $(PIP) --require-hashes -r requirements/measuring.txt
	$(BIN)/python -m tests.commands

clean:  ## remove the environments, caches, built documentation and packages
	rm -rf .venv .venv-* .nox demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
