"""Figures 3 and 5: intervals on the synthetic data of Section 5.1, silos of 20 records, and of unequal sizes."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.small import small
from confide import federated
from confide.federated import RankChoice
from confide.papers import fedcp_qq
from experiments.cache import RESULTS
from experiments.federated.draws import drawn
from experiments.federated.paper.measure import ALPHA, length
from experiments.federated.paper.measure import thresholds as published_thresholds
from experiments.federated.paper.pictures import save
from experiments.federated.paper.regressors import SYNTHETIC_LEAF, forest
from experiments.plots import figure

RECORDS, TEST, DRAWS = 2000, 5000, small(20, 2)
EQUAL = (20,) * 50
UNEQUAL = (10, 15, 20, 25, 30) * 10
"""The paper does not state its unequal sizes; these have the same sum."""
UNIT = 0.25
"""A public guess at the size of scores, for the candidates of ours."""
PRIVATE = "FedCP²-QQ, epsilon 10"
OURS = ("private-qq, epsilon 10", "secure-sum, epsilon 1")


def sample(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """X ~ U[1, 5], Y ~ Pois(sin^2 X + 0.1) + 0.03 X N + 25 1{U < 0.01} N."""
    x = rng.uniform(1, 5, size)
    counted = rng.poisson(np.sin(x) ** 2 + 0.1)
    return x, counted + 0.03 * x * rng.normal(size=size) + 25 * (rng.random(size) < 0.01) * rng.normal(size=size)


@dataclass(frozen=True)
class Draw:
    """One draw of the data with the forest's quantiles: calibration scores, and test records."""

    scores: np.ndarray
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


def draw(seed: int) -> Draw:
    """2000 records, half to train on and half to calibrate with, 5000 more to test on; kept once made."""
    path = RESULTS / "federated" / "paper" / "synthetic" / f"{seed}.npz"
    if not path.exists():
        rng = np.random.default_rng([51, seed])
        (x, y), (new_x, new_y) = sample(RECORDS, rng), sample(TEST, rng)
        half = RECORDS // 2
        after = np.concatenate([x[half:], new_x])[:, None]
        low, high = forest(x[:half, None], y[:half], after, seed, leaf=SYNTHETIC_LEAF)
        scores = np.maximum(low[:half] - y[half:], y[half:] - high[:half])
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            path.with_suffix(".part.npz"), scores=scores, x=new_x, y=new_y, low=low[half:], high=high[half:]
        )
        path.with_suffix(".part.npz").replace(path)
    with np.load(path) as found:
        return Draw(**dict(found))


@lru_cache
def plan(name: str, sizes: tuple[int, ...]) -> tuple[federated.FederatedPlan, int]:
    """The library's own plan, with its own candidates, and its k."""
    method, epsilon = name.split(", epsilon ")
    silos = [federated.SiloKeys.generate(f"silo {i}").public(n) for i, n in enumerate(sizes)]
    made = federated.plan(silos, ALPHA, float(epsilon), score="cqr", unit=UNIT, method=method, population="common")
    return made, made.certify()[0]


@lru_cache
def choice(sizes: tuple[int, ...]) -> RankChoice:
    """(l*, k*) for equal sizes; A.1 otherwise: l_j = ceil((1-alpha)(n_j + 1)), and the least k that reaches the level."""
    if len(set(sizes)) == 1:
        return fedcp_qq.best_qq(len(sizes), sizes[0], 1 - ALPHA)
    return fedcp_qq.best_qq_unequal(sizes, 1 - ALPHA, fedcp_qq.published_ranks(sizes, 1 - ALPHA))


def thresholds(scores: np.ndarray, sizes: tuple[int, ...], rng: np.random.Generator) -> dict[str, float]:
    """Every method's threshold for scores that are dealt to silos of these sizes in order."""
    silos = np.split(scores, np.cumsum(sizes)[:-1])
    best = choice(sizes)
    replies = sorted(float(np.sort(silo)[l - 1]) for silo, l in zip(silos, best.ranks, strict=True))
    found = {
        "FedCP-QQ": replies[best.k - 1],
        "centralised": fedcp_qq.centralised_threshold(silos, ALPHA),
        "FedCP-Avg": fedcp_qq.average_threshold(silos, ALPHA),
    }
    for name in OURS:
        made, k = plan(name, sizes)
        edges = made.candidates.edges
        counts = [np.bincount(np.searchsorted(edges, silo), minlength=len(edges) + 1) for silo in silos]
        found[name] = drawn(made, k, np.array(counts), rng)
    if len(set(sizes)) == 1:  # the published private method is for equal sizes
        found |= published_thresholds(np.array(silos), (PRIVATE,), rng)
    return found


def study(name: str, sizes: tuple[int, ...]) -> str:
    """The picture of the first draw, and a table over all of them."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for seed in range(DRAWS):
        one = draw(seed)
        found = thresholds(one.scores, sizes, np.random.default_rng([52, seed]))
        for method, t in found.items():
            covered = float(np.mean((one.low - t <= one.y) & (one.y <= one.high + t)))
            rows.setdefault(method, []).append((covered, length(one.high - one.low, t)))
        if seed == 0:
            _picture(name, one, found, rows)
    total = sum(sizes) + 1
    pooled = math.ceil((1 - ALPHA) * total) / total
    law = f"Exact laws on continuous scores: FedCP-QQ {choice(sizes).coverage:.4f}, centralised {pooled:.4f}."
    return f"{_table(rows)}\n\n{law}"


def _picture(name: str, one: Draw, found: dict[str, float], rows: dict[str, list[tuple[float, float]]]) -> None:
    fig, axes = figure(2, 3, height=5.2)
    order = np.argsort(one.x)
    for axis, method in zip(axes.ravel(), found, strict=False):
        covered, mean = rows[method][0]
        axis.plot(one.x, one.y, ".", color="#444444", markersize=1.2, alpha=0.35)
        color = "tab:orange" if method in OURS else "tab:blue"
        low, high = (one.low - found[method])[order], (one.high + found[method])[order]
        axis.fill_between(one.x[order], low, high, color=color, alpha=0.35, linewidth=0.6)
        axis.set(title=f"{method}\ncoverage {covered:.3f}, length {mean:.2f}", ylim=(-2.5, 6), xlim=(1, 5))
        axis.title.set_fontsize(8.5)
    if len(found) < axes.size:
        axes[1, 2].axis("off")
    fig.supxlabel(
        "X; dots: 5000 test records; blue: the paper's methods; orange: ours, private; outliers lie beyond the picture",
        fontsize=8.5,
    )
    save(fig, name)


def _table(rows: dict[str, list[tuple[float, float]]]) -> str:
    lines = ["| method | coverage, first draw | length | mean coverage | mean length |", "|---|---:|---:|---:|---:|"]
    for method, values in rows.items():
        coverage, lengths = np.array(values).T
        error = coverage.std(ddof=1) / math.sqrt(len(coverage))
        lines.append(
            f"| {method} | {coverage[0]:.4f} | {lengths[0]:.3f} | {coverage.mean():.4f} ± {error:.4f} | {lengths.mean():.3f} |"
        )
    return "\n".join(lines)
