"""Compute the exact distribution of a federated threshold on small cases, independently of the library's quadratures.

Only the probability mass between candidates matters: `population[b]` is the probability that a score falls into bin b,
as a tie or spread. The distribution of a reply is a sum over all histograms of a silo. The threshold is computed for
every vector of replies, with every strategy of Byzantine silos and every set of dropouts.
"""

import itertools
from functools import lru_cache

import numpy as np
from scipy import stats

from confide.mechanisms import PrivatePredictionSets, SplitConformal
from tests.exact import histograms, law, mechanism_law
from tests.federated.helpers import kth_reply


@lru_cache
def choice_laws(mechanism, n, bins):
    """Return the distribution of a silo's reply for every histogram of n scores, shape (histograms, bins)."""
    if isinstance(mechanism, SplitConformal):
        return np.array([np.eye(bins)[min(mechanism.choose(np.array(h)), bins - 1)] for h in histograms(n, bins)])
    if isinstance(mechanism, PrivatePredictionSets):
        laws = [law(mechanism.utilities(np.array(h)), mechanism.scale) for h in histograms(n, bins)]
        return np.array(laws)
    return np.array([mechanism_law(mechanism, h) for h in histograms(n, bins)])


def reply_law(mechanism, n, population):
    """Return the distribution of a silo's reply if its n records are drawn from the population."""
    weights = stats.multinomial.pmf(histograms(n, len(population)), n, population)
    return weights @ choice_laws(mechanism, n, len(population))


def lowest(plan, replies, answered, k, liars):
    """Return the least threshold over all messages of these Byzantine silos, given the other replies."""
    honest = [replies[i] for i in answered if i not in liars]
    lies = itertools.product(range(plan.candidates.size), repeat=len(liars))
    return min(kth_reply([*honest, *output], k, plan.candidates.size) for output in lies)


def worst_thresholds(plan, answered=None, liars=()):
    """Return the least threshold's index for every vector of replies, shape (bins,) * silos.

    The Byzantine silos send the worst messages.
    """
    who = tuple(range(len(plan.silos))) if answered is None else tuple(answered)
    k, _ = plan.certify(who)
    return _each(plan, lambda replies: lowest(plan, replies, who, k, liars))


def worst_thresholds_of_all(plan):
    """Return the same for an attacker who knows all replies and chooses dropouts and Byzantine silos (`arbitrary`)."""
    m = len(plan.silos)
    present = [who for size in range(plan.liars + 1, m + 1) for who in itertools.combinations(range(m), size)]
    cases = [(who, plan.certify(who)[0], liars) for who in present for liars in itertools.combinations(who, plan.liars)]
    return _each(plan, lambda replies: min(lowest(plan, replies, *case) for case in cases))


def _each(plan, index_of):
    shape = (plan.candidates.size,) * len(plan.silos)
    return np.array([index_of(replies) for replies in np.ndindex(*shape)]).reshape(shape)


def threshold_law(plan, population, thresholds):
    """Return the distribution of the threshold's index, shape (bins,)."""
    joint = np.ones(())
    for i, silo in enumerate(plan.silos):
        joint = np.multiply.outer(joint, reply_law(plan.first.mechanism(i), silo.size, population))
    return np.bincount(thresholds.ravel(), joint.ravel(), minlength=plan.candidates.size)


def coverage(index_law, population):
    """Return the probability that a new score lies at or below the threshold."""
    return float(index_law @ np.cumsum(population))


def failure(index_law, population, level):
    """Return the probability that coverage given the calibration data is below the level."""
    return float(index_law[np.cumsum(population) < level - 1e-12].sum())


def populations(bins, level, seed=0):
    """Return test populations.

    They are uniform; with a tie of several weights in each bin; with a cumulative probability just below the level; or
    random.
    """
    found = [np.full(bins, 1 / bins)]
    for b in range(bins):
        for heavy in (0.55, 0.7, 0.85, 0.97):
            p = np.full(bins, (1 - heavy) / (bins - 1))
            p[b] = heavy
            found.append(p)
        if b < bins - 1:
            p = np.full(bins, 1e-9)
            p[b], p[-1] = level - 1e-6, 1 - level
            found.append(p / p.sum())
    return found + list(np.random.default_rng(seed).dirichlet(np.full(bins, 0.7), 12))
