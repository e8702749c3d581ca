"""`python -m benchmarks.ranked_sets`: sets of APS, RAPS and SAPS, with and without Numba, compared with reading.

Softmax of normal logits, float32. "numpy" is `confide` without Numba, "Numba" with it; the sets of both are compared.
All use the same threads and alternate. Times are those of all processors together, which other work on the machine
affects less.
"""

import argparse
import os
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

import confide.arrays.blocks
import confide.arrays.loops
from benchmarks.small import small
from benchmarks.timing import shortest
from confide.scores import own_class_scores, set_mask

if find_spec("numba") is not None:
    import numba  # noqa: F401  from here on the compiled loops serve calls of any size

RUNS = small(11, 1)
CASES = [
    (20_000, 1000, "aps_deterministic", 0.6),
    (20_000, 1000, "aps_deterministic", 0.9),
    (20_000, 1000, "aps", 0.6),
    (20_000, 1000, "aps", 0.9),
    (20_000, 1000, "raps_deterministic(penalty=0.01,k_reg=5)", 1.1),
    (20_000, 1000, "raps(penalty=0.01,k_reg=5)", 1.1),
    (20_000, 1000, "saps_deterministic(penalty=0.01)", 1.0),
    (20_000, 1000, "saps(penalty=0.01)", 1.0),
    (1000, 21_000, "aps_deterministic", 0.6),
    (1000, 21_000, "aps_deterministic", 0.9),
    (1000, 21_000, "aps", 0.9),
    (1000, 21_000, "raps_deterministic(penalty=0.001,k_reg=5)", 1.1),
]


def softmax(n, k):
    """Probabilities of k classes for n records, some hundreds of which make up most of the mass."""
    z = np.random.default_rng(0).normal(size=(n, k)).astype(np.float32) * 2.5
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32)


def without_numba(call):
    """Call as if Numba were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confide.arrays.loops, "_loads", lambda: False)
        return call()


def main() -> None:
    """Print one line per score: the mean size, times in ms, and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    confide.arrays.blocks._processors = lambda: threads
    print(f"{threads} thread(s), shortest of {RUNS}, processor ms\n")
    print("| score | size | reading | sets: numpy | Numba | times | scores: numpy | Numba | times |\n|" + "---|" * 9)
    for n, k, score, threshold in CASES:
        n, k = small((n, k), (n // 100, k // 10))
        p, rng = softmax(n, k), np.random.default_rng(1)
        u = rng.random(n) if confide.scores.score_kind(score).randomised else None
        y, mask = rng.integers(0, k, n), np.empty(p.shape, bool)
        calls = {
            "reading": lambda p=p: confide.arrays.blocks.in_blocks(lambda rows: np.max(p[rows]), *p.shape),
            "sets": lambda p=p, score=score, to=threshold, u=u, mask=mask: set_mask(p, score, to, u=u, out=mask),
            "scores": lambda p=p, y=y, score=score, u=u: own_class_scores(p, y, score, u=u),
        }
        alone = {f"{name}, numpy": partial(without_numba, calls[name]) for name in ("sets", "scores")}
        calls["sets"]()
        found = mask.copy()
        alone["sets, numpy"]()
        np.testing.assert_array_equal(found, mask)
        shortest(calls | alone, 1)
        t = {name: 1e3 * seconds for name, seconds in shortest(calls | alone, RUNS, time.process_time).items()}
        cells = [f"{found.sum(axis=1).mean():.0f}", f"{t['reading']:.1f}"]
        for name in ("sets", "scores"):
            numpy, both = t[f"{name}, numpy"], t[name]
            cells += [f"{numpy:.1f}", f"{both:.1f}", f"{numpy / both:.1f}"]
        print(f"| {n:,} x {k:,} `{score}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
