"""The cost of privacy: excess coverage times n epsilon on uniform scores, and set sizes over non-private ones."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from tqdm import tqdm

import confide
from benchmarks.small import small
from confide.mechanisms import certify
from experiments.cache import cached, write_tables
from experiments.cost_page import tables
from experiments.laws import law
from experiments.methods import NONE, PRIVATE
from experiments.scores import cifar100
from experiments.splits import study

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
        mechanism = method.mechanism(n, ALPHA, epsilon, bins)
        out[method.label] = {
            "bins": bins,
            "certified": _certified(mechanism, bins, n),
            **_uniform(mechanism, method.edges(bins), n, data_sets // 20 if method in huge else data_sets),
            "size ratio": float(np.mean(sizes[method.label]["size"]) / plain),
        }
    return out


def _certified(mechanism: Any, m: int, n: int) -> float | None:
    secret = getattr(mechanism, "rate", 0) != 0
    claimed = certify(mechanism, ALPHA, m, None if secret else n, 1 if secret else None, None)
    return None if claimed.kind == "none" else claimed.coverage


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


def run() -> None:
    """Compute and store all cells, and write the tables."""
    cells = [(n, epsilon) for n in SIZES for epsilon in LOSSES]
    results = {
        (n, e): cached(f"cost_{n}_{e}", lambda n=n, e=e: cell(n, e)) for n, e in tqdm(cells, desc="cost of privacy")
    }
    write_tables("cost.md", tables(results))  # price_picture.py reads its first table
