"""Price of privacy in records and in seconds, by public names only.

    python -m benchmarks.price                           every table, in about a quarter of an hour
    python -m benchmarks.price --runs 20 sizes           one of them, quicker

Every row draws data sets from a known distribution and calibrates on them. "excess" is the mean of (coverage - level) n
over all levels: how many records more are covered than asked for. Its control variate is the coverage of the
non-private threshold on the same data, whose mean is known exactly. "+-" is its standard error. "beyond" is the share
of thresholds above the largest score. Times are processor times of `calibrate`: of the first call, which makes a plan,
and in the median.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide
from benchmarks.small import SMALL, small

Floats = NDArray[np.float64]
LEVELS = {1: (0.1,), 2: (0.2, 0.1), 3: (0.2, 0.1, 0.05), 8: (0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.075, 0.05)}
"""Miscoverage levels by their number."""


@dataclass(frozen=True)
class Law:
    """A distribution of scores: how n of them are drawn, its distribution function, and what `calibrate` is told."""

    draw: Callable[[np.random.Generator, int], Floats]
    below: Callable[[float], float]
    options: dict[str, Any]


def normal_residuals(**unit: float) -> Law:
    """Absolute residuals of a standard normal target."""
    options = {"score": "absolute_residual", **unit}
    return Law(lambda rng, n: np.abs(rng.standard_normal(n)), lambda t: math.erf(t / math.sqrt(2)), options)


LAWS = {
    "LAC": Law(lambda rng, n: rng.random(n), lambda t: min(t, 1.0), {"score": "lac"}),
    "residuals": normal_residuals(),
    "residuals, unit 1": normal_residuals(unit=1.0),
}


@dataclass(frozen=True)
class Row:
    """One setting: scores, number of records, whether it is public, number of levels, epsilon, number of data sets."""

    scores: str
    n: int
    public: bool
    levels: int
    epsilon: float
    runs: int


@dataclass(frozen=True)
class Price:
    """What a setting costs."""

    excess: float
    error: float
    beyond: float
    first: float
    median: float


def measure(row: Row) -> Price:
    """Calibrate on data sets of one setting, with the confide of this process."""
    law, alphas = LAWS[row.scores], LEVELS[row.levels]
    rng = np.random.default_rng(row.n)
    excess, beyond, times = [], [], []
    for _ in range(row.runs):
        scores = law.draw(rng, row.n)
        start = time.process_time()
        found = thresholds(row, scores, law.options)
        times.append(time.process_time() - start)
        ordered = np.sort(scores)
        excess.append(np.mean([excess_of(ordered, t, alpha, law) for t, alpha in zip(found, alphas, strict=True)]))
        beyond.append(np.mean([t > ordered[-1] for t in found]))
    error = np.std(excess, ddof=1) / math.sqrt(row.runs) if row.runs > 1 else math.nan
    return Price(float(np.mean(excess)), float(error), float(np.mean(beyond)), times[0], float(np.median(times)))


def thresholds(row: Row, scores: Floats, options: dict[str, Any]) -> list[float]:
    """The released thresholds, one for each level."""
    asked = {"neighbors": "replace_one" if row.public else "add_remove", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thresholds that cover everything are counted here
        if row.levels == 1:
            return [confide.calibrate(scores, LEVELS[1][0], row.epsilon, **asked).threshold]
        released = confide.calibrate(scores, LEVELS[row.levels], row.epsilon, **asked)
        return [part.threshold for part in released.parts.values()]


def excess_of(ordered: Floats, threshold: float, alpha: float, law: Law) -> float:
    """Coverage above the level in records; the k-th smallest score, without privacy, covers k/(n+1) in the mean."""
    n = len(ordered)
    k = math.ceil(round((1 - alpha) * (n + 1), 9))
    plain, plain_mean = (law.below(ordered[k - 1]), k / (n + 1)) if k <= n else (1.0, 1.0)
    return (law.below(threshold) - plain + plain_mean - (1 - alpha)) * n


def sizes(runs: int, few: bool) -> Iterator[Row]:
    """One threshold at epsilon = 1 by the number of records."""
    for scores in LAWS:
        for n in (100, 1000) if few else (100, 200, 1000, 10**4, 10**5, 10**6):
            for public in (True, False):
                yield Row(scores, n, public, 1, 1.0, runs if n <= 10**5 else max(runs // 3, 2))


def levels(runs: int, few: bool) -> Iterator[Row]:
    """Several levels at epsilon = 1 together."""
    for scores in LAWS:
        for n in (1000,) if few else (1000, 10**5):
            for public in (True, False):
                yield from (Row(scores, n, public, k, 1.0, max(runs // k, 2)) for k in LEVELS if k > 1)


def epsilons(runs: int, few: bool) -> Iterator[Row]:
    """One threshold at other epsilons."""
    for scores in LAWS:
        for n in (1000,) if few else (1000, 10**5):
            for public in (True, False):
                yield from (Row(scores, n, public, 1, epsilon, runs) for epsilon in (0.1, 0.5, 2.0))


TABLES: dict[str, Callable[[int, bool], Iterator[Row]]] = {"sizes": sizes, "levels": levels, "epsilons": epsilons}


def cells(price: Price) -> list[str]:
    """One price as cells of a table."""
    times = (f"{1000 * seconds:.0f}" for seconds in (price.first, price.median))
    return [f"{price.excess:.1f}", f"{price.error:.1f}", f"{price.beyond:.3f}", *times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], default=[], help="default: all of them")
    parser.add_argument(
        "--runs", type=int, default=small(60, 2), help="data sets of a row; a third for a million records"
    )
    given = parser.parse_args()
    heads = ["excess", "+-", "beyond", "first ms", "ms"]
    for name in given.tables or TABLES:
        print(f"\n| {name}: scores | n | n is | levels | epsilon | {' | '.join(heads)} |\n|{'---|' * (5 + len(heads))}")
        for row in TABLES[name](given.runs, SMALL):
            shown = cells(measure(row))
            setting = (row.scores, row.n, "public" if row.public else "secret", row.levels, f"{row.epsilon:g}")
            print(f"| {' | '.join([*map(str, setting), *shown])} |", flush=True)


if __name__ == "__main__":
    main()
