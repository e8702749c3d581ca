"""Figure 2 of versions 3 and 1: the adjusted level over n and epsilon, with m* and gamma*, next to the authors' curves."""

from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.small import small
from confide.mechanisms import pps_laplace
from experiments.cache import cached, write_tables
from experiments.methods import OURS
from experiments.plots import figure, save
from experiments.private_prediction_sets.bins import ALPHA, CODE, TEXT, algorithm_5, bins_of, level
from experiments.private_prediction_sets.published import Level, figure_2

FOLDER = "private-prediction-sets"
LEVELS = {"n": (0.1, 1.0, 10.0), "epsilon": (100, 1000, 10_000)}
"""Fixed values of the curves of the left and of the right panel."""
THIN = small(7, 70)
"""Step between the authors' points that have a row."""
COLORS = ("#c1121f", "#0b6e4f", "#33658a")
SOLID: dict[str, Any] = {"marker": "o", "markersize": 4.5, "markerfacecolor": "white", "linewidth": 0.8}
DOTTED: dict[str, Any] = {"marker": "x", "markersize": 4, "linewidth": 0.8, "linestyle": ":"}
"""Style of our own points: the lines between them are no curves."""
GAMMAS = np.linspace(0, 0.2, 1000)[1 :: small(4, 400)]
"""Every fourth value of the grid in version 1's code, without 0."""


def points(version: int, along: str, curve: float, thin: int = small(1, 20)) -> list[Level]:
    """The authors' points of one curve, every `thin`-th."""
    key = "epsilon" if along == "n" else "n"
    every = [p for p in figure_2() if p.version == version and p.along == along and getattr(p, key) == curve]
    return every[::thin]


def ours_at(p: Level) -> dict[str, Any]:
    """m*, gamma* and q~ at a point for the two ranges of Algorithm 5, and the level that `slopes` aims at."""
    out: dict[str, Any] = {}
    for name, range_ in (("text", TEXT), ("code", CODE)):
        m = algorithm_5(p.n, p.epsilon, range_, sets=1)
        q, gamma = level(p.n, p.epsilon, m)
        out[name] = {"m": m, "gamma": gamma, "level": q}
    out["slopes"] = slopes_level(p.n, p.epsilon, out["text"]["m"])
    out["bins"] = bins_of(p.n, p.epsilon, p.level)
    return out


def slopes_level(n: int, epsilon: float, m: int) -> float | None:
    """The rank that `slopes` aims at over n, with m candidates; None if it answers +inf for all data."""
    mechanism = OURS.mechanism(n, ALPHA, epsilon, m)
    return None if mechanism is None else float(mechanism.target(n)) / n


def reproduced(p: Level) -> float | None:
    """Equation (3) with the authors' number of bins minus their level; None if theirs is capped at 1."""
    m = bins_of(p.n, p.epsilon, p.level)
    return None if m is None else level(p.n, p.epsilon, m)[0] - p.level


def laplace_table(sizes: list[int]) -> dict[int, list[float]]:
    """For each number of bins: the (1 - gamma alpha) quantile of max |walk| of unit Laplace steps, per gamma of the grid."""
    return {m: pps_laplace.noise_bounds(m, GAMMAS * float(ALPHA), 1.0).tolist() for m in sizes}


def nearest_laplace(p: Level, table: dict[int, list[float]]) -> tuple[int, float]:
    """The number of bins of version 1's search whose level (3) is nearest, and that level minus the authors'.

    Their candidates are 10, 60, 110, ... below n/10, edges included, so one bin fewer.
    """
    base = (p.n + 1) * (1 - float(ALPHA)) / (p.n * (1 - GAMMAS * float(ALPHA)))
    tried = {m: float(np.min(base + 2 / p.epsilon * np.array(table[m]) / p.n)) for m in laplace_sizes(p.n)}
    best = min(tried, key=lambda m: abs(tried[m] - p.level))
    return best, tried[best] - p.level


def laplace_sizes(n: int) -> list[int]:
    """Numbers of bins that version 1's code tries at n."""
    return [m - 1 for m in range(10, max(11, int(0.1 * n)), 50)]


def version_1_at(p: Level) -> dict[str, Any]:
    """`pps-laplace` with m* of Algorithm 5 on average, and its target level."""
    m = pps_laplace.optimal_bins(p.n, ALPHA, p.epsilon, aligned=True)
    made = pps_laplace.pps_laplace_for(p.n, ALPHA, p.epsilon, m)
    return {"m": m, "gamma": None if made is None else made.gamma, "level": None if made is None else float(made.level)}


def run() -> None:
    """Figure 2 of both versions and the page."""
    rows: dict[str, list[str]] = {"3": [], "1": []}
    fig, axes = figure(2, 2, 9.6, 6.6)
    worst = _version_3(axes[0], rows["3"])
    misses = _version_1(axes[1], rows["1"])
    for axis in axes.ravel():
        axis.set(xscale="log", ylim=(0.895, 1.003), ylabel="level aimed at")
    axes[0, 0].set_title("version 3: q~, exponential mechanism")
    axes[1, 0].set_title("version 1: level + zeta, Laplace histogram")
    _legend(fig, axes)
    save(fig, f"{FOLDER}/figure2")
    count = sum(p.level < 1 for p in figure_2() if p.version == 3)
    text = [
        f"{count} levels of version 3 below 1 are equation (3), up to {worst:.0e}.",
        f"Version 1: over {len(misses)} points the difference is {np.median(np.abs(misses)):.4f} in the median and "
        f"{np.max(np.abs(misses)):.4f} at most.",
        "## Version 3: equation (3) with m* and gamma*",
        "| n | epsilon | authors | their m | (3) at their m minus authors | ours, range of the code | minus authors | "
        "ours, range of the text | gamma* | slopes (ours) |",
        "|" + "---:|" * 10,
        *rows["3"],
        "## Version 1: the Laplace histogram",
        "| n | epsilon | authors | their m | difference there | pps-laplace | minus authors |",
        "|" + "---:|" * 7,
        *rows["1"],
    ]
    write_tables(f"{FOLDER}/figure2.md", "\n".join(text))


