"""Recipes, apps, jobs and bundles for other hubs: they run here, or are checked as far as possible offline."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.blocks import ROOT

CONDA_NAMES = {"duckdb": "python-duckdb", "ibis-framework": "ibis-framework-core", "pyarrow": "pyarrow-core"}
EXAMPLES = ROOT / "examples"


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*words, cwd, **settings):
    """Run this Python in a folder, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **settings}
    done = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def recipe():
    """The recipe for conda-forge, with the expressions of its context filled in."""
    yaml = pytest.importorskip("yaml", reason="reads the recipe")
    text = (ROOT / "release" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    context = yaml.safe_load(text)["context"]
    filled = text.replace("${{ name[0] }}", context["name"][0]).replace("${{ PYTHON }}", "python")
    for name, value in context.items():
        filled = filled.replace(f"${{{{ {name} }}}}", value)
    assert "${{" not in filled
    return yaml.safe_load(filled)


def test_the_conda_recipe_requires_what_the_project_requires():
    """Names differ only as `CONDA_NAMES` lists; versions are equal. The recipe has the extra `standard`."""
    found, stated = recipe(), project()
    wanted = {}
    for text in [*stated["dependencies"], *stated["optional-dependencies"]["standard"]]:
        one = Requirement(text)
        wanted[CONDA_NAMES.get(canonicalize_name(one.name), canonicalize_name(one.name))] = one.specifier
    named = [Requirement(text) for text in found["requirements"]["run"]]
    run_time = {one.name: one.specifier for one in named}
    assert run_time.pop("python") == stated["requires-python"]
    assert run_time == wanted
    assert len(named) == len(wanted) + 1
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {Requirement(one).name for one in build} <= {
        re.split(r"[ <>=]", one)[0] for one in found["requirements"]["host"]
    }


def test_the_conda_recipe_states_the_project():
    found, stated = recipe(), project()
    assert (found["package"]["name"], found["package"]["version"]) == (stated["name"], stated["version"])
    assert found["source"]["url"].endswith(f"/c/confide/confide-{stated['version']}.tar.gz")
    assert re.fullmatch("[0-9a-f]{64}", found["source"]["sha256"])
    assert found["build"]["noarch"] == "python"
    assert found["build"]["python"]["entry_points"] == [f"{name} = {at}" for name, at in stated["scripts"].items()]
    assert (found["about"]["license"], found["about"]["summary"]) == (stated["license"], stated["description"])
    assert (ROOT / found["about"]["license_file"]).exists()


@pytest.mark.slow
def test_the_flower_app_builds(tmp_path):
    """Flower validates the app for its hub (FAB format 1) and packs it, with the licence and all modules."""
    pytest.importorskip("flwr", reason="needs the extra 'flower'")
    app = shutil.copytree(EXAMPLES / "flower", tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    quiet = {"FLWR_HOME": str(tmp_path), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    run("-c", "from flwr.cli.app import app; app(['build'])", cwd=app, **quiet)
    (packed,) = app.glob("*.fab")
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
    assert {"pyproject.toml", "README.md", "LICENSE", "hospitals/client_app.py", "hospitals/server_app.py"} <= names
    stated = tomllib.loads((app / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    flower = {Requirement(one).name: Requirement(one).specifier for one in stated["dependencies"]}["flwr"]
    (own,) = (Requirement(one) for one in project()["optional-dependencies"]["flower"] if one.startswith("flwr"))
    assert flower == own.specifier
    assert (app / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
def test_the_mapie_example_runs(tmp_path):
    """The private sets are printed with and without MAPIE; three statements make them."""
    script = EXAMPLES / "from_mapie.py"
    out = run(script, cwd=tmp_path)
    assert "MAPIE is not installed" in out or "MAPIE: coverage" in out
    covered = float(out.split("confide: coverage ")[1].split(",")[0])
    assert covered > 0.82  # 0.9 minus five standard deviations: 800 records calibrated, 797 are new
    assert "1-differential privacy" in out
    calls = [node for node in ast.parse(script.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    assert sum("confide." in ast.unparse(one) for one in calls) == 3


def test_the_paper_cites_its_bibliography():
    """Every citation of `paper.md` has an entry of `paper.bib`, and every entry is cited and complete."""
    yaml = pytest.importorskip("yaml", reason="reads the metadata of the paper")
    _, head, text = (ROOT / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    bibliography = (ROOT / "paper.bib").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", bibliography, flags=re.MULTILINE | re.DOTALL))
    assert set(re.findall(r"@(\w+)", text)) == set(entries)
    assert all(f"{field} = {{" in entry for entry in entries.values() for field in ("author", "title", "year"))
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(yaml.safe_load(head))
    assert 750 <= len(text.split()) <= 1750  # as JOSS asks
    for section in ("Summary", "Statement of need", "State of the field", "Software design", "AI usage disclosure"):
        assert f"\n# {section}\n" in text


def test_the_citation_file_states_the_project():
    yaml = pytest.importorskip("yaml", reason="reads CITATION.cff")
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (stated["cff-version"], stated["version"]) == ("1.2.0", project()["version"])
    assert {"title", "authors", "message", "abstract", "license"} <= set(stated)
    for one in stated["references"]:
        assert {"type", "title", "authors", "year"} <= set(one)
