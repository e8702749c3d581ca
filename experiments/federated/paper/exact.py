"""Figures 1, 2, 6 and 7: results computed without draws."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.small import small
from confide.federated import best_private_qq, best_published, qq_coverage
from confide.papers.fedcp_qq import best_qq
from experiments.cache import cached
from experiments.federated.paper.measure import ALPHA, BINS
from experiments.federated.paper.pictures import save
from experiments.plots import figure

LISTED = (10, 20, 50, 100)
ALPHAS = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
SILOS, SIZES = 10, small((50, 100, 200, 300, 500, 1000), (50, 100))
EPSILONS = small((1.0, 2.0, 3.0, 5.0, 10.0, 20.0), (5.0, 10.0))
_AT_EPSILON, _AT_SIZE = 5.0, 200
_COLORS = ("tab:blue", "tab:orange", "tab:green")


def bounds(m: int, n: int) -> tuple[float, float, float]:
    """Figure 1: M(l*, k*); the upper bound of Theorem 2.1 for all mn records; that for a single agent's n."""
    choice = best_qq(m, n, 1 - ALPHA)
    own = float(1 - ALPHA)
    return math.nan if choice is None else choice.coverage, own + 1 / (m * n + 1), own + 1 / (n + 1)


def figure_1() -> str:
    """The picture, and the values at four sizes."""
    fig, axes = figure(1, 2, height=3.2)
    sizes = np.arange(10, 101)
    for axis, m in zip(axes[0], (5, 20), strict=True):
        values = np.array([bounds(m, int(n)) for n in sizes])
        labels = ("$M_{\\ell^*,k^*}$: FedCP-QQ", "upper bound, centralised", "upper bound, one agent")
        for line, label, color in zip(values.T, labels, ("tab:blue", "tab:orange", "tab:red"), strict=True):
            axis.plot(sizes, line, color=color, label=label)
        axis.axhline(0.9, color="black", linewidth=0.8, linestyle="--")
        axis.set(title=f"m = {m}", xlabel="n", ylabel="coverage", ylim=(0.895, 1.0))
        axis.legend()
    save(fig, "figure1")
    lines = ["| m | n | M(l\\*, k\\*) | centralised bound | one-agent bound |", "|---:|---:|---:|---:|---:|"]
    lines += [f"| {m} | {n} | " + " | ".join(f"{v:.5f}" for v in bounds(m, n)) + " |" for m in (5, 20) for n in LISTED]
    return "\n".join(lines)


def compensation(m: int, n: int, alpha: Fraction, epsilon: float) -> tuple[float, float]:
    """Figure 2: coverage if every silo returns exactly its target rank, of FedCP²-QQ and of private-qq; NaN if none."""
    theirs = best_published(m, n, alpha, epsilon, BINS)
    mine = best_private_qq([n] * m, 1 - alpha, epsilon, BINS)
    aimed = math.nan if mine is None else float(qq_coverage(int(mine.mechanisms[0].offset), mine.k, m, n))
    return math.nan if theirs is None else theirs.compensation, aimed


def _compensations() -> list[list[Any]]:
    found = []
    for alpha in ALPHAS:
        for n, epsilon in [(n, _AT_EPSILON) for n in SIZES] + [(_AT_SIZE, e) for e in EPSILONS]:
            pair = compensation(SILOS, n, alpha, epsilon)
            found.append([float(alpha), n, epsilon, *(None if math.isnan(v) else v for v in pair)])
    return found


def figure_2() -> str:
    """The picture and its table."""
    found = cached("federated/paper/figure2", _compensations)
    fig, axes = figure(1, 2, height=4)
    for alpha, color in zip(ALPHAS, _COLORS, strict=True):
        rows = [row for row in found if row[0] == float(alpha)]
        parts = (rows[: len(SIZES)], 1), (rows[len(SIZES) :], 2)
        for axis, (part, at) in zip(axes[0], parts, strict=True):
            x = [row[at] for row in part]
            for column, style, name in ((3, "-", "FedCP²-QQ"), (4, ":", "private-qq")):
                y = [np.nan if row[column] is None else row[column] for row in part]
                axis.plot(x, y, style, color=color, marker=".", label=f"{name}, alpha = {float(alpha):g}")
            axis.axhline(1 - float(alpha), color=color, linewidth=0.7, linestyle="--")
    axes[0, 0].set(xscale="log", xlabel=f"n (epsilon = {_AT_EPSILON:g})", ylabel="degree of compensation")
    axes[0, 1].set(xscale="log", xlabel=f"epsilon (n = {_AT_SIZE})")
    for axis, ticks in ((axes[0, 0], SIZES), (axes[0, 1], EPSILONS)):
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
    fig.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    save(fig, "figure2")
    lines = ["| alpha | n | epsilon | FedCP²-QQ | private-qq |", "|---:|---:|---:|---:|---:|"]
    for alpha, n, epsilon, *pair in found:
        shown = " | ".join("none" if value is None else f"{value:.4f}" for value in pair)
        lines.append(f"| {alpha:g} | {n} | {epsilon:g} | {shown} |")
    return "\n".join(lines)


def coverages(m: int, n: int) -> np.ndarray:
    """M(l, k) for all l and k, shape (n, m)."""
    return qq_coverage(np.arange(1, n + 1)[:, None], np.arange(1, m + 1)[None], m, n)


def figure_6() -> str:
    """The heat map, with the border of cells that reach 0.9."""
    m, n = 10, 20
    values = coverages(m, n)
    fig, axes = figure(1, 1, width=7.5, height=4)
    axis = axes[0, 0]
    shown = axis.imshow(values.T, origin="lower", aspect="auto", cmap="viridis", extent=(0.5, n + 0.5, 0.5, m + 0.5))
    axis.contour(
        np.arange(1, n + 1), np.arange(1, m + 1), values.T, levels=[float(1 - ALPHA)], colors="white", linewidths=1
    )
    best = best_qq(m, n, 1 - ALPHA)
    axis.plot(
        best.ranks[0], best.k, "*", color="tab:red", markersize=13, label=f"(l*, k*) = ({best.ranks[0]}, {best.k})"
    )
    axis.set(
        xlabel="l",
        ylabel="k",
        title="M(l, k), m = 10, n = 20; white: 0.9",
        xticks=range(1, n + 1),
        yticks=range(1, m + 1),
    )
    axis.grid(visible=False)
    axis.legend(loc="lower left", facecolor="white", frameon=True)
    fig.colorbar(shown, ax=axis)
    save(fig, "figure6")
    return f"(l\\*, k\\*) = ({best.ranks[0]}, {best.k}) with M = {best.coverage:.5f}."


def figure_7() -> str:
    """A line for every k, and the number of cells that reach 0.9."""
    fig, axes = figure(1, 2, height=3.6)
    counted = []
    for axis, (m, n) in zip(axes[0], ((5, 10), (10, 20)), strict=True):
        values = coverages(m, n)
        for k in range(m):
            axis.plot(range(1, n + 1), values[:, k], marker=".", color=f"C{k}", label=f"k = {k + 1}")
        axis.axhline(float(1 - ALPHA), color="black", linewidth=0.8, linestyle="--")
        axis.set(title=f"(m, n) = ({m}, {n})", xlabel="l", ylabel="M(l, k)", xticks=range(1, n + 1, n // 10))
        axis.legend(fontsize=7.5, ncols=2)
        counted.append(f"{int((values >= 0.9).sum())} of {m * n} at ({m}, {n})")
    save(fig, "figure7")
    return f"Cells that reach 0.9: {counted[0]}, {counted[1]}."
