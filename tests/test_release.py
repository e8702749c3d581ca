"""Packages: one version everywhere, reproducible builds, an installation that works, and the bill of materials."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import confide
from tests.docs.blocks import blocks
from tests.docs.runner import run_elsewhere

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = sorted((ROOT / "requirements").glob("*.txt"))


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert confide.__version__ == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) - \d{4}-\d{2}-\d{2}$", changes, flags=re.MULTILINE)[1]
    assert newest == version


def build(out, source=ROOT, **values):
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source]
    subprocess.run(command, cwd=source, env=environment | values, check=True, capture_output=True)
    return {path.name: path for path in sorted(out.iterdir())}


def hashes(files):
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(built):
    return next(path for name, path in built.items() if name.endswith(".whl"))


@pytest.mark.long
def test_the_sdist_builds_the_same_packages_anywhere(built, tmp_path):
    """In another folder, time zone and language, unpacked by someone whose files no one else may read."""
    assert len(built) == 2
    (source,) = (path for name, path in built.items() if name.endswith(".tar.gz"))
    before = os.umask(0o077)
    try:
        with tarfile.open(source) as archive:
            archive.extractall(tmp_path, filter="data")
        (folder,) = tmp_path.iterdir()
        for path in folder.rglob("*.py"):
            path.chmod(0o600)
        again = build(tmp_path / "again", folder, TZ="Pacific/Chatham", LC_ALL="tr_TR.UTF-8", PYTHONHASHSEED="1")
    finally:
        os.umask(before)
    assert hashes(again) == hashes(built)


@pytest.mark.slow
def test_packages_hold_what_they_should(built, wheel):
    (source,) = (path for name, path in built.items() if name.endswith(".tar.gz"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "confide/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("confide/", f"confide-{PROJECT['version']}.dist-info/")) for name in names)
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"} <= packed
    assert {".pre-commit-config.yaml", "Makefile", "conftest.py", "noxfile.py"} <= packed
    assert not [name for name in packed if re.search(r"_build|__pycache__|\.db$|results/", name)]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Needs a package index. The programs of an environment with nothing but the wheel and pinned packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps"]
    pinned = ROOT / "requirements" / "docker.txt"  # those of confide[standard], and a driver
    for command in (
        [*pip, "--require-hashes", "--requirement", pinned],
        [*pip, "--no-index", f"{wheel}[standard]"],
        [folder / "bin" / "python", "-m", "pip", "check"],
    ):
        done = subprocess.run(command, env=without_python(os.environ), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def without_python(values):
    """Nothing of the source is in reach: neither the folder nor the environment has it."""
    return {name: value for name, value in values.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


@pytest.mark.long
def test_wheel_in_an_empty_environment_does_the_tutorial(installed, tmp_path):
    """Every block of the page, in order, prints the stated output with the installed programs only."""
    found = blocks(ROOT / "docs" / "tutorial.md")
    assert {block.language for block in found if block.runs} == {"python", "bash"}
    assert [block.place for block in found if block.needs or "not run" in block.markers] == []
    run_elsewhere(installed / "python", found, tmp_path, without_python(os.environ))
    assert {"released.json", "from-the-shell.json", "sets.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.long
def test_an_installation_is_verified_as_the_page_says(built, installed, tmp_path, monkeypatch):
    """The blocks that need the files of a release, where there are such files; a changed file is found."""
    sbom = pytest.importorskip("release.sbom", reason="needs cyclonedx-python-lib: make test installs it")
    for path in built.values():
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(sys, "argv", ["sbom", str(tmp_path)])
    sbom.main()
    page = blocks(ROOT / "docs" / "howto" / "verify-release.md")
    able = []
    for one, after in pairwise(page):
        if one.markers.get("not run") == "needs the files of a release":
            able.append(replace(one, markers={}))
            able += [replace(after, markers={"output": ""})] if after.language == "text" else []
    assert sum(one.runs for one in able) == 4
    run_elsewhere(installed / "python", able, tmp_path, without_python(os.environ))
    (module,) = installed.parent.glob("lib/*/site-packages/confide/errors.py")
    before = module.read_bytes()
    module.write_bytes(before + b"#")
    try:
        with pytest.raises(AssertionError, match=r"confide/errors\.py"):
            run_elsewhere(installed / "python", able[1:3], tmp_path, without_python(os.environ))
    finally:
        module.write_bytes(before)


@pytest.mark.long
def test_wheel_in_an_empty_environment_works_from_an_empty_folder(installed, tmp_path):
    plain = without_python(os.environ)

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=plain)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run(installed / "python", "-c", "import confide; print(confide.__version__, confide.__file__)").split()
    assert where[0] == PROJECT["version"]
    assert Path(where[1]).is_relative_to(installed.parent)
    assert "calibrate" in run(installed / "confide", "--help")
    assert "calibrate" in run(installed / "python", "-m", "confide", "--help")
    run(installed / "confide", "demo", "--out", "demo")
    assert {path.name for path in (tmp_path / "demo").iterdir()} >= {"calibration.json", "report.html"}
    assert "promise" in run(installed / "confide", "show", "demo/calibration.json")
    # A glob is counted by DuckDB through Ibis, which has to find all it imports.
    columns = ("--probabilities", "p_*", "--label", "digit")
    levels = ("--alpha", "0.1", "--epsilon", "1", "--out", "again.json")
    run(installed / "confide", "calibrate", "demo/im*.parquet", *columns, *levels)


@pytest.mark.long
@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_extras_can_be_installed_one_by_one(extra, wheel):
    """Needs a package index; nothing is installed."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", f"{wheel}[{extra}]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- features of each size of installation: with packages hidden, or in environments of their own


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


