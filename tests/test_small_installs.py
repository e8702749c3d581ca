"""Features of each size of installation, and errors with the missing package: everyday with packages hidden, slow in
environments of their own that were installed from the wheel."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STANDARD = [
    *("click", "cryptography", "duckdb", "ibis", "jinja2", "pandas", "pyarrow"),
    *("obstore", "pyarrow_hotfix", "rich", "sklearn"),
]
LIBRARIES = ["opendp", "scipy"]

CORE = """
    import sys
    from functools import partial
    from pathlib import Path

    import numpy as np

    import confide
    from confide import federated
    from confide.errors import MissingExtraError
    from confide.tables import ClassColumns, count_batches, open_table

    folder, rng = Path(sys.argv[1]), np.random.default_rng(0)
    p = rng.dirichlet([6, 2, 1], size=400)
    y = np.array([rng.choice(3, p=row) for row in p])
    ledger = confide.Ledger(folder / "core.db")
    given = dict(alpha=0.1, epsilon=1.0, neighbors="replace_one", ledger=ledger, dataset="a")
    released = confide.calibrate(confide.lac_score(p, y), **given)
    assert ledger.account("a").entries[0].cost.epsilon == 1
    released.save(folder / "released.json")
    assert confide.Release.load(folder / "released.json") == released
    sets = confide.predict_set(p, released)
    assert confide.evaluate(released, probabilities=p, labels=y)
    assert confide.plan(0.1, 1.0, 1000).expected_coverage < 1
    what = ClassColumns("p_*", "y")
    (folder / "records.csv").write_text("p_a,p_b,y\\n0.5,0.5,a\\n")
    refused = {
        "pyarrow": [sets.to_arrow, lambda: count_batches([np.zeros(2)])],
        "sklearn": [lambda: confide.PrivateConformalClassifier, partial(getattr, confide, "PrivateConformalRegressor")],
        "jinja2": [lambda: confide.report(released), lambda: confide.report(ledger)],
        "cryptography": [lambda: federated.SiloKeys.generate("north")],
        "duckdb": [
            lambda: open_table(folder / "records.csv").__enter__(),
            lambda: open_table({"a": [1]}).__enter__(),
            lambda: confide.evaluate(released, table=folder / "records.csv", what=what),
        ],
    }
    for package, calls in refused.items():
        for call in calls:
            try:
                call()
            except MissingExtraError as error:
                assert str(error).endswith(f"{package!r}. Install the extra: pip install 'confide[standard]'"), error
            else:
                raise AssertionError(package)
    print("done")
"""

SERVER = """
    import json
    import sys
    from dataclasses import replace
    from pathlib import Path

    import numpy as np

    import confide
    from confide.errors import MissingExtraError
    from confide.core import load_release

    def with_score(released, score):
        request = replace(released.request, score=score, classes=None)
        return replace(released, request=request, parts={None: replace(released.only, score=score)})

    p = np.array([[0.9, 0.05, 0.05], [0.4, 0.35, 0.25]])
    said = {}
    for name in sys.argv[2:]:
        try:
            released = load_release(name)
        except MissingExtraError as error:
            said[name] = str(error)
            continue
        if released.by is None and released.score == "lac":
            for kind in ("lac", "margin", "aps", "raps(penalty=0.1,k_reg=2)", "saps(penalty=0.2)", "top_k"):
                assert confide.predict_set(p, with_score(released, kind)).labels()
            for kind in ("absolute_residual", "gamma", "normalised_residual", "cqr"):
                known = {"difficulty": np.ones(2)} if kind == "normalised_residual" else {}
                predicted = np.ones((2, 2) if kind == "cqr" else 2)
                assert len(confide.predict_interval(predicted, with_score(released, kind), **known))
        if released.loss is not None:
            assert confide.predict_labels(np.full((2, 3), 0.5), released).mask.shape == (2, 3)
        said[name] = "read"
    try:
        ledger = confide.Ledger(Path(sys.argv[1]) / "server.db")
        confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="a")
    except MissingExtraError as error:
        said["calibrate"] = str(error)
    assert not (Path(sys.argv[1]) / "server.db").exists() or not ledger.accounts()
    print(json.dumps(said))