def _legend(fig: Any, axes: Any) -> None:
    """The meaning of colours in each panel's upper right corner, kinds of points and lines below, where no data are drawn."""
    kinds = {
        "authors": {"marker": ".", "linestyle": ""},
        f"equation (3), m* of the text; version 1: pps-laplace (every {THIN}th point)": SOLID,
        "slopes (ours)": DOTTED,
    }
    handles = [axes[0, 0].plot([], [], color="black", label=label, **how)[0] for label, how in kinds.items()]
    fig.legend(handles=handles, fontsize=8, ncol=3, loc="outside lower center")
    for row in axes:
        for axis, curves, key in zip(row, LEVELS.values(), ("epsilon", "n"), strict=True):
            colors = [
                axis.plot([], [], color=c, label=f"{key} = {v:g}")[0] for v, c in zip(curves, COLORS, strict=True)
            ]
            axis.legend(handles=colors, fontsize=7.5, loc="upper right")


def _version_3(axes: Any, rows: list[str]) -> float:
    """Draw and tabulate; return the largest difference from the authors' lines."""
    worst = 0.0
    for axis, (along, curves) in zip(axes, LEVELS.items(), strict=True):
        for curve, color in zip(curves, COLORS, strict=True):
            every = points(3, along, curve)
            worst = max([worst, *(abs(d) for p in every if (d := reproduced(p)) is not None)])
            label = f"epsilon = {curve:g}" if along == "n" else f"n = {curve}"
            x = [getattr(p, along) for p in every]
            axis.plot(x, [p.level for p in every], ".", color=color, markersize=4)
            thin = points(3, along, curve, THIN)
            found = [
                cached(f"pps2/{along}_{p.n}_{p.epsilon:.6g}", lambda p=p: ours_at(p))
                for p in tqdm(thin, desc=f"Figure 2, {label}")
            ]
            x = [getattr(p, along) for p in thin]
            axis.plot(x, [f["text"]["level"] for f in found], color=color, **SOLID)
            slopes = [np.nan if f["slopes"] is None else f["slopes"] for f in found]
            axis.plot(x, slopes, color=color, **DOTTED)
            rows += [_row(p, f) for p, f in zip(thin, found, strict=True)]
        axis.set_xlabel("number of calibration records n" if along == "n" else "privacy loss epsilon")
    return worst


def _row(p: Level, found: dict[str, Any]) -> str:
    text, code = found["text"], found["code"]
    capped = "1, capped" if p.level >= 1 else f"{p.level:.4f}"
    m = found["bins"]
    at = "any" if m is None else str(m)
    difference = 0.0 if m is None else level(p.n, p.epsilon, m)[0] - p.level
    slopes = "+inf" if found["slopes"] is None else f"{found['slopes']:.4f}"
    return (
        f"| {p.n} | {p.epsilon:.3g} | {capped} | {at} | {difference:.0e} | {code['level']:.4f} ({code['m']}) | "
        f"{code['level'] - p.level:+.4f} | {text['level']:.4f} ({text['m']}) | {text['gamma']:.2g} | {slopes} |"
    )


def _version_1(axes: Any, rows: list[str]) -> list[float]:
    """Draw and tabulate; return the differences from the authors' points."""
    sizes = sorted({m for p in figure_2() if p.version == 1 for m in laplace_sizes(p.n)})
    table = {int(m): v for m, v in cached("pps2/walks", lambda: laplace_table(sizes)).items()}
    misses: list[float] = []
    for axis, (along, curves) in zip(axes, LEVELS.items(), strict=True):
        for curve, color in zip(curves, COLORS, strict=True):
            every = points(1, along, curve)
            misses += [nearest_laplace(p, table)[1] for p in every]
            x = [getattr(p, along) for p in every]
            axis.plot(x, [p.level for p in every], ".", color=color, markersize=4)
            thin = points(1, along, curve, THIN)
            found = [cached(f"pps2/version_1_{along}_{p.n}_{p.epsilon:.6g}", lambda p=p: version_1_at(p)) for p in thin]
            y = [np.nan if f["level"] is None else f["level"] for f in found]
            axis.plot([getattr(p, along) for p in thin], y, color=color, **SOLID)
            for p, f in zip(thin, found, strict=True):
                m, difference = nearest_laplace(p, table)
                shown = "+inf" if f["level"] is None else f"{f['level']:.4f} ({f['m']})"
                apart = "" if f["level"] is None else f"{f['level'] - p.level:+.4f}"
                rows.append(
                    f"| {p.n} | {p.epsilon:.3g} | {p.level:.4f} | {m} | {difference:+.4f} | {shown} | {apart} |"
                )
        axis.set_xlabel("number of calibration records n" if along == "n" else "privacy loss epsilon")
    return misses
