"""Work in blocks: every row once, on any number of threads, compiled or not; errors are raised."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import confide.arrays.loops
from confide import Candidates
from confide.arrays import blocks
from confide.arrays.loops import worth_compiling
from confide.counting import Cells


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch):
    monkeypatch.setattr(blocks, "_WORTH_THREADS", 1)
    monkeypatch.setattr(blocks, "_processors", lambda: request.param)
    return request.param


@pytest.mark.parametrize(
    ("rows", "columns", "elements"), [(0, 3, 10), (1, 1, 1), (100, 7, 1), (1000, 1, 64), (9, 99, 5)]
)
def test_every_row_once(threads, rows, columns, elements):
    seen = np.zeros(rows, dtype=int)

    def work(block):
        seen[block] += 1

    blocks.in_blocks(work, rows, columns, elements)
    assert (seen == 1).all()


def test_threads_share_the_work(threads):
    together = threading.Barrier(threads, timeout=20)
    names = set()

    def work(block):
        if block.start < threads:
            together.wait()  # passes only if so many threads work at the same time
        names.add(threading.get_ident())

    blocks.in_blocks(work, 200, 1, 1)
    assert len(names) == threads


def test_an_error_ends_the_work_and_is_raised(threads):
    done = []

    def work(block):
        done.append(block.start)
        if block.start == 5:
            raise IndexError("in the work")

    with pytest.raises(IndexError):
        blocks.in_blocks(work, 10_000, 1, 1)
    assert len(done) < 10_000


def test_nested_work_in_blocks(threads):
    """More calls at once than threads: the inner calls process their blocks themselves."""
    seen = np.zeros((100, 100), dtype=int)

    def work(rows):
        blocks.in_blocks(lambda columns: inside(rows, columns), 100, 1, 9)

    def inside(rows, columns):
        seen[rows, columns] += 1

    blocks.in_blocks(work, 100, 1, 3)
    assert (seen == 1).all()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_new_threads(threads):
    work = np.zeros(100, dtype=int)
    blocks.in_blocks(lambda rows: work[rows].fill(1), 100, 1, 1)
    child = os.fork()
    if child == 0:
        try:
            blocks.in_blocks(lambda rows: work[rows].fill(2), 100, 1, 1)
        finally:
            os._exit(0 if (work == 2).all() else 1)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(20)
    try:
        assert os.waitpid(child, 0)[1] == 0
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert (work == 1).all()


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


@pytest.mark.slow
def test_a_numba_that_does_not_load_is_ignored(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    program = (
        "import confide.arrays.loops\n"
        "confide.arrays.loops._WORTH_LOADING = 2**20\n"
        "assert not confide.arrays.loops.worth_compiling(2**20)\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path)}, check=True)
