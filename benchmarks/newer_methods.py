"""Newer methods by others compared with ours: their certificates and their coverage.

python -m benchmarks.newer_methods              every table, in a few minutes
python -m benchmarks.newer_methods rob-fcp      Rob-FCP's bound of coverage (docs/theory-federated.md)
python -m benchmarks.newer_methods pcoqs        the table of docs/methods.md, "Newer methods"
"""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

import confide
from benchmarks.small import small
from confide.selection import selection_law

Floats = NDArray[np.float64]
ALPHA = 0.1
DATA_SETS = small(100, 3)


def rob_fcp_bound(honest: int, byzantine: int, n: int, bins: int, alpha: float = ALPHA, beta: float = 0.05) -> float:
    """Rob-FCP's lower bound of coverage for IID silos of n scores, as its authors' program computes it, not cut at 0.

    Kang, Lin, Sun, Xiao and Li, ICML 2024; kangmintong/Rob-FCP (commit 8918a1a), `src/certification.py`.
    """
    tau = byzantine / honest
    z = -NormalDist().inv_cdf(beta / (2 * bins * honest))
    return 1 - alpha - 1 / (n + honest) - bins * z / (2 * math.sqrt(n)) * (1 + 2 * tau / (1 - tau))


def rob_fcp_table() -> Iterator[str]:
    """Rob-FCP's lower bound of coverage for 17 honest silos and 3 Byzantine ones; a bound below 0 is empty."""
    bins = (2, 10, 100)
    yield f"| scores per silo | {' | '.join(f'H = {h}' for h in bins)} |"
    yield "|" + "---|" * (1 + len(bins))
    for n in (200, 1000, 10000, 100000):
        yield f"| {n} | {' | '.join(short(rob_fcp_bound(17, 3, n, h)) for h in bins)} |"


DELTA, DECIMALS = 1e-10, 2
"""The width of the last interval of P-COQS' program, and the decimals to which it rounds its answer."""


def pcoqs_target(n: int, alpha: float) -> int:
    """The count that P-COQS searches: ceil((1 - alpha)(n + 1)), without an addition for the noise."""
    return math.ceil(round((1 - alpha) * (n + 1), 9))


def pcoqs_law(
    scores: Floats,
    alpha: float,
    rho: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    delta: float = DELTA,
    decimals: int | None = DECIMALS,
) -> tuple[Floats, Floats]:
    """The answers of P-COQS' program and their probabilities over its noise alone.

    Romanus and Molinari, TMLR; SMAC-Group/pcoqs (commit 8845977). The interval is halved until it is `delta` wide. Each
    step queries the number of scores up to the middle with Gaussian noise, and continues left or right of the middle.
    The answer is the middle of the last interval, rounded to `decimals`. With None it is not rounded, and answers
    without a score between them are merged at their mean, so that the coverage of the scores is exact.
    """
    ordered = np.sort(scores)
    times = math.ceil(math.log2((high - low) / delta))
    scale, wanted = math.sqrt(times / (2 * rho)), pcoqs_target(len(ordered), alpha)
    found: dict[float, float] = {}
    open_ends = [(low, high, 0, 1.0)]
    while open_ends:
        left, right, made, chance = open_ends.pop()
        middle = (left + right) / 2
        below = int(np.searchsorted(ordered, middle, side="right") - np.searchsorted(ordered, low, side="left"))
        reached = math.erfc((wanted - below) / scale / math.sqrt(2)) / 2
        if made == times or _settled(ordered, left, right, delta * times, decimals):
            mean = _mean(left, right, times - made, delta, reached)
            answer = mean if decimals is None else round(mean, decimals)
            found[answer] = found.get(answer, 0.0) + chance
            continue
        for one, other, share in ((left, middle, reached), (middle + delta, right, 1 - reached)):
            if chance * share > 1e-18:
                open_ends.append((one, other, made + 1, chance * share))
    answers = np.array(sorted(found))
    return answers, np.array([found[answer] for answer in answers.tolist()])


def _settled(ordered: Floats, left: float, right: float, drift: float, decimals: int | None) -> bool:
    """Whether further halvings do not change the result: the same decimals, or no score between the ends."""
    if decimals is not None:
        return round(left - drift, decimals) == round(right + drift, decimals)
    return bool(np.searchsorted(ordered, left, side="right") == np.searchsorted(ordered, right + drift, side="left"))


def _mean(left: float, right: float, times: int, delta: float, reached: float) -> float:
    """Mean middle of the last interval after halvings that all have the same probability to go left."""
    for _ in range(times):
        middle = (left + right) / 2
        left, right = (
            reached * left + (1 - reached) * (middle + delta),
            reached * middle + (1 - reached) * right,
        )
    return (left + right) / 2


