"""What is published: one version everywhere, packages that build the same twice, an installation that works."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import confide

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert confide.__version__ == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, date = re.search(r"^## (\S+) - (\d{4}-\d{2}-\d{2})$", changes, flags=re.MULTILINE).groups()
    assert newest == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation


def test_citation_has_what_the_format_requires():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(found)  # required by CFF 1.2.0
    assert found["cff-version"] == "1.2.0"
    assert found["type"] == "software"
    assert found["license"] == PROJECT["license"].split(" AND ")[0]  # ours; the rest are vendored files
    assert found["authors"] == PROJECT["authors"]
    known = {"cff-version", "message", "title", "authors", "type", "version", "date-released", "license", "keywords"}
    assert set(found) <= known  # the format allows no others but its own


def test_metadata_names_the_supported_pythons():
    minors = [int(c.rpartition(".")[2]) for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert minors == list(range(11, 16))
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"


def build(out):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1795219200"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return {path.name: path for path in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


@pytest.mark.long
def test_builds_are_reproducible(built, tmp_path):
    def hashes(files):
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}

    assert len(built) == 2
    assert hashes(build(tmp_path)) == hashes(built)


@pytest.mark.long
def test_packages_hold_what_they_should(built):
    wheel, source = (next(path for name, path in built.items() if name.endswith(end)) for end in (".whl", ".tar.gz"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "confide/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("confide/", f"confide-{PROJECT['version']}.dist-info/")) for name in names)
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "conftest.py"} <= packed
    assert not [name for name in packed if re.search(r"_build|__pycache__|\.db$|results/", name)]


@pytest.mark.long
def test_wheel_in_an_empty_environment_works_from_an_empty_folder(built, tmp_path):
    """Needs a package index. Nothing of the source is in reach: neither the folder nor the environment has it."""
    wheel = next(path for name, path in built.items() if name.endswith(".whl"))
    venv.create(tmp_path / "environment", with_pip=True)
    programs, folder = tmp_path / "environment" / "bin", tmp_path / "empty"
    folder.mkdir()
    command = [programs / "python", "-m", "pip", "install", "-q", f"{wheel}[standard]"]
    subprocess.run(command, check=True, capture_output=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=plain)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run(programs / "python", "-c", "import confide; print(confide.__version__, confide.__file__)").split()
    assert where[0] == PROJECT["version"]
    assert Path(where[1]).is_relative_to(tmp_path / "environment")
    assert "calibrate" in run(programs / "confide", "--help")
    assert "calibrate" in run(programs / "python", "-m", "confide", "--help")
    run(programs / "confide", "demo", "--out", "demo")
    assert {path.name for path in (folder / "demo").iterdir()} >= {"calibration.json", "report.html"}
    assert "promise" in run(programs / "confide", "show", "demo/calibration.json")
    # A glob is counted by DuckDB through Ibis, which has to find all it imports.
    columns = ("--probabilities", "p_*", "--label", "digit")
    levels = ("--alpha", "0.1", "--epsilon", "1", "--out", "again.json")
    run(programs / "confide", "calibrate", "demo/im*.parquet", *columns, *levels)


@pytest.mark.long
@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_extras_can_be_installed_one_by_one(extra, built):
    """Needs a package index; nothing is installed."""
    wheel = next(path for name, path in built.items() if name.endswith(".whl"))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", f"{wheel}[{extra}]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
