"""Price of groups that overlap: coverage of the worst group and widths, compared with the alternatives.

    python -m benchmarks.overlapping

Two sexes, five ages and four sites with shares of 50, 30, 15 and 5 %. Residuals are Gaussian, and wider in some groups.
Coverage and widths given the thresholds are exact over all 40 combinations. Coverage is the mean over data sets, widths
the median. Times are processor times of one call, the median of alternating calls.
"""

import itertools
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import confide
from benchmarks.small import small

NAMES: dict[str, list[Any]] = {"sex": ["f", "m"], "age": [1, 2, 3, 4, 5], "site": ["a", "b", "c", "d"]}
SHARES = {"sex": [0.5, 0.5], "age": [0.2] * 5, "site": [0.5, 0.3, 0.15, 0.05]}
WIDER = {"m": 1.25, "d": 1.3, **{age: 0.85 + 0.15 * age for age in NAMES["age"]}}
CASES = small(((1000, 1.0), (3000, 1.0), (10_000, 0.3), (10_000, 1.0), (10_000, 3.0), (100_000, 1.0)), ((1000, 1.0),))
DATA_SETS, ROUNDS = small(40, 1), small(9, 1)

CELLS = list(itertools.product(*NAMES.values()))
"""All combinations of groups."""

CELL_NAMES = ["-".join(map(str, cell)) for cell in CELLS]
SHARE = np.prod(list(itertools.product(*SHARES.values())), axis=1)
SCALE = np.array([np.prod([WIDER.get(value, 1.0) for value in cell]) for cell in CELLS])
OPTIONS: dict[str, Any] = {"score": "absolute_residual", "unit": 1.0}

Thresholds = NDArray[np.float64]


def drawn(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The combination of each record, and its residual."""
    cell = rng.choice(len(CELLS), n, p=SHARE)
    return cell, np.abs(rng.normal(size=n)) * SCALE[cell]


def columns(cell: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The groups of records in these combinations."""
    values = zip(*(CELLS[place] for place in range(len(CELLS))), strict=True)
    return {name: np.array(value)[cell] for name, value in zip(NAMES, values, strict=True)}


EVERY = columns(np.arange(len(CELLS)))


def one(cell: NDArray[np.int64], scores: NDArray[np.float64], epsilon: float) -> Thresholds:
    """One private threshold for all."""
    released = confide.calibrate(scores, 0.1, epsilon, **OPTIONS)
    return np.full(len(CELLS), released.threshold)


def largest(cell: NDArray[np.int64], scores: NDArray[np.float64], epsilon: float) -> Thresholds:
    """The largest threshold of each combination's groups."""
    released = confide.calibrate_groups(scores, columns(cell), NAMES, 0.1, epsilon, **OPTIONS)
    return np.asarray(released.limits(len(CELLS), groups=EVERY))


def without_privacy(cell: NDArray[np.int64], scores: NDArray[np.float64], epsilon: float) -> Thresholds:
    """The same, each threshold the conformal one of its group."""
    own = columns(cell)

    def threshold(inside: NDArray[np.bool_]) -> float:
        return confide.calibrate(scores[inside], 0.1, mechanism="none", **OPTIONS).threshold

    found = {(name, value): threshold(own[name] == value) for name, values in NAMES.items() for value in values}
    return np.array([max(found[key] for key in zip(NAMES, combination, strict=True)) for combination in CELLS])


def combinations(cell: NDArray[np.int64], scores: NDArray[np.float64], epsilon: float) -> Thresholds:
    """A threshold for each of the 40 combinations, which are disjoint, so that each has the whole budget."""
    names = np.array(CELL_NAMES)[cell]
    released = confide.calibrate_groups(scores, names, CELL_NAMES, 0.1, epsilon, **OPTIONS)
    return np.asarray(released.limits(len(CELLS), groups=CELL_NAMES))


METHODS: dict[str, Callable[..., Thresholds]] = {
    "one threshold": one, "largest": largest, "without privacy": without_privacy, "combinations": combinations,
}  # fmt: skip


def measured(n: int, epsilon: float, rng: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    """For each method: mean coverage of the worst group, median width where finite, and the share of +inf."""
    covered, widths, infinite = ({name: list[Any]() for name in METHODS} for _ in range(3))
    for _ in range(DATA_SETS):
        cell, scores = drawn(n, rng)
        for name, method in METHODS.items():
            limits = method(cell, scores, epsilon)
            inside, finite = 2 * stats.norm.cdf(limits / SCALE) - 1, np.isfinite(limits)
            covered[name].append(
                [
                    np.average(inside[EVERY[column] == value], weights=SHARE[EVERY[column] == value])
                    for column, values in NAMES.items()
                    for value in values
                ]
            )
            widths[name].append(np.average(limits[finite], weights=SHARE[finite]) if finite.any() else np.nan)
            infinite[name].append(SHARE[~finite].sum())
    return {
        name: (np.mean(covered[name], axis=0).min(), float(np.nanmedian(widths[name])), float(np.mean(infinite[name])))
        for name in METHODS
    }


def seconds(n: int, rng: np.random.Generator) -> dict[str, float]:
    """The median processor time of a call of each method; the calls alternate."""
    cell, scores = drawn(n, rng)
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    for _ in range(ROUNDS + 1):  # the first round prepares what all calls share
        for name, method in METHODS.items():
            start = time.process_time()
            method(cell, scores, 1.0)
            found[name].append(time.process_time() - start)
    return {name: median(values[1:]) for name, values in found.items()}


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore", confide.CoverageWarning)
    rng = np.random.default_rng(0)
    print("| n, epsilon | " + " | ".join(METHODS) + " |")
    print("|---|" + "---|" * len(METHODS))
    for n, epsilon in CASES:
        found = measured(n, epsilon, rng)
        base = found["one threshold"][1]
        cells = (
            f"{worst:.3f}, {width / base:.2f}" + (f" ({infinite:.2f} +inf)" if infinite >= 0.005 else "")
            for worst, width, infinite in found.values()
        )
        print(f"| {n}, {epsilon:g} | " + " | ".join(cells) + " |", flush=True)
    print("\n| n | " + " | ".join(METHODS) + " |")
    print("|---|" + "---|" * len(METHODS))
    for n in small((10_000, 100_000), (1000,)):
        found_times = seconds(n, rng)
        base = found_times["one threshold"]
        print(f"| {n} | " + " | ".join(f"{t * 1e3:.1f} ms, {t / base:.1f}" for t in found_times.values()) + " |")


if __name__ == "__main__":
    main()
