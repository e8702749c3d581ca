# Everything runs inside .venv, which the first target that needs it sets up from the pinned requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow test-long check docs dist bench bench-peers peers nvflare mlflow stores dbt fuzz mutation proofs screenshots gallery experiments experiments-full extras lock clean

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

demo: $(READY)  ## the main job on real data, in under two minutes
	$(BIN)/confide demo --out demo-output --force

test: $(READY)  ## the everyday test suite, in under four minutes on two cores
	$(BIN)/python -m pytest -m "not slow and not long" -n 2 --dist loadgroup

test-slow: $(READY)  ## the slower tests: simulations, long enumerations, whole grids, browsers, servers, other platforms
	$(BIN)/python -m pytest -m "slow and not long" -n 2 --dist loadgroup

test-long: $(READY)  ## everything, including the checks that take minutes each
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(READY)  ## lint, strict types, and which room of the package may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(READY)  ## the documentation in docs/_build/html; fails on a broken link, or on one that needs the network
	rm -rf docs/_build
	$(BIN)/python docs/_ext/rooms.py --check
	$(BIN)/python docs/_ext/price_picture.py --check
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/_ext/site_check.py docs/_build/html

dist: $(READY)  ## wheel and sdist in dist/, built twice and compared, installed into an empty environment and tried there
	$(BIN)/python -m pytest tests/test_release.py
	$(BIN)/python -m build --no-isolation --outdir dist

fuzz: extras  ## more than a million coverage-guided executions of every parser of outside data, in about 20 minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris==3.0.0"
	$(BIN)/python -m fuzz.run

mutation: $(READY)  ## deliberate faults in the source, each of which a test has to catch, in about five minutes
	$(BIN)/python -m tests.mutation.run

proofs:  ## the theorems of proofs/, checked by Rocq (needs coqc: apt-get install coq), in half a minute
	proofs/check

bench: extras  ## speed against numpy in the same run
	$(BIN)/python -m benchmarks.calibrate
	$(BIN)/python -m benchmarks.command_line
	$(BIN)/python -m benchmarks.first_call
	$(BIN)/python -m benchmarks.plan
	$(BIN)/python -m benchmarks.ranked_sets
	$(BIN)/python -m benchmarks.federated
	$(BIN)/python -m benchmarks.replied_sums

bench-peers: extras peers  ## speed, memory, coverage and set size beside other conformal libraries
	$(BIN)/python -m benchmarks.peers .venv-peers/bin/python

peers: .venv-peers/.ready  ## the other conformal libraries, in an environment of their own

.venv-peers/.ready: requirements/peers.txt benchmarks/peers_setup.sh
	benchmarks/peers_setup.sh $(PYTHON) .venv-peers
	touch $@

nvflare: .venv-nvflare/.ready  ## NVIDIA FLARE, for its tests, in an environment of its own

.venv-nvflare/.ready: requirements/nvflare.txt pyproject.toml
	$(PYTHON) -m venv .venv-nvflare
	.venv-nvflare/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/nvflare.txt
	.venv-nvflare/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

mlflow: .venv-mlflow/.ready  ## MLflow, for its tests, in an environment of its own

.venv-mlflow/.ready: requirements/mlflow.txt pyproject.toml
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/mlflow.txt
	.venv-mlflow/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

stores: .venv-stores/.ready  ## servers of object stores, for their tests, in an environment of their own

.venv-stores/.ready: requirements/stores.txt
	$(PYTHON) -m venv .venv-stores
	.venv-stores/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/stores.txt
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --no-save --prefix .venv-stores azurite@3.34.0; fi
	touch $@

dbt: .venv-dbt/.ready  ## dbt-core and dbt-duckdb, for a test, in an environment of their own

.venv-dbt/.ready: requirements/dbt.txt
	$(PYTHON) -m venv .venv-dbt
	.venv-dbt/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/dbt.txt
	touch $@

screenshots: extras  ## the pictures of docs/report.md (needs Chromium: apt-get install chromium)
	$(BIN)/python -m tests.reports.screenshots

gallery: extras  ## the pictures of docs/gallery.md, made by its blocks
	$(BIN)/python -m tests.docs.gallery

extras: $(VENV)/.extras  ## every optional package: PyTorch, Flower, matplotlib, ...

$(VENV)/.extras: $(READY) requirements/extras.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/extras.txt
	touch $@

experiments: extras  ## figures and tables of docs/experiments, in under an hour; goes on where it stopped
	$(BIN)/python -m experiments

experiments-full: extras  ## the papers' settings in full, in docs/experiments; goes on where it stopped
	$(BIN)/python -m experiments --full

# all but standard, which every environment has, and nvflare and mlflow, which have their own
EXTRAS := torch monai arrays jax plots pandas frames speed accounting flower postgres spark ray onnx experiments
COMPILE := uv pip compile --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --quiet

lock:  ## pin the newest versions that pyproject.toml allows (needs uv); pip adds what the machine's GPU needs
	$(COMPILE) pyproject.toml --group dev --group docker --extra standard $(EXTRAS:%=--extra %) --upgrade -o requirements/all.txt
	$(COMPILE) pyproject.toml --group dev --extra standard -c requirements/all.txt -o requirements/dev.txt
	grep -vxFf requirements/dev.txt requirements/all.txt | grep -vE "^(confide|nvidia|cuda|triton)" > requirements/extras.txt
	$(COMPILE) pyproject.toml requirements/docker.in --extra standard --generate-hashes -c requirements/all.txt -o requirements/docker.txt
	$(COMPILE) pyproject.toml --extra nvflare -c requirements/all.txt -o requirements/nvflare.new
	(grep "^#" requirements/nvflare.txt; cat requirements/nvflare.new) > requirements/all.txt
	mv requirements/all.txt requirements/nvflare.txt
	rm requirements/nvflare.new
	$(COMPILE) pyproject.toml --extra mlflow --group mlflow -c requirements/dev.txt -o requirements/mlflow.new
	(grep "^#" requirements/mlflow.txt; cat requirements/mlflow.new) > requirements/all.txt
	mv requirements/all.txt requirements/mlflow.txt
	rm requirements/mlflow.new
	$(COMPILE) requirements/stores.in --upgrade -o requirements/stores.new
	(grep "^#" requirements/stores.txt; cat requirements/stores.new) > requirements/all.txt
	mv requirements/all.txt requirements/stores.txt
	rm requirements/stores.new
	$(COMPILE) requirements/dbt.in --upgrade -o requirements/dbt.new
	(grep "^#" requirements/dbt.txt; cat requirements/dbt.new) > requirements/all.txt
	mv requirements/all.txt requirements/dbt.txt
	rm requirements/dbt.new

clean:
	rm -rf $(VENV) .venv-peers .venv-nvflare .venv-mlflow .venv-stores .venv-dbt demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist
