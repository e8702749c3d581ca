# Everything runs inside .venv, which the first target that needs it sets up from the pinned requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Files of pins are complete: pip takes what they name, if it has one of the hashes there, and nothing else.
PIP := -m pip install --quiet --disable-pip-version-check
PINNED := $(PIP) --no-deps --require-hashes
EDITABLE := $(PIP) --no-deps --no-build-isolation --editable .

.PHONY: help demo test test-slow test-long check docs dist packages bench bench-peers smoke peers nvflare mlflow stores dbt fuzz mutation coverage mutants proofs screenshots gallery experiments experiments-full extras lock clean

# The first target, so that `make` alone prints it.
help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PINNED) -r requirements/dev.txt
	$(BIN)/python $(EDITABLE)
	touch $(READY)

demo: $(READY)  ## the main job on real data, in under two minutes
	$(BIN)/confide demo --out demo-output --force

test: $(READY)  ## the everyday test suite, in under four minutes on two cores
	$(BIN)/python -m pytest -m "not slow and not long" -n 2 --dist loadgroup

test-slow: $(READY)  ## the slower tests: simulations, long enumerations, whole grids, browsers, servers, other platforms
	$(BIN)/python -m pytest -m "slow and not long" -n 2 --dist loadgroup

test-long: $(READY)  ## everything, including the checks that take minutes each
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(READY)  ## lint, strict types, which room of the package may import which, and the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/zizmor --offline --pedantic --quiet .github/workflows

docs: $(READY)  ## the documentation in docs/_build/html; fails on a broken link, or on one that needs the network
	rm -rf docs/_build
	$(BIN)/python docs/_ext/rooms.py --check
	$(BIN)/python docs/_ext/price_picture.py --check
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/_ext/site_check.py docs/_build/html

dist: $(READY)  ## what `make packages` makes, tried before: built twice and compared, installed into an empty environment
	$(BIN)/python -m pytest tests/test_release.py tests/test_bill_of_materials.py
	$(MAKE) packages

packages: $(READY)  ## wheel, sdist, bill of materials and checksums in dist/
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m release.sbom dist

smoke: extras peers nvflare mlflow  ## every command that the documents name, in its small form, in some minutes
	$(BIN)/python $(PINNED) -r requirements/fuzz.txt
	$(BIN)/python $(PINNED) -r requirements/measuring.txt
	$(BIN)/python -m tests.commands

fuzz: extras  ## more than a million coverage-guided executions of every parser of outside data, in about 20 minutes
	$(BIN)/python $(PINNED) -r requirements/fuzz.txt
	$(BIN)/python -m fuzz.run

mutation: $(READY)  ## deliberate faults in the source, each of which a test has to catch, in about five minutes
	$(BIN)/python -m tests.mutation.run

coverage: extras  ## branch coverage of the everyday and the slow tests, and a list of what none of them reaches
	$(BIN)/python $(PINNED) -r requirements/measuring.txt
	$(BIN)/python -m coverage erase
	CONFIDE_SECONDS=.coverage-seconds.json $(BIN)/python -m coverage run -m pytest -p tests.reached.contexts -m "not long" -n 2 --dist loadgroup
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage json --quiet -o .coverage-report.json
	$(BIN)/python -m tests.reached.unreached .coverage-report.json .coverage-unreached.md

.coverage:
	$(MAKE) coverage

mutants: .coverage  ## cosmic-ray's mutants of the rooms that promises rest on; EACH=200 tries 200 of each; goes on where it stopped
	$(BIN)/python -m tests.mutation.mutants run mutants.sqlite .coverage .coverage-seconds.json $(EACH:%=--each %)
	$(BIN)/python -m tests.mutation.mutants report mutants.sqlite

proofs:  ## the theorems of proofs/, checked by Rocq (needs coqc: apt-get install coq), in half a minute
	proofs/check

bench: extras  ## speed against numpy in the same run
	$(BIN)/python -m benchmarks.calibrate
	$(BIN)/python -m benchmarks.command_line
	$(BIN)/python -m benchmarks.first_call
	$(BIN)/python -m benchmarks.price fresh
	$(BIN)/python -m benchmarks.ranked_sets
	$(BIN)/python -m benchmarks.federated
	$(BIN)/python -m benchmarks.replied_sums

bench-peers: extras peers  ## speed, memory, coverage and set size beside other conformal libraries
	$(BIN)/python -m benchmarks.peers .venv-peers/bin/python

peers: .venv-peers/.ready  ## the other conformal libraries, in an environment of their own

.venv-peers/.ready: benchmarks/peers_setup.sh requirements/torch.sh requirements/peers.txt requirements/cpu.txt requirements/cuda.txt
	benchmarks/peers_setup.sh $(PYTHON) .venv-peers
	touch $@

nvflare: .venv-nvflare/.ready  ## NVIDIA FLARE, for its tests, in an environment of its own

.venv-nvflare/.ready: requirements/nvflare.txt pyproject.toml
	$(PYTHON) -m venv .venv-nvflare
	.venv-nvflare/bin/python $(PINNED) -r requirements/nvflare.txt
	.venv-nvflare/bin/python $(EDITABLE)
	touch $@

mlflow: .venv-mlflow/.ready  ## MLflow, for its tests, in an environment of its own

.venv-mlflow/.ready: requirements/mlflow.txt pyproject.toml
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/python $(PINNED) -r requirements/mlflow.txt
	.venv-mlflow/bin/python $(EDITABLE)
	touch $@

stores: .venv-stores/.ready  ## servers of object stores, for their tests, in an environment of their own

.venv-stores/.ready: requirements/stores.txt requirements/npm/package-lock.json
	$(PYTHON) -m venv .venv-stores
	.venv-stores/bin/python $(PINNED) -r requirements/stores.txt
	cp requirements/npm/package.json requirements/npm/package-lock.json .venv-stores
	if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund --prefix .venv-stores; fi
	touch $@

dbt: .venv-dbt/.ready  ## dbt-core and dbt-duckdb, for a test, in an environment of their own

.venv-dbt/.ready: requirements/dbt.txt
	$(PYTHON) -m venv .venv-dbt
	.venv-dbt/bin/python $(PINNED) -r requirements/dbt.txt
	touch $@

screenshots: extras  ## the pictures of docs/report.md (needs Chromium: apt-get install chromium)
	$(BIN)/python -m tests.reports.screenshots

gallery: extras  ## the pictures of docs/gallery.md, made by its blocks
	$(BIN)/python -m tests.docs.gallery

extras: $(VENV)/.extras  ## every optional package: PyTorch, Flower, matplotlib, ...

$(VENV)/.extras: $(READY) requirements/torch.sh requirements/extras.txt requirements/cpu.txt requirements/cuda.txt
	requirements/torch.sh $(BIN)/python requirements/extras.txt
	touch $@

experiments: extras  ## figures and tables of docs/experiments, in under an hour; goes on where it stopped
	$(BIN)/python -m experiments

experiments-full: extras  ## the papers' settings in full, in docs/experiments; goes on where it stopped
	$(BIN)/python -m experiments --full

lock:  ## pin the newest versions that pyproject.toml allows, with the hashes of their files (needs uv and npm)
	$(PYTHON) requirements/lock.py
	npm update --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --prefix requirements/npm

clean:  ## remove the environments, caches, built documentation and packages
	rm -rf $(VENV) .venv-peers .venv-nvflare .venv-mlflow .venv-stores .venv-dbt demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
