"""Coverage and size of every score on real data, private compared with non-private: `python -m benchmarks.real_data`.

Needs the data: CONFIDE_DATA, or ../shared/data. Another table shows the cost of saturated probabilities.
"""

import math
import sys

import numpy as np
import pytest

import confide
from tests.exact_tests import coverage_p_value
from tests.scores.test_pitfalls import DETERMINISTIC, RANDOMISED
from tests.test_real_data import IMAGES, TABLES, image_table, intervals_of, sets_of


def row(name, score, result):
    n, private, plain = len(result.scores), result.private, result.plain
    p_value = coverage_p_value(result.released, n, int(result.covered.sum()), len(result.covered))
    return (
        f"| {name} | {score} | {n} | {result.covered.mean():.3f} | {p_value:.2g} | {private:.3g} | {plain:.3g} "
        f"| {private / plain:.3f} |"
    )


def every_score():
    print("| data | score | n | coverage | exact p | size or width | without privacy | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name in IMAGES:
        for score in DETERMINISTIC + RANDOMISED:
            print(row(name.split("_")[0], score, sets_of(name, score)))
    for name, target in TABLES.items():
        for score in ("absolute_residual", "normalised_residual", "gamma", "cqr"):
            print(row(name.split(".")[0], score, intervals_of(name, target, score)))


def saturated():
    """Non-private mean set sizes at the target rank and a few ranks above: the price of any noise."""
    print("\n| data | score | rank | + 5 | + 10 | + 20 |\n|---|---|---|---|---|---|")
    for name in IMAGES[1:]:
        p, y = image_table(name)
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        half, rest = order[: len(y) // 2], order[len(y) // 2 :]
        u = rng.random(len(y))
        for score in ("aps_deterministic", "aps"):
            mine, others = (u[half], u[rest]) if score == "aps" else (None, None)
            scores = np.sort(confide.class_score(p[half], y[half], score, u=mine))
            every = confide.all_scores(p[rest], score, u=others)
            rank = math.ceil(0.9 * (len(half) + 1))
            sizes = [(every <= scores[rank + more - 1]).sum(axis=1).mean() for more in (0, 5, 10, 20)]
            print(f"| {name.split('_')[0]} | {score} | " + " | ".join(f"{size:.2f}" for size in sizes) + " |")


def main():
    """Print both tables."""
    try:
        every_score()
        saturated()
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
