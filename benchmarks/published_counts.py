"""`python -m benchmarks.published_counts`: what noisy counts of two aggregators cost, and how long a threshold takes.

Scores of n phones are uniform. They are counted in m bins, and each of two aggregators adds discrete Laplace noise of
scale 2, as for epsilon = 1. "first" is the first candidate that reaches its target rank, "last" the last rule, which
`confide.calibrate_counts` uses. Times are the shortest of several runs, with the certificate computed anew.
"""

import argparse
import csv
import math
import sys
import time

import numpy as np

import confide
from benchmarks.small import small
from confide.guarantee import last_rule, walk_end, walk_maximum
from confide.mechanisms import published_counts

NOISE = confide.Noise.discrete_laplace(2.0, copies=2)
LEVEL, RUNS = 0.9, small(400, 4)
SIZES, BINS = (1000, 10_000, 100_000, 1_000_000), (32, 128, 512)


def target(deficit, n):
    """The smallest target rank that guarantees the level."""
    ranks = np.arange(math.floor(LEVEL * n), n + len(deficit))
    covered = [np.minimum(np.maximum(rank - np.arange(len(deficit)), 0), n + 1) @ deficit for rank in ranks[:2000]]
    return int(ranks[np.argmax(np.array(covered) >= LEVEL * (n + 1))])


def drawn(n, m, rng):
    """Noisy counts of uniform scores, shape (RUNS, m)."""
    p = 1 - math.exp(-1 / 2)
    noise = sum(rng.geometric(p, (2, RUNS, m)) - rng.geometric(p, (2, RUNS, m)))
    return rng.multinomial(n, np.full(m, 1 / m), size=RUNS) + noise


def seconds(n, m):
    """The time of one threshold."""
    counts = confide.PublishedCounts(drawn(n, m, np.random.default_rng(0))[0], confide.Candidates.unit(m), NOISE, n)
    times = []
    for _ in range(small(5, 1)):
        published_counts._end.cache_clear()
        start = time.perf_counter()
        confide.calibrate_counts(counts, 0.1)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line for each number of phones and bins."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["phones", "bins", "next bin", "first", "last", "ranks, first", "ranks, last", "last / first", "ms"])
    rng = np.random.default_rng(0)
    for n in SIZES:
        for m in BINS:
            law = np.convolve(NOISE.law, NOISE.law)
            noisy = drawn(n, m, rng)
            reach = n - (noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1))
            row, ranks = [], []
            for rule, deficit in (("first", walk_maximum(law, m - 1)), ("last", walk_end(law, m - 1))):
                reached = reach >= target(deficit, n)
                reached[:, -1] = True
                index = reached.argmax(axis=1) if rule == "first" else last_rule(reached)
                row.append(f"{np.mean((index + 1) / m):.4f}")
                ranks.append(float(deficit @ np.arange(len(deficit))))
            costs = [f"{ranks[0]:.1f}", f"{ranks[1]:.1f}", f"{ranks[1] / ranks[0]:.2f}"]
            best = f"{math.ceil(LEVEL * m) / m:.4f}"
            table.writerow([f"{n:,}", m, best, *row, *costs, f"{1e3 * seconds(n, m):.1f}"])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
