"""Figures 4 and 8 to 18 from the available splits: pictures, and tables with the authors' values."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.small import small
from experiments.cache import cached
from experiments.federated.paper import measure, splits
from experiments.federated.paper.data_sets import BY_NAME, DataSet
from experiments.federated.paper.pictures import boxes, save
from experiments.federated.paper.published import ALL, published
from experiments.federated.paper.regressors import REGRESSORS
from experiments.plots import figure

METHODS = (*measure.PLAIN, measure.NEXT_RANK, *measure.OURS)
DRAWN = measure.PLAIN + measure.OURS
REGIMES = ("many", "few")
SHOWN = {"ridge": "Ridge", "network": "NN", "forest": "RF"}
IN_FIGURE_4 = ("bio-4000", "bike-1030", "concrete", "community", "star", "bike-2000")
"""The sets of the authors' table; the last one replaces community and star if they are missing."""
IN_COMMON = ("bio", "bike", "concrete")
"""Sets whose values are compared with the authors' for the same sets; lengths of all five depend on the sets."""
PRIVATE_SHAPE, PRIVATE_METHODS = small((5, 200), (2, 50)), ("FedCP-QQ", *measure.PRIVATE)
NEXT = measure.NEXT_RANK.removeprefix("FedCP-Avg")
_UNIFORM_DRAWS = small(2000, 2)
Values = dict[str, tuple[list[float], list[float]]]
"""Method to coverages and lengths, one per split."""


def values(data: str, regressor: str, shape: tuple[int, int], methods: Iterable[str]) -> Values:
    """Coverages and lengths of the methods over the available splits."""
    names = tuple(methods)
    found: Values = {name: ([], []) for name in names}
    for seed, split in splits.made(data, regressor):
        for name, (covered, length) in measure.measured(split, *shape, names, seed).items():
            found[name][0].append(covered)
            found[name][1].append(length)
    return found


def picture(name: str, title: str, rows: Values) -> None:
    """Coverage on the left, length on the right."""
    fig, axes = figure(1, 2, width=11, height=0.24 * len(rows) + 1.3)
    for axis, at, label in zip(axes[0], (0, 1), ("coverage", "average length"), strict=True):
        boxes(axis, {method: pair[at] for method, pair in rows.items()}, measure.OURS, "FedCP-QQ", label)
    target_line(axes[0, 0])
    axes[0, 1].tick_params(labelleft=False)
    fig.suptitle(title)
    save(fig, name)


def target_line(axis: Any) -> None:
    """Draw the requested coverage."""
    axis.axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))


def name_of(data: DataSet, at: int) -> str:
    """The name of a picture: the paper's number, or the setting."""
    m, n = data.shapes[at]
    return f"figure{data.figures[at]}" if data.figures else f"{data.name}_m{m}_n{n}"


def settings(sets: Iterable[DataSet]) -> str:
    """Figures 8 to 17: a picture of each setting with its completed splits, and the table of all."""
    shown, rows = [], []
    for data in sets:
        for at, (m, n) in enumerate(data.shapes):
            head = f"Figure {data.figures[at]}: " if data.figures else ""
            title = f"{head}{data.title}, m = {m}, n = {n}"
            every = {regressor: values(data.name, regressor, (m, n), METHODS) for regressor in REGRESSORS}
            done = {regressor: len(methods["FedCP-QQ"][0]) for regressor, methods in every.items()}
            if not any(done.values()):
                shown.append(f"{title}: {missing(data)}")
                continue
            every = {regressor: methods for regressor, methods in every.items() if done[regressor]}
            boxed = {
                f"{SHOWN[regressor]}, {method}": pair
                for regressor, methods in every.items()
                for method, pair in methods.items()
                if method in DRAWN
            }
            picture(name_of(data, at), title, boxed)
            shown.append(f"![{title}](paper/{name_of(data, at)}.png)")
            if set(done.values()) != {splits.SPLITS}:  # the page states the usual number
                ran = ", ".join(f"{SHOWN[regressor]} {count}" for regressor, count in done.items())
                shown.append(f"Run: {ran} of {splits.SPLITS} splits.")
            rows += table_rows(data, at, title, every)
    head = "| setting | method | coverage | authors | difference | exact law | length | authors | difference |"
    return "\n\n".join([*shown, "\n".join([head, "|---|---|" + "---:|" * 7, *rows])])


def missing(data: DataSet) -> str:
    """The reason why a figure is missing."""
    if data.there:
        return "Not run yet."
    return f"`{data.file}` is not in the data folder; if it is added, the same command runs this figure."


def table_rows(data: DataSet, at: int, title: str, every: dict[str, Values]) -> list[str]:
    """Means with standard errors, the authors' with the difference, and the exact law."""
    lines = []
    law = measure.exact_coverage(*data.shapes[at])
    for regressor, rows in every.items():
        for method, (coverages, lengths) in rows.items():
            if method == measure.NEXT_RANK and REGIMES[at] == "many":
                continue  # with n = 10 the rank is n already
            theirs = published(data.published or "", regressor, REGIMES[at], method.removesuffix(NEXT))
            shown = [title, f"{SHOWN[regressor]}, {method}", mean(coverages, 4)]
            shown += compared(coverages, theirs and theirs[0], 4)
            shown.append(f"{law[method]:.4f}" if method in ("FedCP-QQ", "centralised") else "")
            shown += [mean(lengths, 3), *compared(lengths, theirs and theirs[1], 3)]
            lines.append("| " + " | ".join(shown) + " |")
    return lines


