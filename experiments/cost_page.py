"""The tables of the cost of privacy, with marks of what is claimed."""

from collections.abc import Callable
from typing import Any

from experiments.methods import OURS, PRIVATE, PUBLISHED, Method

Entry = dict[str, Any]
Cell = dict[str, Entry]
Cost = Callable[[Entry], float]
Results = dict[tuple[int, float], Cell]

LEVEL = 0.9
_ROUNDING = 1e-9

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
