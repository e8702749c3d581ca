"""What privacy costs, in ranks: the exact law of the answer on many data sets, drawn from laws that are known.

    python -m benchmarks.price            the tables of docs/benchmarks.md
    python -m benchmarks.price --runs 50  quicker

A rank of excess coverage is (coverage - (1 - alpha)) n epsilon; the coverage of the plain conformal threshold on the same
data, whose mean is known, is a control variate. "Beyond" is the chance of a threshold beyond the largest score.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import halfnorm

from confide.candidates import Spread
from confide.planning import Plan, answer_law, plan

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """Means over data sets: excess coverage in units of 1/(n epsilon), mean coverage, chances."""

    excess: float
    coverage: float
    infinite: float
    beyond: float


def measured(made: Plan, draw: Callable[[Any, int], Floats], cdf: Callable[[Floats], Floats], runs: int) -> Outcome:
    """The plan's mechanism on `runs` data sets of made.n scores."""
    rng, n, slopes = np.random.default_rng(1), made.n, made.mechanism
    edges, level = made.request.candidates.edges, float(made.request.level)
    covers = np.append(cdf(edges), 1.0)
    if slopes is None:
        return Outcome((1 - level) * n * made.request.epsilon, 1.0, 1.0, 1.0)
    heights = slopes.heights(made.request.m) / slopes.scale
    heights[-1] += max(0, slopes.head_start - slopes.fade * n) / slopes.scale
    rank, rows = math.ceil(level * (n + 1)), []
    for _ in range(runs):
        scores = np.sort(draw(rng, n))
        counts = np.bincount(np.searchsorted(edges, scores), minlength=made.request.m)
        law = answer_law(
            np.cumsum(counts).astype(float), made.target_rank, slopes.slope_left, slopes.slope_right, heights,
            slopes.selector,
        )  # fmt: skip
        plain = float(cdf(scores[rank - 1 : rank])[0]) if rank <= n else 1.0
        last = int(np.flatnonzero(counts).max())
        rows.append((law @ covers, plain, law[-1], law[last + 1 :].sum()))
    private, plain, infinite, beyond = np.array(rows).T
    known = rank / (n + 1) if rank <= n else 1.0
    slope = np.cov(private, plain)[0, 1] / max(plain.var(ddof=1), 1e-300)
    coverage = float(private.mean() - slope * (plain.mean() - known))
    return Outcome(
        (coverage - level) * n * made.request.epsilon, coverage, float(infinite.mean()), float(beyond.mean())
    )


LAWS: dict[str, tuple[Callable[[Any, int], Floats], Callable[[Floats], Floats]]] = {
    "even": (lambda g, n: g.random(n), lambda v: np.clip(v, 0, 1)),
    "residuals": (lambda g, n: np.abs(g.normal(size=n)), lambda v: halfnorm.cdf(v)),
}

SETTINGS = {
    "even": [
        (None, None, n, neighbors)
        for n in (60, 80, 100, 150, 200, 343, 1000, 5000)
        for neighbors in ("replace_one", "add_remove")
    ],
    "residuals": [
        ("residual", unit, n, neighbors)
        for unit in (None, 1.0, 10.0, 0.1)
        for n in (200, 250, 300, 343, 1000)
        for neighbors in ("replace_one", "add_remove")
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    for name, settings in SETTINGS.items():
        draw, cdf = LAWS[name]
        print(
            f"{name:10s} {'unit':>6} {'n':>6} {'relation':12s} {'m':>5} {'left':>5} {'rise':>5} {'excess':>7} {'coverage':>9} {'inf':>7} {'beyond':>7}"
        )
        for kind, unit, n, neighbors in settings:
            spread = Spread("probability") if kind is None else Spread(kind, unit)
            made = plan(
                0.1, 1.0, n, candidates=spread, neighbors=neighbors, n_typical=n if neighbors == "add_remove" else None
            )
            got, s = measured(made, draw, cdf, runs), made.mechanism
            print(
                f"{'':10s} {unit or '-':>6} {n:6d} {neighbors:12s} {made.request.m:5d} {s.left if s else 0:5d} {s.total_rise if s else 0:5.1f}"
                f" {got.excess:7.2f} {got.coverage:9.4f} {got.infinite:7.4f} {got.beyond:7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
