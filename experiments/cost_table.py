"""The cost of privacy: excess coverage times n epsilon on uniform scores, and set sizes over non-private ones."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.small import small
from confide.core.design import Design
from experiments.cache import cached, write_tables
from experiments.methods import NONE, OURS, PRIVATE, PUBLISHED, Method
from experiments.private_prediction_sets.study import uniform
from experiments.scores import cifar100
from experiments.splits import study

Entry = dict[str, Any]
Cell = dict[str, Entry]
Cost = Callable[[Entry], float]
Results = dict[tuple[int, float], Cell]

LEVEL = 0.9
_ROUNDING = 1e-9

ALPHA = Fraction(1, 10)
SIZES, LOSSES = small((200, 500, 1000, 5000), (500,)), (0.1, 0.3, 1.0, 3.0, 10.0)
USUAL = 1000
DATA_SETS, SPLITS = small((1000, 1000), (40, 40))
HUGE = 100_000
"""With more candidates than this, a twentieth of the data sets and splits is used."""


def cell(n: int, epsilon: float, data_sets: int = DATA_SETS, splits: int = SPLITS) -> dict[str, Any]:
    """Mean coverage of every method at (n, epsilon), with its standard error, and its set size over the non-private one.

    `certified` is the coverage that the release would state: 1 for +inf for all data, None without a claim.
    """
    huge = tuple(method for method in PRIVATE if method.bins(n, ALPHA, epsilon, USUAL) > HUGE)
    usual = tuple(method for method in PRIVATE if method not in huge)
    sizes = study(cifar100(), huge, n, epsilon, USUAL, splits // 20)
    sizes |= study(cifar100(), usual, n, epsilon, USUAL, splits)
    plain = np.mean(sizes[NONE.label]["size"])
    out: dict[str, Any] = {}
    for method in PRIVATE:
        bins = sizes[method.label]["bins"]
        made = method.design(n, ALPHA, epsilon, bins)
        out[method.label] = {
            "bins": bins,
            "certified": _certified(made),
            **uniform(
                made.mechanism,
                np.minimum(method.edges(bins).values, 1.0),
                n,
                data_sets // 20 if method in huge else data_sets,
            ),
            "size ratio": float(np.mean(sizes[method.label]["size"]) / plain),
        }
    return out


def _certified(made: Design) -> float | None:
    if made.mechanism is None:
        return 1.0
    return None if made.guarantee.kind == "none" else made.guarantee.coverage


def run() -> None:
    """Compute and store all cells, and write the tables."""
    cells = [(n, epsilon) for n in SIZES for epsilon in LOSSES]
    results = {
        (n, e): cached(f"cost_{n}_{e}", lambda n=n, e=e: cell(n, e)) for n, e in tqdm(cells, desc="cost of privacy")
    }
    write_tables("cost.md", tables(results))  # price_picture.py reads its first table


HEADS = (
    "## Excess coverage times n epsilon",
    "## Mean set size over the non-private one, CIFAR-100",
)


def tables(results: Results) -> str:
    """Both tables of docs/experiments/cost.md."""
    sizes = _table(results, size_ratio, lambda entry, n, epsilon: f"{size_ratio(entry):.2f}")
    return "\n".join([HEADS[0], *_table(results, excess, _excess_text), HEADS[1], *sizes])


def excess(entry: Entry) -> float:
    """Mean coverage beyond 90 %."""
    return float(entry["coverage"]) - LEVEL


def size_ratio(entry: Entry) -> float:
    """Mean set size over that without privacy."""
    return float(entry["size ratio"])


def keeps_its_claim(entry: Entry) -> bool:
    """Return whether at least 90 % is guaranteed."""
    return entry["certified"] is not None and entry["certified"] >= LEVEL - _ROUNDING


def mark(entry: Entry) -> str:
    """The mark of the method's claim in this cell."""
    if entry["certified"] is None:
        return " ‡"
    if entry["certified"] >= 1:
        return " ∞"
    return "" if keeps_its_claim(entry) else " †"


def cheapest(cell: Cell, methods: tuple[Method, ...], cost: Cost) -> Method:
    """The cheapest of the methods with a valid claim."""
    return min((m for m in methods if keeps_its_claim(cell[m.label])), key=lambda m: cost(cell[m.label]))


def _table(results: Results, cost: Cost, text: Callable[[Entry, int, float], str]) -> list[str]:
    names = " | ".join(method.label for method in PRIVATE)
    lines = [f"| n | epsilon | {names} | published / ours |", "|---:|---:|" + "---:|" * len(PRIVATE) + "---|"]
    for (n, epsilon), cell in results.items():
        best = cheapest(cell, PRIVATE, cost)
        row = []
        for method in PRIVATE:
            entry = cell[method.label]
            shown = text(entry, n, epsilon)
            shown = (f"**{shown}**" if method is best else shown) + mark(entry)
            row.append(shown + (f" ({entry['bins']})" if method.own_bins else ""))
        lines.append(f"| {n} | {epsilon:g} | " + " | ".join(row) + f" | {_against(cell, cost)} |")
    return lines


def _excess_text(entry: Entry, n: int, epsilon: float) -> str:
    value = round(excess(entry) * n * epsilon, 1) + 0.0  # no -0.0
    return f"{value:.1f} ± {entry['error'] * n * epsilon:.1f}"


def _against(cell: Cell, cost: Cost) -> str:
    """The cheapest published method with a valid claim, over ours."""
    published = cheapest(cell, PUBLISHED, cost)
    ratio = cost(cell[published.label]) / cost(cell[OURS.label])
    return "1, both ∞" if _equal(cell) else f"{ratio:.2f} ({published.label})"


def _equal(cell: Cell) -> bool:
    """Return whether +inf is the only answer of ours and of every published method with a valid claim."""
    kept = [OURS, *(m for m in PUBLISHED if keeps_its_claim(cell[m.label]))]
    return all(mark(cell[m.label]) == " ∞" for m in kept)
