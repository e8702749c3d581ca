"""Exact results without draws: coverage M(l*, k*), coverage given the data, the price of privacy."""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.small import small
from confide.federated.certificates import conditional_coverage_failure
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols.fedcp2_qq import best_published
from confide.federated.quantile_of_quantiles import qq_coverage
from confide.federated.reply_laws import RandomRankReply
from confide.papers.fedcp_qq import best_qq
from confide.papers.one_shot_federated import published_conditional_k, published_deviation
from experiments.federated.study import ALPHA

LEVEL = 1 - ALPHA
EPSILONS = (10.0, 5.0, 1.0)
_DELTA = 0.05


def compensations(epsilon: float) -> tuple[float, float]:
    """Degree of compensation of private-qq and of the published method at m=5, n=200, 100 candidates."""
    ours, published = best_private_qq([200] * 5, LEVEL, epsilon, 100), best_published(5, 200, ALPHA, epsilon, 100)
    mine = float(qq_coverage(int(ours.mechanisms[0].offset), ours.k, 5, 200))
    return mine, math.nan if published is None else published.compensation


def table() -> str:
    """The degrees of compensation."""
    lines = ["## Degree of compensation, m = 5, n = 200, 100 candidates", ""]
    lines += ["Coverage if every silo returns exactly its target rank.", ""]
    lines += ["| epsilon | private-qq | fedcp2-qq | fedcp-qq without privacy |", "|---|---|---|---|"]
    plain = best_qq(5, 200, LEVEL).coverage
    for epsilon in EPSILONS:
        ours, published = compensations(epsilon)
        lines.append(f"| {epsilon:g} | {ours:.4f} | {published:.4f} | {plain:.4f} |")
    return "\n".join(lines)


def quantile(l: int, k: int, m: int, n: int) -> float:
    """The coverage that is reached with probability 0.95 over the calibration data, exactly."""
    replies, low, high = [RandomRankReply.fixed(n, l)] * m, 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        fails = conditional_coverage_failure(replies, k, middle) > _DELTA
        low, high = (low, middle) if fails else (middle, high)
    return low


def figure(path: Path) -> None:
    """Three panels, all computed from exact laws."""
    fig, (first, second, third) = plt.subplots(1, 3, figsize=(13, 3.8), constrained_layout=True)
    sizes = np.unique(np.geomspace(10, small(1000, 30), small(25, 3)).astype(int))
    for m in (5, 20, 100):
        choices = [best_qq(m, int(n), LEVEL) for n in sizes]
        first.plot(sizes, [c.coverage if c else np.nan for c in choices], label=f"fedcp-qq, m = {m}", marker=".")
    pooled = [math.ceil(LEVEL * (int(n) * 5 + 1)) / (int(n) * 5 + 1) for n in sizes]
    first.plot(sizes, pooled, color="gray", linestyle=":", label="centralised, m = 5")
    first.set(xscale="log", xlabel="n, records per silo", ylabel="coverage", title="M(l*, k*) at alpha = 0.1")
    for m, color in ((5, "tab:blue"), (20, "tab:orange")):
        bound = [0.9 - published_deviation(m, int(n), _DELTA) for n in sizes]
        exact = []
        for n in sizes:
            ks = [(l, published_conditional_k(l, m, int(n), LEVEL)) for l in range(math.ceil(0.9 * n), n + 1)]
            least = {k: l for l, k in reversed(ks) if k is not None}  # coverage rises with l
            exact.append(min(quantile(l, k, m, int(n)) for k, l in least.items()))
        second.plot(sizes, exact, color=color, marker=".", label=f"exact, m = {m}")
        second.plot(sizes, bound, color=color, linestyle="--", label=f"Theorem 3.3, m = {m}")
    title = "coverage given the data, with probability 0.95"
    second.set(xscale="log", xlabel="n, records per silo", ylabel="coverage", title=title)
    epsilons = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
    both = np.array([compensations(epsilon) for epsilon in epsilons])
    third.plot(epsilons, both[:, 0], marker=".", label="private-qq")
    third.plot(epsilons, both[:, 1], marker=".", label="fedcp2-qq (published)")
    third.axhline(best_qq(5, 200, LEVEL).coverage, color="gray", linestyle=":", label="fedcp-qq, no privacy")
    title = "degree of compensation, m = 5, n = 200"
    third.set(xscale="log", xlabel="epsilon", ylabel="coverage at the target ranks", title=title)
    for axis in (first, second, third):
        axis.axhline(0.9, color="tab:red", linewidth=0.8)
        axis.legend(fontsize=8)
    fig.savefig(path, dpi=100)
    plt.close(fig)
