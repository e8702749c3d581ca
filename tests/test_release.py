"""Packages: one version everywhere, reproducible builds, an installation that works."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
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


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert confide.__version__ == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, date = re.search(r"^## (\S+) - (\d{4}-\d{2}-\d{2})$", changes, flags=re.MULTILINE).groups()
    assert newest == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation


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


@pytest.mark.slow
def test_builds_are_reproducible(built, tmp_path):
    assert len(built) == 2
    assert hashes(build(tmp_path)) == hashes(built)


@pytest.mark.slow
def test_the_sdist_builds_the_same_packages_anywhere(built, tmp_path):
    """In another folder, time zone and language, unpacked by someone whose files no one else may read."""
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
def test_packages_hold_what_they_should(built):
    wheel, source = (next(path for name, path in built.items() if name.endswith(end)) for end in (".whl", ".tar.gz"))
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
def installed(built, tmp_path_factory):
    """Needs a package index. The programs of an environment with nothing but the wheel and pinned packages."""
    folder = tmp_path_factory.mktemp("environment")
    wheel = next(path for name, path in built.items() if name.endswith(".whl"))
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


@pytest.mark.slow
def test_wheel_in_an_empty_environment_does_the_tutorial(installed, tmp_path):
    """Every block of the page, in order, prints the stated output with the installed programs only."""
    found = blocks(ROOT / "docs" / "tutorial.md")
    assert {block.language for block in found if block.runs} == {"python", "bash"}
    assert [block.place for block in found if block.needs or "not run" in block.markers] == []
    run_elsewhere(installed / "python", found, tmp_path, without_python(os.environ))
    assert {"released.json", "from-the-shell.json", "sets.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_extras_can_be_installed_one_by_one(extra, built):
    """Needs a package index; nothing is installed."""
    wheel = next(path for name, path in built.items() if name.endswith(".whl"))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", f"{wheel}[{extra}]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
