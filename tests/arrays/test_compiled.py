"""The compiled loops: used if Numba is installed and the input is large, with the results of Python and numpy."""

import subprocess
import sys

import numpy as np
import pytest

import confide.arrays.blocks
from confide import Candidates
from confide.arrays import loops
from confide.arrays.blocks import machine_code, worth_compiling
from confide.counting.cells import Cells, CompiledCells
from tests.builders import slow

SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 0.1, 0.5, 1.0, np.nextafter(1.0, 2.0), 1e300, -1e300, np.inf, -np.inf, np.nan]


@pytest.fixture(params=["python", "numba"])
def compile_or_not(request):
    if request.param == "python":
        return lambda loop: loop
    pytest.importorskip("numba", reason="the extra `speed` is not installed")
    return machine_code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "other"),
    [(np.float32, np.float64), *slow([(np.float32, np.float32), (np.float64, np.float32), (np.float64, np.float64)])],
)
def test_loops_equal_numpy(compile_or_not, dtype, other):
    with np.errstate(over="ignore"):
        x, y = np.array(SPECIAL * 3, dtype), np.array(SPECIAL, other).repeat(3)
    wide = x.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(y)

    with np.errstate(all="ignore"):
        table, labels, own = np.stack([x, x[::-1]], axis=1), np.arange(len(x)) % 2, np.empty(len(x))
        assert compile_or_not(loops.gather)(table, labels, own) is False
        assert np.array_equal(own, 1 - np.where(labels, wide[::-1], wide), equal_nan=True)
        assert compile_or_not(loops.gather)(np.clip(np.nan_to_num(table), 0, 1), labels, own) is True

        mask = np.empty(len(x), bool)
        for cut in x:
            assert compile_or_not(loops.at_least)(x, cut, mask) is False
            assert np.array_equal(mask, x >= cut)
        unit = x[(x >= 0) & (x <= 1)]
        assert compile_or_not(loops.at_least)(unit, x.dtype.type(0.5), mask[: len(unit)]) is True

        out, lower, upper = np.empty((3, len(x)))
        assert compile_or_not(loops.residuals)(x, y, out) is False
        assert np.array_equal(out, np.abs(y.astype(np.float64) - wide), equal_nan=True)
        assert compile_or_not(loops.residuals)(x[finite], y[finite], out[finite]) is True
        assert compile_or_not(loops.ends)(x, 1.25, lower, upper) is False
        assert np.array_equal(lower, wide - 1.25, equal_nan=True)
        assert np.array_equal(upper, wide + 1.25, equal_nan=True)
        fine = x[np.isfinite(x)]
        assert compile_or_not(loops.ends)(fine, 1.25, lower[: len(fine)], upper[: len(fine)]) is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("together", "dtype"),
    [
        (1, np.float64),
        (3, np.float32),
        (100, np.float64),
        *slow([(1, np.float32), (3, np.float64), (100, np.float32)]),
    ],
)
def test_counting_equals_numpy(compile_or_not, dtype, together, monkeypatch):
    """Special values, including edges, in groups of any size: counted up to the first group with an invalid value."""
    monkeypatch.setattr(confide.counting.cells, "machine_code", compile_or_not)
    monkeypatch.setattr(confide.counting.cells, "_TOGETHER", together)
    with np.errstate(all="ignore"):
        x = np.random.default_rng(0).permutation(np.array(SPECIAL * 5, dtype))
        edges = np.unique(np.array(SPECIAL)[np.isfinite(SPECIAL)])
        for origin, scale in ((-0.5, 7.25), (0.0, 1e4), (-1e300, 1e300), (0.1, 5e-324)):
            for low, high in ((0.0, 1.0), (-np.inf, np.inf), (0.0, np.inf)):
                valid = (low <= x) & (x <= high)
                for scores in (x, x[valid], x[::-1], x[:0]):
                    cells = CompiledCells(edges, origin, scale)
                    counted = cells.add(scores, low, high)
                    stop = np.append(np.flatnonzero(~((low <= scores) & (scores <= high))), len(scores) + together)[0]
                    assert counted == min(stop // together * together, len(scores))
                    bins = np.searchsorted(edges, scores[:counted].astype(np.float64))
                    assert cells.counts.tolist() == np.bincount(bins, minlength=len(edges) + 1).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "candidates",
    [Candidates.unit(1000), Candidates.unit(300, "logit"), Candidates.spread("signed", 200), Candidates.of([0.25])],
)
def test_most_scores_are_counted_by_machine_code(dtype, candidates):
    pytest.importorskip("numba", reason="the extra `speed` is not installed")
    rng = np.random.default_rng(0)
    for scores in (rng.random(2**15), np.abs(rng.normal(size=2**15)), rng.standard_cauchy(2**15)):
        block = scores.astype(dtype)
        cells = CompiledCells.for_sample(np.sort(scores), candidates.edges)
        if cells is None:
            continue  # a Cauchy distribution over one cell: counted by sorting
        assert cells.add(block, -np.inf, np.inf) == len(block)
        at_or_below = np.searchsorted(np.sort(block.astype(np.float64)), candidates.edges, side="right")
        assert cells.counts.cumsum()[:-1].tolist() == at_or_below.tolist()
        assert cells.add(np.append(dtype(np.nan), block), -np.inf, np.inf) == 0
        assert cells.counts.sum() == len(block)
    assert CompiledCells.for_sample(np.sort(rng.random(2**15)), candidates.edges) is not None


