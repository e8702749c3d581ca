"""One federation drawn again and again: thresholds of all methods on the same draws, their coverage and widths."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from confide.candidates import Candidates
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols.fedcp2_qq import best_published, published_quantile
from confide.papers.fedcp_qq import average_threshold, best_qq, centralised_threshold

ALPHA = Fraction(1, 10)


@dataclass(frozen=True)
class Row:
    """Coverage and mean width over draws; a width is NaN where the threshold was +inf."""

    method: str
    coverage: np.ndarray
    widths: np.ndarray

    @property
    def finite(self) -> np.ndarray:
        """The widths of draws with a finite threshold."""
        return self.widths[~np.isnan(self.widths)]

    @property
    def infinite(self) -> float:
        """How often the threshold was +inf."""
        return float(np.isnan(self.widths).mean())


def chosen(mechanism, counts: np.ndarray, rng: np.random.Generator) -> int:
    """A fast draw for experiments only: the largest of utility plus noise, with a generator that can be seeded."""
    u = mechanism.utilities(counts) / mechanism.scale
    return int(np.argmax(u + rng.gumbel(size=len(u))))


def thresholds(silos: np.ndarray, candidates: Candidates, plans: dict, rng: np.random.Generator) -> dict[str, float]:
    """The threshold of every method for scores of shape (m, n)."""
    ordered, values = np.sort(silos, axis=1), candidates.values
    qq = plans["fedcp-qq"]
    found = {
        "centralised": centralised_threshold(list(silos), ALPHA),
        "fedcp-avg": average_threshold(list(silos), ALPHA),
        "fedcp-qq": np.inf if qq is None else float(np.sort(ordered[:, qq.ranks[0] - 1])[qq.k - 1]),
    }
    at_or_below = np.array([np.searchsorted(row, candidates.edges, side="right") for row in ordered])
    counts = np.diff(at_or_below, axis=1, prepend=0, append=silos.shape[1])
    for name, plan in plans.items():
        if name == "fedcp-qq":
            continue
        if plan is None:
            found[name] = np.inf
        else:
            replies = sorted(values[chosen(one, row, rng)] for one, row in zip(plan[0], counts, strict=True))
            found[name] = float(replies[plan[1] - 1])
    return found


def plans_for(m: int, n: int, epsilons, size: int) -> dict:
    """What every method fixes before it sees data."""
    plans: dict = {"fedcp-qq": best_qq(m, n, 1 - ALPHA)}
    for epsilon in epsilons:
        ours = best_private_qq([n] * m, 1 - ALPHA, epsilon, size)
        plans[f"private-qq, epsilon {epsilon:g}"] = None if ours is None else (ours.mechanisms, ours.k)
        published = best_published(m, n, ALPHA, epsilon, size)
        plans[f"fedcp2-qq, epsilon {epsilon:g}"] = (
            None if published is None else ((published_quantile(n, published.rank, epsilon),) * m, published.k)
        )
    return plans


def run(
    problem, m: int, n: int, epsilons=(10.0, 5.0, 1.0), size: int = 100, draws: int = 100, seed: int = 0
) -> dict[str, list[list[float | None]]]:
    """Draw m silos of n records `draws` times; the records left over test. Method -> [coverage, width] per draw."""
    rng = np.random.default_rng(seed)
    candidates = Candidates.from_reference(problem.reference, size)
    plans = plans_for(m, n, epsilons, candidates.size)
    found: dict[str, list[list[float | None]]] = {}
    for _ in range(draws):
        order = rng.permutation(len(problem.scores))
        silos, rest = problem.scores[order[: m * n]].reshape(m, n), order[m * n : m * n + 4000]
        for name, threshold in thresholds(silos, candidates, plans, rng).items():
            coverage = float(np.mean(problem.scores[rest] <= threshold))
            width = float(np.maximum(problem.widths[rest] + 2 * threshold, 0).mean())
            found.setdefault(name, []).append([coverage, width if np.isfinite(width) else None])
    return found


def rows_of(found: dict[str, list[list[float | None]]]) -> list[Row]:
    """What `run` found, one row per method."""
    tables = {name: np.array(draws, dtype=np.float64) for name, draws in found.items()}
    return [Row(name, table[:, 0], table[:, 1]) for name, table in tables.items()]
