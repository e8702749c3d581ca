"""Figures 4 and 5 at the papers' settings: n = 30,000, 20,000 to evaluate on, 100 splits, m and epsilon varied.

On ImageNet logits if available (CONFIDE_IMAGENET), otherwise on scores of that size and shape by a public law; and on
uniform scores with the noise averaged exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.small import small
from confide.mechanisms import pps, pps_laplace
from experiments.cache import cached, write_tables
from experiments.methods import OURS
from experiments.plots import figure, save
from experiments.private_prediction_sets import published
from experiments.private_prediction_sets.bins import ALPHA, CODE, TEXT, algorithm_5, edges
from experiments.private_prediction_sets.public_law import imagenet_shaped
from experiments.private_prediction_sets.study import splits, uniform
from experiments.private_prediction_sets.tail_scores import TailScores
from experiments.scores import imagenet

N, TEST, SPLITS, DATA_SETS = small((30_000, 20_000, 100, 40), (300, 200, 2, 2))
FOLDER = "private-prediction-sets"
MULTIPLES = (0.05, 0.1, 1, 10)
EPSILON_4 = {"version 3": 5.0, "version 1": 1.0}
EPSILONS = (0.5, 1.0, 5.0, 10.0)
HEAD_3 = "| | m | uniform | authors | difference | splits: coverage | mean size | authors' size | slopes: coverage | mean size |"
HEAD_1 = "| | m | uniform | splits: coverage | mean size | slopes: coverage | mean size |"
COLORS = ("#c1121f", "#e07a1f", "#0b6e4f", "#33658a", "#7b5ea7", "#22223b")


@dataclass(frozen=True)
class Run:
    """One row: a method (`none`, `pps`, `pps-laplace`, `slopes`) with m candidates at epsilon."""

    label: str
    method: str
    epsilon: float
    m: int

    @property
    def key(self) -> str:
        """The name under which its results are stored."""
        return f"{self.method}_{self.epsilon:g}_{self.m}"

    def mechanism(self, n: int) -> Any:
        """The mechanism for n records; None if it answers the last candidate for all data."""
        if self.method == "pps":
            return pps.pps_for(n, ALPHA, self.epsilon, self.m)
        if self.method == "pps-laplace":
            return pps_laplace.pps_laplace_for(n, ALPHA, self.epsilon, self.m)
        return "none" if self.method == "none" else OURS.mechanism(n, ALPHA, self.epsilon, self.m)


NONE = Run("no privacy", "none", 0.0, 1)


def runs_4(version: str) -> list[Run]:
    """The numbers of bins of Figure 4: multiples of n epsilon (version 1: its power 2/3) and m*."""
    epsilon = EPSILON_4[version]
    if version == "version 3":
        unit, method = N * epsilon, "pps"
        stars = {"m* of the text": algorithm_5(N, epsilon, TEXT), "m* of the code": algorithm_5(N, epsilon, CODE)}
    else:
        unit, method = (N * epsilon) ** (2 / 3), "pps-laplace"
        stars = {"m* of Algorithm 5": pps_laplace.optimal_bins(N, ALPHA, epsilon, aligned=True)}
    unit_name = "n epsilon" if version == "version 3" else "(n epsilon)^(2/3)"
    chosen = {f"{x:g} {unit_name}": int(x * unit) for x in MULTIPLES} | stars
    return [Run(label, method, epsilon, m) for label, m in chosen.items()]


def runs_5(version: str) -> list[Run]:
    """The losses of Figure 5, each with its m* (version 3: of the code's range, as the authors)."""
    if version == "version 3":
        return [Run(f"{e:g}", "pps", e, algorithm_5(N, e, CODE)) for e in EPSILONS]
    return [Run(f"{e:g}", "pps-laplace", e, pps_laplace.optimal_bins(N, ALPHA, e, aligned=True)) for e in EPSILONS]


def ours(run_: Run) -> Run:
    """`slopes` with the same candidates, if the library allows so many."""
    return Run(run_.label, "slopes", run_.epsilon, min(run_.m, 2**20))


def result(data: TailScores, run_: Run) -> dict[str, Any]:
    """Coverage and sizes over the splits, stored."""
    return cached(
        f"pps45/{data.name}_{run_.key}",
        lambda: splits(data, run_.mechanism(N), run_.m, N, SPLITS, TEST),
    )


def on_uniform(run_: Run) -> dict[str, float]:
    """The law on uniform scores, stored."""
    return cached(f"pps45/uniform_{run_.key}", lambda: uniform(run_.mechanism(N), edges(run_.m), N, DATA_SETS))


def scores_of_size() -> TailScores:
    """ImageNet, if available, or the public law."""
    data = imagenet()
    if data is None:
        return imagenet_shaped()
    blocks = range(0, len(data.labels), 2000)
    return TailScores.of("ImageNet", ((data.probabilities[i : i + 2000], data.labels[i : i + 2000]) for i in blocks))


def run() -> None:
    """Both figures of both versions, and their page."""
    data = scores_of_size()
    fig, axes = figure(2, 2, 9.6, 6.4)
    none = result(data, NONE)
    coverage = f"{np.mean(none['coverage']):.4f} ± {np.std(none['coverage']):.4f}"
    text = [f"{data.name}, accuracy {data.accuracy:.3f}; without privacy {coverage}, {np.mean(none['size']):.3f}"]
    for row, (number, runs) in enumerate({4: runs_4("version 3"), 5: runs_5("version 3")}.items()):
        found = [result(data, r) for r in tqdm(runs, desc=f"Figure {number}")]
        _draw(axes[row], number, runs, found)
        text += [f"## Figure {number}, version 3", HEAD_3, "|" + "---:|" * 10]
        text += _rows(data, number, runs, found, compare=True)
        runs = runs_4("version 1") if number == 4 else runs_5("version 1")
        found = [result(data, r) for r in tqdm(runs, desc=f"Figure {number}, version 1")]
        text += [f"## Figure {number}, version 1", HEAD_1, "|" + "---:|" * 7]
        text += _rows(data, number, runs, found, compare=False)
    save(fig, f"{FOLDER}/figures4-5")
    write_tables(f"{FOLDER}/figures4-5.md", "\n".join(text))


def authors_coverage(number: int, run_: Run) -> tuple[float, float]:
    """The authors' mean coverage, or the range of it over their five numbers of bins."""
    if number == 4:
        return published.FIGURE_4["coverage"]
    return (published.FIGURE_5[run_.epsilon][0],) * 2


def beyond(value: float, low: float, high: float) -> float:
    """Distance of a value from a range; 0 inside."""
    return value - min(max(value, low), high)


def _rows(
    data: TailScores, number: int, runs: Sequence[Run], found: list[dict[str, Any]], *, compare: bool
) -> list[str]:
    lines = []
    for r, f in zip(runs, found, strict=True):
        law_, slopes = on_uniform(r), result(data, ours(r))
        entries = [r.label, str(r.m), f"{law_['coverage']:.5f}"]
        if compare:
            low, high = authors_coverage(number, r)
            theirs = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}"
            entries += [theirs, f"{beyond(law_['coverage'], low, high):+.4f}"]
        entries += [f"{np.mean(f['coverage']):.4f} ± {np.std(f['coverage']):.4f}", f"{np.mean(f['size']):.3f}"]
        if compare:
            entries.append(f"{published.FIGURE_4['size'] if number == 4 else published.FIGURE_5[r.epsilon][1]:.2f}")
        entries += [f"{np.mean(slopes['coverage']):.4f}", f"{np.mean(slopes['size']):.3f}"]
        lines.append("| " + " | ".join(entries) + " |")
    return lines


def _draw(axes: Any, number: int, runs: Sequence[Run], found: list[dict[str, Any]]) -> None:
    borders = np.linspace(0.885, 0.918, 34)
    for r, f, color in zip(runs, found, COLORS, strict=False):
        shown = {"color": color, "histtype": "step", "linewidth": 1.4}
        axes[0].hist(f["coverage"], bins=borders, weights=np.full(len(f["coverage"]), 1 / len(f["coverage"])), **shown)
        label = f"m = {r.label} = {r.m}" if number == 4 else f"epsilon = {r.label}, m* = {r.m}"
        axes[1].step(
            range(len(f["shares"])), f["shares"], where="mid", color=color, alpha=0.8, label=label, linewidth=1.4
        )
    axes[0].axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
    axes[0].set(xlabel="coverage", ylabel="share of splits", title=f"Figure {number}")
    axes[1].set(xlabel="set size", ylabel="share of records", xlim=(-0.5, 9.5))
    axes[1].legend(fontsize=7.5)