def test_scores_without_useful_cells():
    """Scores that differ in their last digits only, or by many orders of magnitude, get no cells."""
    pytest.importorskip("numba", reason="the extra `speed` is not installed")
    edges = Candidates.spread("residual", 200).edges
    for sample in (
        np.ones(2**10),
        np.full(2**10, np.inf),
        np.exp(np.random.default_rng(0).normal(size=2**10) * 50),
        [],
    ):
        for kind in (Cells, CompiledCells):
            assert kind.for_sample(np.sort(sample), edges) is None


def test_cells_follow_the_scores():
    """Scores from another range than that of the cells: far from their edges at first, and close after a change."""
    pytest.importorskip("numba", reason="the extra `speed` is not installed")
    rng, edges = np.random.default_rng(0), Candidates.unit(1000).edges
    early, late = rng.random(2**15) / 10, rng.random(2**15) / 10 + 0.8

    def share_far(cells, scores):
        laid = cells._low, cells._scale, cells._starts, cells._edges
        counted, far = cells._count(scores, 0.0, 1.0, *laid, cells._room, np.zeros_like(cells.counts))
        return far / counted

    cells = CompiledCells.for_sample(np.sort(early), edges)
    assert share_far(cells, early) < 0.1
    assert share_far(cells, late) > 0.9
    cells.add(early, 0.0, 1.0)
    cells.add(late, 0.0, 1.0)
    assert share_far(cells, late) < 0.1
    assert share_far(cells.empty_copy(), late) < 0.1
    cells.add(early[:1000], 0.0, 1.0)  # too few for another change
    assert share_far(cells, late) < 0.1
    bins = np.searchsorted(edges, np.concatenate([early, late, early[:1000]]))
    assert cells.counts.tolist() == np.bincount(bins, minlength=len(edges) + 1).tolist()


def test_when_machine_code_is_used(monkeypatch):
    monkeypatch.setattr(confide.arrays.blocks, "_loads", lambda: True)
    assert worth_compiling(2**28)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert not worth_compiling(2**28 - 1)
    monkeypatch.setitem(sys.modules, "numba", object())
    assert worth_compiling(1)
    monkeypatch.setattr(confide.arrays.blocks, "_loads", lambda: False)
    assert not worth_compiling(2**28)


def test_a_numba_that_does_not_load_is_ignored(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
    program = (
        "import numpy as np, confide, confide.arrays.blocks\n"
        "confide.arrays.blocks._WORTH_LOADING = 2**20\n"
        "scores = np.zeros(2**20, np.float32)\n"
        "assert confide.ScoreHistogram.from_scores(scores, confide.Candidates.of([0.0])).counts[0] == 2**20\n"
        "assert not confide.arrays.blocks.worth_compiling(2**20)\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path)}, check=True)
