"""The compiled loops: used if Numba is installed and the input is large, with the results of Python and numpy."""

import subprocess
import sys

import numpy as np

import confide.arrays.loops
from confide import Candidates
from confide.arrays.loops import worth_compiling
from confide.counting import Cells


def test_scores_without_useful_cells():
    """Scores that differ in their last digits only, or by many orders of magnitude, get no cells."""
    edges = Candidates.spread("residual", 2000).edges
    for sample in (
        np.ones(2**10),
        np.full(2**10, np.inf),
        np.exp(np.random.default_rng(0).normal(size=2**10) * 50),
        [],
    ):
        assert Cells.for_sample(np.sort(sample), edges) is None


def test_when_machine_code_is_used(monkeypatch):
    monkeypatch.setattr(confide.arrays.loops, "_loads", lambda: True)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(confide.arrays.loops, "_entries_so_far", 0)
    assert not worth_compiling(2**28 - 1)
    assert worth_compiling(1)  # together they had enough
    monkeypatch.setitem(sys.modules, "numba", object())
    assert worth_compiling(1)
    monkeypatch.setattr(confide.arrays.loops, "_loads", lambda: False)
    assert not worth_compiling(2**28)


def test_a_numba_that_does_not_load_is_ignored(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    program = (
        "import confide.arrays.loops\n"
        "confide.arrays.loops._WORTH_LOADING = 2**20\n"
        "assert not confide.arrays.loops.worth_compiling(2**20)\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path)}, check=True)