"""

SAMPLES = ROOT / "tests" / "kept" / "files"
READ = [
    f"{name}.json"
    for name in ("calibration", "calibration-infinite", "levels", "groups", "groups-rho", "sides", "risk")
]
NEED_SCIPY = ["calibration-delta.json"]
NEED_KEYS = ["federated.json"]
SERVED = [str(SAMPLES / name) for name in READ + NEED_SCIPY + NEED_KEYS]
TO_FEDERATE = "federation: needs the package 'cryptography'. Install the extra: pip install 'confide[standard]'"
TO_CLAIMS = "computing again what this release claims: needs the package 'scipy'. Install it: pip install scipy"
TO_DRAW = "drawing a release: needs the package 'opendp'. Install it: pip install opendp"


def check_served(said):
    """Files that cannot be recomputed raise an error that names the missing package."""
    assert said["calibrate"] == TO_DRAW
    assert {name: said[str(SAMPLES / name)] for name in READ} == dict.fromkeys(READ, "read")
    assert {name: said[str(SAMPLES / name)] for name in NEED_SCIPY} == dict.fromkeys(NEED_SCIPY, TO_CLAIMS)
    assert {name: said[str(SAMPLES / name)] for name in NEED_KEYS} == dict.fromkeys(NEED_KEYS, TO_FEDERATE)


def hidden(packages, program, *arguments):
    code = f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n{textwrap.dedent(program)}"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_core_alone_calibrates_and_names_what_brings_the_rest(tmp_path):
    assert hidden(STANDARD, CORE, str(tmp_path)) == "done\n"


@pytest.mark.slow
def test_a_server_without_the_privacy_library_applies_releases_and_charges_nothing(tmp_path):
    check_served(json.loads(hidden(STANDARD + LIBRARIES, SERVER, str(tmp_path), *SERVED)))


def test_extras_that_work_on_tables_or_silos_include_the_standard_one():
    extras = PROJECT["optional-dependencies"]
    whole = {name for name, needs in extras.items() if any(one.startswith("confide[standard") for one in needs)}
    assert whole == {"experiments", "flower", "postgres", "spark", "stores"}
    assert {re.match(r"[\w-]+", one)[0] for one in PROJECT["dependencies"]} == {"numpy", "scipy", "opendp", "msgspec"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def installed(folder, *words):
    """Programs of a new environment, into which pip installs these, and nothing else."""
    venv.create(folder)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    return python


def run(*command):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=plain, cwd="/")


@pytest.mark.slow
def test_the_wheel_alone_in_an_empty_environment(wheel, tmp_path):
    """Needs a package index."""
    python = installed(tmp_path / "core", wheel)
    assert not any((tmp_path / "core").glob("lib/*/site-packages/pyarrow"))
    done = run(python, "-c", textwrap.dedent(CORE), tmp_path)
    assert done.stdout == "done\n", done.stderr
    for words in ([python.parent / "confide", "--help"], [python, "-m", "confide", "show", tmp_path / "released.json"]):
        done = run(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "pip install 'confide[standard]'" in done.stderr


@pytest.mark.slow
def test_the_wheel_with_numpy_and_msgspec_in_an_empty_environment(wheel, tmp_path):
    """Needs a package index."""
    needed = [one for one in PROJECT["dependencies"] if one.startswith(("numpy", "msgspec"))]
    python = installed(tmp_path / "server", *needed)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    done = run(python, "-c", textwrap.dedent(SERVER), tmp_path, *SERVED)
    assert done.returncode == 0, done.stderr
    check_served(json.loads(done.stdout))
    done = run(python.parent / "confide", "verify", SERVED[0])
    assert done.returncode == 2
    assert "pip install 'confide[standard]'" in done.stderr
