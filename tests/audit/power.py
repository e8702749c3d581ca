"""Which defects the audit of a black box finds, with which probability: `python -m tests.audit.power`."""

import math

import numpy as np
from scipy.stats import beta, binom

from benchmarks.small import small
from confide.audit.coverage import DIFFICULT_LAWS, bet_against
from confide.audit.run import LEVEL, SECONDS, effort_at
from confide.audit.subject import COVERAGE_SIZES

SHARE = LEVEL / (2 + len(DIFFICULT_LAWS))
TRIALS = small(400, 4)
SPEEDS = ((50, 50), (1000, 500), (10_000, 5000))


def loss_power(loss, runs, level=SHARE, claim=1.0):
    """The exact chance that so many runs per neighbour show more than the claim, for `broken.Response(loss)`."""
    p = 1 / (1 + math.exp(-loss))
    reach = 8 * math.sqrt(runs * p * (1 - p)) + 2
    hits = np.arange(max(1, int(runs * p - reach)), min(runs, int(runs * p + reach)) + 1)
    misses = np.arange(max(0, int(runs * (1 - p) - reach)), min(runs - 1, int(runs * (1 - p) + reach)) + 1)
    most = beta.ppf(1 - level / 2, misses + 1, runs - misses)
    allowed = beta.ppf(level / 2, hits, runs - hits + 1) * math.exp(-claim)
    found = binom.cdf(misses[0] - 1 + np.searchsorted(most, allowed), runs, 1 - p)
    return float((binom.pmf(hits, runs, p) * found).sum())


def least_loss(runs, chance):
    """The least loss that is found with a chance, to a hundredth upwards."""
    return next(loss for loss in np.arange(1.0, 3.0, 0.01).round(2) if loss_power(loss, runs) >= chance)


def coverage_power(coverage, repeats, rng, trials=TRIALS):
    """The chance that continuous scores show a coverage below .9, simulated: ranks as `covering` draws them."""
    found = 0
    for _ in range(trials):
        p = min(_p_value(n, coverage, repeats, rng) for n in COVERAGE_SIZES)
        found += p * len(COVERAGE_SIZES) < SHARE
    return found / trials


def _p_value(n, coverage, repeats, rng):
    ranks = np.floor(coverage * (n + 1) + rng.random(repeats))
    covered = np.where(ranks > n, 1.0, rng.beta(np.minimum(ranks, n), n + 1 - np.minimum(ranks, n)))
    return bet_against(covered, 0.9)


def rows():
    """One row of the table in docs/audit.md per speed and effort."""
    rng = np.random.default_rng(0)
    for few, many in SPEEDS:
        for name, seconds in (("default", SECONDS), ("--long", 10 * SECONDS)):
            effort = effort_at(few, many, seconds, len(COVERAGE_SIZES))
            losses = " / ".join(f"{least_loss(effort.attack, chance):.2f}" for chance in (0.5, 0.99))
            powers = " / ".join(f"{coverage_power(c, effort.coverage, rng):.2f}" for c in (0.885, 0.8985, 0.8995))
            yield f"| {few:,} / {many:,} | {name} | {effort.attack:,} | {losses} | {effort.coverage:,} | {powers} |"


if __name__ == "__main__":
    print("\n".join(rows()))
