"""Widths and times of coverage intervals from noisy counts, compared with Clopper and Pearson's without noise.

    python -m benchmarks.private_coverage               the table of docs/benchmarks.md, in a few minutes
    python -m benchmarks.private_coverage --draws 60    the same from fewer draws, in well under a minute

The ratio of mean widths, with new records and noise for each cell, the same for both intervals: at confidence 95 %,
with the guess 0.9, n secret. "ten classes": ten disjoint parts of n records each, simultaneously, both at error 1 -
0.95^(1/10). "total of ten": all n records, their counts added up over ten cells. "public": one noisy count, n public.
Times are processor times of one core, tables included.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.small import small
from confide.noisy_counts import coverage_interval, one_count_interval, simultaneous
from confide.sets import exact_interval

SHARES = (0.8, 0.9, 0.95, 0.99)


def drawn(
    rng: np.random.Generator, n: int, share: float, epsilon: float, draws: int, noises: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Covered records, and noisy counts of covered and missed ones; nothing is private, so numpy's noise suffices."""
    covered = rng.binomial(n, share, draws)
    a, b, c, d = rng.geometric(1 - np.exp(-epsilon), (4, noises, draws)).sum(axis=1)
    return covered, covered + a - b, n - covered + c - d


def ratio(
    rng: np.random.Generator, n: int, share: float, epsilon: float, draws: int, error: float = 0.05, noises: int = 1
) -> float:
    """Mean width of the intervals over that of Clopper and Pearson's."""
    covered, x, y = drawn(rng, n, share, epsilon, draws, noises)
    low, high = coverage_interval(x, y, epsilon, error=error, noises=noises)
    return float((high - low).mean() / plain(covered, n, error))


def public_ratio(rng: np.random.Generator, n: int, epsilon: float, draws: int) -> float:
    """The same from one count and a public size."""
    covered, x, _ = drawn(rng, n, 0.9, epsilon, draws)
    low, high = one_count_interval(x, n, epsilon)
    return float((high - low).mean() / plain(covered, n, 0.05))


def plain(covered: NDArray[np.int64], n: int, error: float) -> float:
    """Mean width without noise."""
    low, high = exact_interval(covered, np.full(len(covered), n), 1 - error)
    return float((high - low).mean())


def seconds(rng: np.random.Generator, n: int, epsilon: float) -> float:
    """Time of a hundred parts."""
    _, x, y = drawn(rng, n, 0.9, epsilon, 100)
    start = time.process_time()
    coverage_interval(x, y, epsilon)
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=small(300, 5))
    parser.add_argument("--sizes", type=int, nargs="+", default=small([100, 300, 1000, 3000, 10_000], [100]))
    chosen = parser.parse_args()
    rng, each = np.random.default_rng(1), simultaneous(0.05, 10)
    heads = ["n", "epsilon", *(f"coverage {share}" for share in SHARES), "ten classes", "total of ten", "public", "ms"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for n in chosen.sizes:
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            found = [ratio(rng, n, share, epsilon, chosen.draws) for share in SHARES]
            found.append(ratio(rng, n, 0.9, epsilon, chosen.draws, each))
            found.append(ratio(rng, n, 0.9, epsilon, chosen.draws, noises=10))
            found.append(public_ratio(rng, n, epsilon, chosen.draws))
            cells = [f"{value:.2f}" for value in found]
            print(f"| {n:,} | {epsilon:g} | {' | '.join(cells)} | {1000 * seconds(rng, n, epsilon):.0f} |", flush=True)


if __name__ == "__main__":
    main()
