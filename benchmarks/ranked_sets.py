"""`python -m benchmarks.ranked_sets`: sets of APS, RAPS and SAPS by selection, compared with sorting and reading.

Softmax of normal logits, float32. "before" sorts the 64 most probable classes, and all if these are too few. "numpy" is
`confide` without Numba, "Numba" with it. All use the same threads and alternate. Times are those of all processors
together, which other work on the machine affects less.
"""

import argparse
import os
import time

import numpy as np

import confide.arrays.blocks
from benchmarks.both_ways import NUMBA, numpy_alone
from benchmarks.small import small
from confide.scores import own_class_scores, ranked, set_mask

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


def by_sorting(call):
    """Sort without Numba, as before the number of ranks grew in steps."""
    kept, ranked._WIDER = ranked._WIDER, 2**40
    try:
        with numpy_alone():
            call()
    finally:
        ranked._WIDER = kept


def alone(call):
    """Without Numba."""
    with numpy_alone():
        call()


def shortest(calls):
    """The shortest time of each call in ms; the calls alternate, so that all have the same conditions."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(RUNS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: 1e3 * min(taken) for name, taken in times.items()}


def in_threads(p, work):
    """Reading by the same threads and in the same blocks."""
    confide.arrays.blocks.in_blocks(lambda rows: work(p[rows]), *p.shape)


def main() -> None:
    """Print one line per score: the mean size, times in ms, and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    confide.arrays.blocks._processors = lambda: threads
    print(f"{threads} thread(s), shortest of {RUNS}, processor ms; Numba: {'yes' if NUMBA else 'not installed'}\n")
    print("| sets | size | before | numpy | Numba | before / Numba | reading | Numba / reading |")
    print("|---|---|---|---|---|---|---|---|")
    scores = []
    for n, k, score, threshold in CASES:
        n, k = small((n, k), (n // 100, k // 10))
        p, rng = softmax(n, k), np.random.default_rng(1)
        u = rng.random(n) if confide.scores.score_kind(score).randomised else None
        y, mask = rng.integers(0, k, n), np.empty(p.shape, bool)
        sets = lambda: set_mask(p, score, threshold, u=u, out=mask)  # noqa: B023, E731
        own = lambda: own_class_scores(p, y, score, u=u)  # noqa: B023, E731
        sets()
        found = mask.copy()
        by_sorting(sets)
        np.testing.assert_array_equal(found, mask)
        reading = {"read": lambda: in_threads(p, np.max)}  # noqa: B023
        t = shortest({"before": lambda: by_sorting(sets), "numpy": lambda: alone(sets), "numba": sets, **reading})  # noqa: B023
        print(
            f"| {n:,} x {k:,} `{score}` | {found.sum(axis=1).mean():.0f} | {t['before']:.1f} | {t['numpy']:.1f} | "
            f"{t['numba']:.1f} | {t['before'] / t['numba']:.1f} | {t['read']:.1f} | {t['numba'] / t['read']:.1f} |",
            flush=True,
        )
        c = shortest({"before": lambda: by_sorting(own), "numba": own, **reading})  # noqa: B023
        scores.append(
            f"| {n:,} x {k:,} `{score}` | {c['before']:.1f} | {c['numba']:.1f} | {c['before'] / c['numba']:.1f} | "
            f"{c['numba'] / c['read']:.1f} |"
        )
    print("\n| scores of the true classes | before | Numba | before / Numba | Numba / reading |\n|---|---|---|---|---|")
    print("\n".join(scores))


if __name__ == "__main__":
    main()
