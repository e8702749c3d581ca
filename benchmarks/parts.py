"""LAC and regression part by part, against what numpy needs for the bare arithmetic, in one process."""

import itertools
import time
from pathlib import Path

import numpy as np

from benchmarks.both_ways import with_numpy_alone
from benchmarks.small import small

RUNS, MANY = small(40, 1), small(1_000_000, 1000)


def lac_parts(folder):
    """Gathering for calibration, a comparison into allocated memory for prediction, and the same by `confide`.

    Every call gets different labels, so that its probabilities are not in the cache.
    """
    import confide

    p_cal, p = (np.load(Path(folder) / f"{name}.npy") for name in ("p_cal", "p"))
    rng = np.random.default_rng(2)
    rows = np.arange(len(p_cal))
    drawn = itertools.cycle([rng.integers(0, p_cal.shape[1], len(p_cal)) for _ in range(100)])
    many, all_rows = rng.random((MANY, 10), dtype=np.float32), np.arange(MANY)
    many /= many.sum(axis=1, keepdims=True)
    y_many = rng.integers(0, 10, len(many))
    candidates = confide.Candidates.unit(1000, "logit")

    def scores_and_counts(p, y):
        return confide.ScoreHistogram.from_scores(confide.lac_score(p, y), candidates, "lac")

    def release(p, y):
        return confide.calibrate(confide.lac_score(p, y), 0.1, 1.0, score="lac")

    released = release(p_cal, next(drawn))
    counts = scores_and_counts(p_cal, next(drawn)).counts
    out, cut = np.empty(p.shape, dtype=bool), np.float32(0.01)

    def preallocated():
        return confide.predict_set(p, released, out=out)

    return {
        "LAC, calibrate": {
            "numpy: gather, 30,000 x 1000": lambda: 1 - p_cal[rows, next(drawn)],
            "confide: gather, check, count": lambda: scores_and_counts(p_cal, next(drawn)),
            "OpenDP: draw one of 1000 candidates": lambda: released.mechanism.choose(counts),
            "confide: all of it, released": lambda: release(p_cal, next(drawn)),
            "numpy: gather, 1,000,000 x 10": lambda: 1 - many[all_rows, y_many],
            "confide: gather, check, count, 1,000,000 x 10": lambda: scores_and_counts(many, y_many),
            "confide: all of it, released, 1,000,000 x 10": lambda: release(many, y_many),
            "the same without Numba": with_numpy_alone(lambda: release(many, y_many)),
        },
        "LAC, predict 20,000 x 1000": {
            "numpy: comparison, preallocated": lambda: np.greater_equal(p, cut, out=out),
            "confide: predict_set, preallocated": preallocated,
            "the same without Numba": with_numpy_alone(preallocated),
            "numpy: comparison, new memory": lambda: p >= cut,
            "confide: predict_set, new memory": lambda: confide.predict_set(p, released),
        },
    }


def regression_parts(n=MANY):
    """Absolute residuals, a million calibration and a million test records."""
    import confide

    rng = np.random.default_rng(1)
    f, y, new = (rng.normal(size=n) for _ in range(3))
    k = (9 * (n + 1) + 9) // 10
    name = "absolute_residual"
    candidates = confide.Candidates.spread("residual", 200)

    def plain():
        scores = np.abs(y - f)
        q = np.partition(scores, k - 1)[k - 1]
        return new - q, new + q

    def count():
        return confide.ScoreHistogram.from_scores(scores, candidates, name)

    def all_but_the_draw():
        confide.ScoreHistogram.from_scores(confide.absolute_residual_score(f, y), candidates, name)
        return confide.predict_interval(new, released)

    def private():
        released = confide.calibrate(confide.absolute_residual_score(f, y), 0.1, 1.0, score=name, candidates=candidates)
        return confide.predict_interval(new, released)

    scores = confide.absolute_residual_score(f, y)
    released = confide.calibrate(scores, 0.1, 1.0, score=name, candidates=candidates)
    counts = count().counts
    return {
        "numpy: residuals, partition, intervals": plain,
        "confide: residuals, counts, intervals, checked": all_but_the_draw,
        "the same without Numba": with_numpy_alone(all_but_the_draw),
        f"OpenDP: draw one of {candidates.size} candidates": lambda: released.mechanism.choose(counts),
        "confide: all of it, released": private,
        "numpy: residuals": lambda: np.abs(y - f),
        "confide: residuals": lambda: confide.absolute_residual_score(f, y),
        "numpy: partition": lambda: np.partition(scores, k - 1),
        "confide: counts": count,
        "numpy: intervals": lambda: (new - 1.0, new + 1.0),
        "confide: intervals": lambda: confide.predict_interval(new, released),
    }


def print_times(title, work):
    """Print the shortest and the median time of each call; calls alternate, so that conditions are the same."""
    times = {name: [] for name in work}
    for _ in range(RUNS):
        for name, call in work.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    print(f"| {title} | shortest ms | median ms |\n|---|---|---|")
    for name, taken in times.items():
        print(f"| {name} | {1e3 * min(taken):.2f} | {1e3 * np.median(taken):.2f} |")
    print(flush=True)
