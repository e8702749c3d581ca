"""`python -m benchmarks.federated`: the integral for M(l, k) against the published sum, and the large problems."""

import itertools
import math
import time

import numpy as np

from confide.federated.quantile_of_quantiles import best_qq, best_qq_unequal, qq_coverage


def direct(l: int, k: int, m: int, n: int) -> float:
    """The publication's sum, written as it stands."""
    total = 0.0
    for j in range(k, m + 1):
        for high in itertools.product(range(l, n + 1), repeat=j):
            for low in itertools.product(range(l), repeat=m - j):
                ways = math.prod(math.comb(n, i) for i in high + low)
                total += math.comb(m, j) * ways / math.comb(m * n, sum(high) + sum(low))
    return 1 - total / (m * n + 1)


def seconds(work, repeat: int = 1) -> tuple[float, object]:
    """Best time of a few runs, and the result."""
    best, result = math.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    """Print one line per measurement."""
    slow, expected = seconds(lambda: direct(6, 3, 6, 12))
    fast, found = seconds(lambda: float(qq_coverage(6, 3, 6, 12)), 20)
    print(f"M(6, 3) at m=6, n=12: sum {slow:.2f} s, integral {fast * 1e6:.0f} us, {slow / fast:.0f} times faster,")
    print(f"  difference {abs(expected - found):.1e}")
    time_equal, choice = seconds(lambda: best_qq(1000, 1000, 0.9), 3)
    print(f"(l*, k*) for m=n=1000: {time_equal:.2f} s, coverage {choice.coverage:.6f}")
    sizes = np.random.default_rng(0).integers(100, 2000, 1000).tolist()
    time_unequal, choice = seconds(lambda: best_qq_unequal(sizes, 0.9))
    print(f"1000 silos of unequal sizes: {time_unequal:.2f} s, coverage {choice.coverage:.6f}")


if __name__ == "__main__":
    main()
