"""Work in blocks: every row once, on any number of threads, and errors are raised."""

import os
import signal
import threading

import numpy as np
import pytest

from confide.arrays import blocks


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
