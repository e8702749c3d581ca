"""Price of privacy in records and in seconds, by public names only, also beside another version of confide.

    python -m benchmarks.price                           every table, in about a quarter of an hour
    python -m benchmarks.price --runs 20 sizes           one of them, quicker
    python -m benchmarks.price --beside OTHER/bin/python   the same with the confide of another environment, row by row

Every row draws data sets from a known distribution and calibrates on them. "excess" is the mean of (coverage - level) n
over all levels: how many records more are covered than asked for. Its control variate is the coverage of the
non-private threshold on the same data, whose mean is known exactly. "+-" is its standard error. "beyond" is the share
of thresholds above the largest score. Times are processor times of `calibrate`: of the first call, which makes a plan,
and in the median.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import confide

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
        several = getattr(confide, "calibrate_levels", confide.calibrate)  # its name in 0.3.0
        released = several(scores, LEVELS[row.levels], row.epsilon, **asked)
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


class Beside:
    """The same script in another environment: rows go to its standard input, prices come back, both as JSON."""

    def __init__(self, python: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [python, "-P", str(Path(__file__).resolve()), "--worker"]  # -P: this folder is not searched
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.version = self.answer()

    def answer(self) -> Any:
        stdout: IO[str] = self.process.stdout  # type: ignore[assignment]
        line = stdout.readline()
        if not line:
            raise SystemExit(f"--beside: the other Python ended with {self.process.wait()}")
        return json.loads(line)

    def measure(self, row: Row) -> Price:
        print(json.dumps(asdict(row)), file=self.process.stdin, flush=True)
        return Price(**self.answer())


def worker() -> None:
    """Serve `Beside`."""
    print(json.dumps(confide.__version__), flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(measure(Row(**json.loads(line))))), flush=True)


def cells(price: Price) -> list[str]:
    """One price as cells of a table."""
    times = (f"{1000 * seconds:.0f}" for seconds in (price.first, price.median))
    return [f"{price.excess:.1f}", f"{price.error:.1f}", f"{price.beyond:.3f}", *times]


def main() -> None:
    from benchmarks.small import SMALL, small  # the other environment need not have it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], default=[], help="default: all of them")
    parser.add_argument(
        "--runs", type=int, default=small(60, 2), help="data sets of a row; a third for a million records"
    )
    parser.add_argument("--beside", metavar="PYTHON", help="also measure with the confide of this Python")
    given = parser.parse_args()
    other = Beside(given.beside) if given.beside else None
    heads = ["excess", "+-", "beyond", "first ms", "ms"]
    if other is not None:
        heads += [f"{head}, beside" for head in heads] + ["excess ratio", "ms ratio"]
        print(f"confide {confide.__version__} beside {other.version}")
    for name in given.tables or TABLES:
        print(f"\n| {name}: scores | n | n is | levels | epsilon | {' | '.join(heads)} |\n|{'---|' * (5 + len(heads))}")
        for row in TABLES[name](given.runs, SMALL):
            price = measure(row)
            shown = cells(price)
            if other is not None:
                before = other.measure(row)
                shown += [*cells(before), f"{price.excess / before.excess:.2f}", f"{price.median / before.median:.2f}"]
            setting = (row.scores, row.n, "public" if row.public else "secret", row.levels, f"{row.epsilon:g}")
            print(f"| {' | '.join([*map(str, setting), *shown])} |", flush=True)


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["--worker"] else main()
