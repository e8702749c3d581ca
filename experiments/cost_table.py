"""What privacy costs: excess coverage times n epsilon on uniform scores, and set sizes against no privacy."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from tqdm import tqdm

import confide
from experiments.cache import cached, write_docs
from experiments.laws import law
from experiments.methods import NONE, PPS, PRIVATE, Method, published_bins
from experiments.scores import cifar100

ALPHA = Fraction(1, 10)
SIZES, LOSSES = (200, 500, 1000, 5000), (0.1, 0.3, 1.0, 3.0, 10.0)
USUAL = 1000
PUBLISHED_BINS = "pps, bins by Algorithm 5"


def cell(n: int, epsilon: float, repeats: int = 200) -> dict[str, Any]:
    """Mean coverage of every method at (n, epsilon), with its standard error, and its set size over no privacy."""
    out: dict[str, Any] = {}
    bins = {method.label: method.bins(n, ALPHA, epsilon, USUAL) for method in PRIVATE}
    made = {method.label: method.mechanism(n, ALPHA, epsilon, bins[method.label]) for method in PRIVATE}
    best = published_bins(n, ALPHA, epsilon, seed=0)
    bins[PUBLISHED_BINS], made[PUBLISHED_BINS] = best, PPS.mechanism(n, ALPHA, epsilon, best)
    for label, mechanism in made.items():
        candidates = confide.Candidates.unit(bins[label])
        out[label] = {
            "bins": bins[label],
            "capped": mechanism is None or getattr(mechanism, "level", 0) == 1,
            "certified": _certified(mechanism, bins[label], n),
            **_uniform(mechanism, candidates, n, repeats),
        }
    for method in PRIVATE:
        out[method.label]["size ratio"] = _size_ratio(method, made[method.label], bins[method.label], n, repeats // 4)
    return out


def _certified(mechanism: Any, m: int, n: int) -> float | None:
    if mechanism is None:
        return 1.0
    secret = getattr(mechanism, "rate", 0) != 0
    claimed = mechanism.certified(1 - ALPHA, m, None if secret else n, 1 if secret else None)
    return None if claimed is None else float(claimed)


def _uniform(mechanism: Any, candidates: confide.Candidates, n: int, repeats: int) -> dict[str, float]:
    """Coverage on uniform scores is the threshold itself; averaged over the noise exactly, over data by simulation.

    The coverage of the threshold without privacy, whose mean is k/(n+1) exactly, is the control variate.
    """
    rng, values = np.random.default_rng(n), np.minimum(candidates.values, 1.0)
    rank = math.ceil((1 - ALPHA) * (n + 1))
    draws: Any = []
    for _ in range(repeats):
        scores = np.sort(rng.random(n))
        counts = np.diff(np.searchsorted(scores, candidates.values, side="right"), prepend=0)
        draws.append((law(mechanism, counts, rng) @ values, scores[rank - 1] - rank / (n + 1)))
    coverage, control = np.array(draws).T
    draws = coverage - control * (np.cov(coverage, control)[0, 1] / control.var(ddof=1))
    return {"coverage": float(np.mean(draws)), "error": float(np.std(draws, ddof=1) / math.sqrt(repeats))}


def _size_ratio(method: Method, mechanism: Any, m: int, n: int, repeats: int) -> float:
    """Mean set size on CIFAR-100 over that without privacy, same splits."""
    data, rng = cifar100(), np.random.default_rng(7)
    binned, plain = data.binned(confide.Candidates.unit(m, "logit")), data.binned(_fine())
    private, public = [], []
    baseline = NONE.mechanism(n, ALPHA, 1.0, plain.candidates.size)
    for _ in range(repeats):
        order = rng.permutation(len(data.labels))
        counts, _, sizes = binned.split(order, n)
        private.append(law(mechanism, counts, rng) @ sizes)
        counts, _, sizes = plain.split(order, n)
        public.append(sizes[baseline.choose(counts)])
    return float(np.mean(private) / np.mean(public))


def _fine() -> confide.Candidates:
    return confide.Candidates.unit(10_000, "logit")


def run() -> None:
    """All cells, each stored, and the page."""
    cells = [(n, epsilon) for n in SIZES for epsilon in LOSSES]
    results = {
        (n, e): cached(f"cost_{n}_{e}", lambda n=n, e=e: cell(n, e)) for n, e in tqdm(cells, desc="cost of privacy")
    }
    write_docs("cost.md", page(results))


def page(results: dict[tuple[int, float], dict[str, Any]]) -> str:
    """The tables as Markdown."""
    labels = [m.label for m in PRIVATE[:5]] + [PUBLISHED_BINS, PRIVATE[5].label]
    lines = [
        "# What privacy costs",
        "",
        "Made by `python -m experiments cost`. alpha = .1. Uniform scores, 200 data sets, noise averaged exactly (noisy",
        "histograms: 20 noise draws each). `slopes`, `pps` and `opendp-quantile` have 1000 candidates; noisy histograms and",
        "*bins by Algorithm 5* choose their own number.",
        "",
        "## Excess coverage times n epsilon",
        "",
        "(mean coverage - .9) n epsilon, plus or minus one standard error. **Bold**: the smallest of the methods whose claim",
        "of 90 % holds. † : the mechanism's level is capped at 1, its proof says nothing, and the mean coverage may be below",
        "90 %. ∞ : +inf whatever the data, every label in every set. ‡ : no coverage is claimed at all.",
        "",
        "| n | epsilon | " + " | ".join(labels) + " |",
        "|---:|---:|" + "---:|" * len(labels),
    ]
    for (n, epsilon), cell_ in results.items():
        valid = {k: v for k, v in cell_.items() if v["certified"] is not None and v["certified"] >= 0.9 - 1e-9}
        best = min(valid, key=lambda k: valid[k]["coverage"])
        lines.append(
            f"| {n} | {epsilon:g} | " + " | ".join(_entry(k, cell_[k], n, epsilon, k == best) for k in labels) + " |"
        )
    labels = [m.label for m in PRIVATE]
    lines += [
        "",
        "## Mean set size over that without privacy, CIFAR-100",
        "",
        "50 random splits of 10,000 records, LAC scores, logit-spaced candidates, the same splits for all. 1.00 is no",
        "cost; the largest possible value is about 20 (all 100 classes in every set). Marks as above.",
        "",
        "| n | epsilon | " + " | ".join(labels) + " |",
        "|---:|---:|" + "---:|" * len(labels),
    ]
    for (n, epsilon), cell_ in results.items():
        row = [f"{cell_[k]['size ratio']:.2f}{_mark(k, cell_[k])}" for k in labels]
        lines.append(f"| {n} | {epsilon:g} | " + " | ".join(row) + " |")
    return "\n".join([*lines, "", *verdict(results), ""])


def _mark(label: str, entry: dict[str, Any]) -> str:
    if entry["certified"] is None:
        return " ‡"
    if entry["certified"] >= 1:
        return " ∞"
    return " †" if entry["certified"] < 0.9 - 1e-9 else ""


def _entry(label: str, entry: dict[str, Any], n: int, epsilon: float, best: bool) -> str:
    scale = n * epsilon
    text = f"{(entry['coverage'] - 0.9) * scale:.1f} ± {entry['error'] * scale:.1f}"
    return (f"**{text}**" if best else text) + _mark(label, entry)


def verdict(results: dict[tuple[int, float], dict[str, Any]]) -> list[str]:
    """Where our mechanism is the cheapest of those that claim 90 % and keep it, and where it is not."""
    published = ("pps", "pps-laplace", PUBLISHED_BINS)
    lost, capped = [], []
    for (n, epsilon), entries in results.items():
        ours = entries["slopes (ours)"]
        for label in published:
            other = entries[label]
            if _mark(label, other) == " †":
                capped.append(
                    f"n={n}, epsilon={epsilon:g}, {label}: certified {other['certified']:.3f}, mean coverage on uniform scores "
                    f"{other['coverage']:.3f}"
                )
            elif other["coverage"] < ours["coverage"] - 1e-12:
                lost.append(f"n={n}, epsilon={epsilon:g}, {label}")
    lines = ["## Reading it", ""]
    if lost:
        lines += ["A published method with a valid claim costs less than `slopes` at: " + "; ".join(lost) + ".", ""]
    else:
        lines += ["No published method that keeps its claim costs less than `slopes` at any n and epsilon.", ""]
    if capped:
        lines += [
            "Where the level of `pps` is capped at 1 it can look cheaper (at n = 200 and 500 with small epsilon it does), but then",
            "nothing like 90 % is guaranteed: its coverage depends on the data and the number of candidates. What the",
            "random-rank lemma certifies is listed; with fewer records the mean itself drops (n = 50, epsilon = .1: .70).",
            "",
        ]
        lines += [f"- {text}" for text in capped]
    return lines