@dataclass(frozen=True)
class Scores:
    """Scores with an exact law: how they are drawn, the law of one, and the score that they represent."""

    words: str
    draw: Callable[[np.random.Generator, int], Floats]
    below: Callable[[Floats], Floats]
    score: str = "lac"


UNIFORM = Scores("uniform", lambda rng, n: rng.random(n), lambda a: np.clip(a, 0, 1))
KINDS = (
    UNIFORM,
    Scores("u^(1/50), near 1", lambda rng, n: rng.random(n) ** 0.02, lambda a: np.clip(a, 0, 1) ** 50),
    Scores("u/200, small", lambda rng, n: rng.random(n) / 200, lambda a: np.clip(200 * a, 0, 1)),
    Scores(
        "Exp(1) residuals",
        lambda rng, n: rng.exponential(size=n),
        lambda a: 1 - np.exp(-np.maximum(a, 0)),
        "absolute_residual",
    ),
    Scores(
        "two values, .1 (85 %) and .9 (15 %)",
        lambda rng, n: np.where(rng.random(n) < 0.85, 0.1, 0.9),
        lambda a: np.where(a >= 0.9, 1.0, np.where(a >= 0.1, 0.85, 0.0)),
    ),
)
SETTINGS = (*((kind, 1000, 0.5) for kind in KINDS), (UNIFORM, 1000, 0.125), (UNIFORM, 200, 0.5), (UNIFORM, 5000, 0.5))


def pcoqs_table() -> Iterator[str]:
    """Mean coverage at level 0.9 and its standard deviation, noise averaged exactly, on data sets with exact laws."""
    names = ("P-COQS, its program", "unrounded", "`slopes`", "`none`")
    yield f"| n, rho, scores | {' | '.join(names)} |"
    yield "|" + "---|" * (1 + len(names))
    for kind, n, rho in SETTINGS:
        cells = [f"{mean:.4f} ({spread:.4f})" for mean, spread in compared(kind, n, rho)]
        yield f"| {n}, {rho:g}, {kind.words} | {' | '.join(cells).replace('0.', '.')} |"


def compared(kind: Scores, n: int, rho: float, data_sets: int = DATA_SETS) -> list[tuple[float, float]]:
    """Mean and standard deviation of coverage of each column; the non-private threshold is a control variate."""
    ours = confide.plan(ALPHA, rho=rho, n=n, neighbors="replace_one", score=kind.score)
    rank = pcoqs_target(n, ALPHA)
    rng, rows = np.random.default_rng(1), []
    for _ in range(data_sets):
        scores = kind.draw(rng, n)
        program = [pcoqs_law(scores, ALPHA, rho, decimals=d) for d in (DECIMALS, None)]
        plain = np.sort(scores)[[rank - 1]]
        laws = [*program, slopes_law(ours, scores), (plain, np.ones(1))]
        rows.append([(law @ kind.below(at), law @ kind.below(at) ** 2) for at, law in laws])
    first, second = np.moveaxis(np.array(rows), 2, 0)
    plain = first[:, -1]
    spread = np.sqrt(np.maximum(0, second.mean(0) - first.mean(0) ** 2))
    # Scores without ties: the non-private threshold covers rank/(n+1) in the mean for every law.
    known = rank / (n + 1) if len(set(scores.tolist())) == n else plain.mean()
    varies = plain.std() > 0
    means = [
        first[:, j].mean()
        - (np.cov(first[:, j], plain)[0, 1] / plain.var(ddof=1) * (plain.mean() - known) if varies else 0)
        for j in range(first.shape[1])
    ]
    return [(float(mean), float(sd)) for mean, sd in zip(means, spread, strict=True)]


def slopes_law(ours: confide.Plan, scores: Floats) -> tuple[Floats, Floats]:
    """The candidates of a plan and their exact probabilities."""
    mechanism, over = ours.mechanism, ours.candidates
    if mechanism is None:  # too few records for a finite threshold
        return np.array([np.inf]), np.ones(1)
    utilities = mechanism.utilities(np.bincount(np.searchsorted(over.edges, scores), minlength=over.size))
    weights = np.exp((utilities - utilities.max()) / mechanism.scale)
    return over.values, selection_law(weights)


def short(value: float) -> str:
    """Three digits, without a leading zero: .574, -20.2."""
    text = f"{value:.3f}" if abs(value) < 1 else f"{value:.3g}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "rob-fcp": rob_fcp_table,
    "pcoqs": pcoqs_table,
}


def main() -> None:
    """Print the named tables, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newer_methods", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*TABLES, []])
    for name in parser.parse_args().names or TABLES:
        print(f"\n{name}\n")
        for line in TABLES[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
