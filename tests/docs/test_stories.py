"""The stories run as scripts, and open as notebooks."""

import os
import subprocess
import sys

import pytest
from scipy.stats import binomtest

from confide import Ledger
from confide.core import load_release
from tests.docs.blocks import ROOT
from tests.elsewhere import shared_data

STORIES = ROOT / "examples" / "stories"


def run(name, folder, *arguments, **settings):
    environment = {**os.environ, "CONFIDE_DATA": str(folder), **settings}
    done = subprocess.run(
        [sys.executable, STORIES / f"{name}.py", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_hospitals():
    code, out, err = run("hospitals", shared_data("uci_heart").parent)
    assert code == 0, err
    assert "4 of 4 silos answered" in out
    together = float(out.split("all together ")[1].split()[0])
    # 308 new patients, coverage guaranteed to be 0.8 on average; at level 1e-6 it is not below.
    assert binomtest(round(together * 308), 308, 0.8, alternative="less").pvalue > 1e-6


@pytest.mark.long
def test_year(tmp_path):
    code, out, err = run("year", shared_data("bike_train.csv").parent, str(tmp_path))
    assert code == 0, err
    looks = [line for line in out.splitlines() if line.startswith("201") and " covered, " in line]
    assert len(looks) == 36
    # In the first two batches of January half of 334 hours are missed, where 0.15 is allowed: no alarm is practically
    # impossible, because the evidence would have to fall by a factor of e^20.
    assert any(line.startswith("2012-01") and line.endswith("ALARM") for line in looks)
    assert float(out.split("covered in the year: ")[1].split()[0]) > float(out.split("been kept: ")[1].split()[0])
    account = Ledger(tmp_path / "budget.db").account("hours")
    assert account.spent().epsilon <= account.limit.epsilon == 3
    kinds = [entry.kind for entry in account.entries]
    assert (kinds.count("look"), kinds.count("evaluation")) == (36, 2)
    assert [page.name for page in sorted(tmp_path.glob("*.html"))][:2] == ["ledger.html", "release.html"]
    assert load_release(tmp_path / "release.json").renews is not None
    assert kinds.count("calibration") <= 4


@pytest.mark.long
@pytest.mark.parametrize(("name", "needs"), [("hospitals", "folder uci_heart"), ("year", "file bike_train.csv")])
def test_stories_without_data_state_their_needs(tmp_path, name, needs):
    code, _, err = run(name, tmp_path)
    assert code == 1
    assert err.startswith(f"needs the {needs}")


@pytest.mark.long
def test_images():
    for module in ("torch", "opacus", "PIL"):
        pytest.importorskip(module, reason="needs the extra 'experiments'")
    code, out, err = run("images", shared_data("cifar10_test.parquet").parent, CONFIDE_STORY="small")
    assert code == 0, err
    assert "1-differential privacy" in out
    covered = float(out.split("coverage ")[1].split()[0])
    assert binomtest(round(covered * 600), 600, 0.9, alternative="less").pvalue > 1e-6


@pytest.mark.slow(unless=("images", "year"))
@pytest.mark.parametrize("name", ["hospitals", "images", "year"])
def test_stories_open_as_notebooks(name):
    jupytext = pytest.importorskip("jupytext")
    notebook = jupytext.read(STORIES / f"{name}.py")
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert kinds.count("code") >= 5
    assert kinds.count("markdown") >= 5