def hidden(packages, program, *arguments, code=0):
    """What a program prints where these packages are not installed."""
    hiding = f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n{textwrap.dedent(program)}"
    done = subprocess.run([sys.executable, "-c", hiding, *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.long
def test_the_core_alone_calibrates_and_names_what_brings_the_rest(tmp_path):
    assert hidden(STANDARD, CORE, str(tmp_path)) == "done\n"
    command = "import runpy; runpy.run_module('confide', run_name='__main__')"
    for words in (["--help"], ["show", str(tmp_path / "released.json")]):
        (line,) = hidden(STANDARD, command, *words, code=2).splitlines()
        assert "pip install 'confide[standard]'" in line


@pytest.mark.long
def test_a_server_without_the_privacy_library_applies_releases_and_charges_nothing(tmp_path):
    check_served(json.loads(hidden(STANDARD + LIBRARIES, SERVER, str(tmp_path), *SERVED)))


def test_extras_that_work_on_tables_or_silos_include_the_standard_one():
    extras = PROJECT["optional-dependencies"]
    whole = {name for name, needs in extras.items() if any(one.startswith("confide[standard") for one in needs)}
    assert whole == {"experiments", "flower", "postgres", "spark", "stores"}
    assert {re.match(r"[\w-]+", one)[0] for one in PROJECT["dependencies"]} == {"numpy", "scipy", "opendp", "msgspec"}


# --- the bill of materials, and pinned installations with the hashes of all files


@pytest.mark.parametrize("file", PINS, ids=lambda path: path.stem)
def test_every_pin_has_its_hashes(file):
    """The format for pip --require-hashes, with each package once per machine."""
    lines = file.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    shape = re.compile(r"[a-z0-9-]+==[\w.+]+( ; [^#]+?)? +(--hash=sha256:[0-9a-f]{64} *)+")
    assert lines != []
    assert [line[:80] for line in lines if not shape.fullmatch(line)] == []
    always = [line.split("==")[0] for line in lines if " ; " not in line]
    assert len(always) == len(set(always))


@pytest.fixture
def sbom():
    pytest.importorskip("cyclonedx", reason="needs cyclonedx-python-lib: make test installs it")
    from release import sbom

    return sbom


@pytest.fixture
def billed(sbom, tmp_path, monkeypatch):
    """The bill of two files, and the folder with all four."""
    version = PROJECT["version"]
    for name in (f"confide-{version}-py3-none-any.whl", f"confide-{version}.tar.gz"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["sbom", str(tmp_path)])
    sbom.main()
    (written,) = tmp_path.glob("*.cdx.json")
    return json.loads(written.read_text(encoding="utf-8")), tmp_path


@pytest.mark.long
def test_the_bill_names_every_package_with_version_hashes_and_licence(sbom, billed):
    bill, folder = billed
    parts = {one["purl"]: one for one in bill["components"]}
    assert len(parts) == len(bill["components"]) > 100
    itself = bill["metadata"]["component"]
    stated = {one["url"]: one["hashes"][0]["content"] for one in itself["externalReferences"]}
    assert stated == {path.name: sbom.digest(path) for path in folder.glob("confide-*[lz]")}
    pinned = {
        f"{name}@{version}" for file in PINS for found in sbom.pins([file.name]).values() for name, version in found
    }
    for purl, part in parts.items():
        if purl.startswith("pkg:pypi/"):
            assert purl.removeprefix("pkg:pypi/") in pinned
            assert part["externalReferences"][0]["hashes"] != []
            extras = [one["value"] for one in part.get("properties", ())]
            assert part["scope"] == ("required" if part["name"] in REQUIRED else "optional")
            assert extras or part["name"] in REQUIRED
    unlicensed = {part["name"] for part in parts.values() if "licenses" not in part}
    assert unlicensed <= ON_OTHER_SYSTEMS | set(sbom.pins(["cuda.txt"]))
    direct = next(one for one in bill["dependencies"] if one["ref"] == itself["bom-ref"])["dependsOn"]
    names = {parts[ref]["name"] for ref in direct}
    asked = [one for extra in PROJECT["optional-dependencies"].values() for one in extra] + PROJECT["dependencies"]
    wanted = {re.match(r"[\w-]+", one)[0].lower().replace("_", "-") for one in asked} - {"confide"}
    assert names == wanted


REQUIRED = {"numpy", "scipy", "opendp", "msgspec", "deprecated", "wrapt"}  # the last two by OpenDP
ON_OTHER_SYSTEMS = {"colorama", "pywin32"}  # whose licences were not looked at, since they are not installed on Linux


@pytest.mark.long
def test_the_same_packages_give_the_same_bill(sbom, billed):
    """No time and no chance: twice the same bytes, and other packages have another serial number."""
    bill, folder = billed
    (written,) = folder.glob("*.cdx.json")
    before = written.read_bytes()
    sbom.main()
    assert written.read_bytes() == before
    assert "timestamp" not in bill["metadata"]
    next(folder.glob("*.whl")).write_text("another", encoding="utf-8")
    sbom.main()
    assert json.loads(written.read_bytes())["serialNumber"] != bill["serialNumber"]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    next(folder.glob("*.whl")).unlink()
    with pytest.raises(SystemExit, match="expected one wheel and one sdist"):
        sbom.main()


@pytest.mark.long
def test_the_bills_follow_the_schema(sbom, billed):
    """That of CycloneDX 1.6, which the library has with it: no network."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(billed[0])) is None
    assert validator.validate_str('{"bomFormat": "CycloneDX"}') is not None