def mean(sample: list[float], digits: int) -> str:
    """Mean and its standard error over the splits with a finite threshold."""
    finite = np.array(sample)[np.isfinite(sample)]
    if not len(finite):
        return "+inf"
    error = finite.std(ddof=1) / math.sqrt(len(finite)) if len(finite) > 1 else math.nan
    return f"{finite.mean():.{digits}f} ± {error:.{digits}f}"


def compared(sample: list[float], theirs: float | None, digits: int) -> list[str]:
    """The authors' value and ours less theirs."""
    return ["", ""] if theirs is None else [f"{theirs:.{digits}f}", f"{np.mean(sample) - theirs:+.{digits}f}"]


def figure_4() -> str:
    """Coverage over all data sets and regressors, one dot per split of a set, and the mean length."""
    absent = [name for name in ("community", "star") if not BY_NAME[name].there]
    names = [n for n in IN_FIGURE_4 if BY_NAME[n].there and (n != "bike-2000" or absent)]
    fig, axes = figure(1, 2, width=11, height=3)
    lines = [
        "| | method | all sets here: coverage | authors' five sets | difference | bio, bike, concrete: coverage | authors | difference | length | authors | difference |",
        "|---|---|" + "---:|" * 9,
    ]
    for at, title in enumerate(("m >> n", "m << n")):
        every = {(n, r): values(n, r, BY_NAME[n].shapes[at], METHODS) for n in names for r in REGRESSORS}
        boxes(axes[0, at], {m: _pooled(every, m)[0] for m in DRAWN}, measure.OURS, "FedCP-QQ", "coverage")
        axes[0, at].set(title=title, xlim=(0.75, 1.005))
        target_line(axes[0, at])
        common = {(n, r): found for (n, r), found in every.items() if BY_NAME[n].published in IN_COMMON}
        for method in METHODS if REGIMES[at] == "few" else DRAWN:
            name = method.removesuffix(NEXT)
            theirs = ALL[REGIMES[at]].get(name, (None, None))
            same = _authors([(BY_NAME[n].published or "", r) for n, r in common], REGIMES[at], name)
            coverages, (some, lengths) = _pooled(every, method)[0], _pooled(common, method)
            shown = [title, method, mean(coverages, 4), *compared(coverages, theirs[0], 4)]
            shown += [mean(some, 4), *compared(some, same[0], 4), mean(lengths, 3), *compared(lengths, same[1], 3)]
            lines.append("| " + " | ".join(shown) + " |")
    save(fig, "figure4")
    counts = {n: [len(list(splits.made(n, r))) for r in REGRESSORS] for n in names}
    ran = "; ".join(f"{BY_NAME[n].title}: {', '.join(map(str, c))}" for n, c in counts.items())
    note = f"Splits run with {', '.join(SHOWN.values())}, of {splits.SPLITS} each: {ran}."
    return "![Figure 4](paper/figure4.png)\n\n" + note + "\n\n" + "\n".join(lines)


def _pooled(every: Mapping[Any, Values], method: str) -> tuple[list[float], list[float]]:
    return [v for one in every.values() for v in one[method][0]], [v for one in every.values() for v in one[method][1]]


def _authors(pairs: list[tuple[str, str]], regime: str, method: str) -> tuple[float | None, float | None]:
    rows = [row for data, regressor in pairs if (row := published(data, regressor, regime, method))]
    return (None, None) if not rows else (float(np.mean([r[0] for r in rows])), float(np.mean([r[1] for r in rows])))


def figure_18() -> str:
    """FedCP-QQ and FedCP²-QQ, ours for comparison, quantile forests on bio and bike."""
    bio = max(("bio-4000", "bio"), key=lambda name: len(list(splits.made(name, "forest"))))
    m, n = PRIVATE_SHAPE
    law = cached(
        "federated/paper/figure18-uniform", lambda: measure.on_uniform_scores(m, n, PRIVATE_METHODS, _UNIFORM_DRAWS)
    )
    fig, axes = figure(2, 1, width=8, height=6)
    found: dict[str, Values] = {}
    for axis, data in zip(axes[:, 0], (bio, "bike"), strict=True):
        rows = found[data] = values(data, "forest", PRIVATE_SHAPE, PRIVATE_METHODS)
        done = len(rows["FedCP-QQ"][0])
        axis.set_title(f"{BY_NAME[data].title}: {done} of {splits.SPLITS} splits")
        if not done:
            axis.axis("off")
            continue
        boxes(axis, {k: pair[0] for k, pair in rows.items()}, measure.PRIVATE[3:], "FedCP-QQ", "coverage")
        target_line(axis)
    save(fig, "figure18")
    lines = [
        f"| method | {BY_NAME[bio].title}: coverage | length | {BY_NAME['bike'].title}: coverage | length | uniform scores |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for method in PRIVATE_METHODS:
        cells = [mean(found[data][method][i], digits) for data in (bio, "bike") for i, digits in ((0, 4), (1, 3))]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {law[method]:.4f} |")
    return "![Figure 18](paper/figure18.png)\n\n" + "\n".join(lines)
