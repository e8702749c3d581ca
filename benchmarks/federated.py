"""`python -m benchmarks.federated`: the integral for M(l, k) against the published sum, and the large problems."""

import hashlib
import itertools
import math

import numpy as np

from benchmarks.small import small
from benchmarks.timing import shortest
from confide import federated
from confide.federated import qq_coverage
from confide.papers.fedcp_qq import best_qq, best_qq_unequal


def direct(l: int, k: int, m: int, n: int) -> float:
    """The published sum as printed."""
    total = 0.0
    for j in range(k, m + 1):
        for high in itertools.product(range(l, n + 1), repeat=j):
            for low in itertools.product(range(l), repeat=m - j):
                ways = math.prod(math.comb(n, i) for i in high + low)
                total += math.comb(m, j) * ways / math.comb(m * n, sum(high) + sum(low))
    return 1 - total / (m * n + 1)


def planned(sizes: list[int]) -> federated.FederatedPlan:
    """A plan of private-qq and its guarantees, without the time of keys."""
    keys = ([hashlib.sha256(f"{use} {i}".encode()).hexdigest() for use in "ab"] for i in range(len(sizes)))
    silos = [federated.Silo(f"s{i}", *pair, n) for i, (n, pair) in enumerate(zip(sizes, keys, strict=True))]
    made = federated.plan(silos, 0.1, 1.0, method="private-qq", score="lac")
    made.promises()
    return made


def main(rounds: int = small(3, 1)) -> None:
    """Print one line per measurement: the best of a few rounds, all of them interleaved."""
    sizes = np.random.default_rng(0).integers(100, 2000, 1000).tolist()
    work = {
        "sum": lambda: direct(6, 3, 6, 12),
        "integral": lambda: float(np.mean([qq_coverage(6, 3, 6, 12) for _ in range(100)])),
        "equal": lambda: best_qq(1000, 1000, 0.9),
        "unequal": lambda: best_qq_unequal(sizes, 0.9),
        "plan, equal": lambda: planned([100] * 1000),
        "plan, unequal": lambda: planned(sizes),
    }
    best = shortest(work, rounds)
    slow, fast = best["sum"], best["integral"] / 100
    apart = abs(work["sum"]() - work["integral"]())
    print("| what | time |\n|---|---|")
    print(f"| M(6, 3) at m = 6, n = 12: the published hypergeometric sum as printed | {slow:.2f} s |")
    faster = f"{fast * 1e6:.0f} us, {slow / fast:,.0f} times faster"
    print(f"| the same by one integral, to {apart:.0e} of the sum | {faster} |")
    print(f"| (l, k) of least coverage for 1000 silos of 1000 records | {best['equal']:.2f} s |")
    print(f"| 1000 silos of unequal sizes (100 to 2000 records), target ranks and k | {best['unequal']:.1f} s |")
    settings = "a plan of private-qq with all its guarantees, alpha = 0.1, epsilon = 1"
    print(f"| {settings}: 1000 silos of 100 records | {best['plan, equal']:.2f} s |")
    print(f"| the same for 1000 silos of unequal sizes | {best['plan, unequal']:.1f} s |")


if __name__ == "__main__":
    main()
