"""Mechanisms of others, honest and broken, as they are handed to the audit."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from confide.mechanisms import Slopes
from tests import exact
from tests.audit.harness.library import threshold, utility_law

_RNG = np.random.default_rng()
EDGES = np.array([0.2, 0.5, 0.8])
THRESHOLDS = [0.2, 0.5, 0.8, float("inf")]


def counts(scores):
    return np.bincount(np.searchsorted(EDGES, scores), minlength=4)


class ExponentialMechanism:
    """Draws a threshold with probability proportional to exp(exponent), in numpy as research code does."""

    neighbors = "replace_one"

    def __init__(self, exponents, epsilon, alpha=None):
        self.exponents, self.epsilon, self.alpha = exponents, epsilon, alpha
        self.rng = np.random.default_rng()

    def law(self, scores):
        u = self.exponents(counts(scores))
        p = np.exp(u - u.max())
        return dict(zip(THRESHOLDS, p / p.sum(), strict=True))

    def __call__(self, scores):
        law = self.law(scores)
        return self.rng.choice(list(law), p=list(law.values()))


def published(q, level, epsilon=1.0):
    """Private Prediction Sets: w_j at q, and exp(-epsilon min(level, 1-level) w_j / 2).

    The paper has level = q. The code that its authors published has level = alpha, whatever q is.
    """
    f = min(level, 1 - level)

    def exponents(h):
        b = np.cumsum(h)
        return -0.5 * epsilon * np.maximum((b - h) * f / q, (b[-1] - b) * f / (1 - q))

    return exponents


published_paper = ExponentialMechanism(published(0.9, 0.9), epsilon=1.0)
published_code = ExponentialMechanism(published(0.97, 0.1), epsilon=1.0)
published_code_extreme = ExponentialMechanism(published(0.995, 0.1), epsilon=1.0)


class PermuteAndFlip:
    """Slopes to both sides of rank 6, with noise that may be too small: the largest after exponential noise wins."""

    neighbors = "replace_one"
    epsilon = 1.0

    def __init__(self, cut=1.0, tell_law=False):
        self.scale = 20.0 / cut
        self.rng = np.random.default_rng()
        if tell_law:
            self.law = lambda s: dict(zip(THRESHOLDS, exact.law(self.utilities(s), self.scale), strict=True))

    def utilities(self, scores):
        h = counts(scores)
        b = np.cumsum(h)
        short = 14 * np.maximum(6 - b, 0)
        short[-1] = 0
        return -np.maximum(6 * np.maximum(b - h - 6, 0), short)

    def __call__(self, scores):
        return THRESHOLDS[int(np.argmax(self.utilities(scores) + self.rng.exponential(self.scale, 4)))]


honest = PermuteAndFlip()
cut_noise = PermuteAndFlip(cut=1.5)
halved_noise = PermuteAndFlip(cut=2.0)
cut_noise_with_law = PermuteAndFlip(cut=1.5, tell_law=True)


def private_maximum(scores):
    """Candidates spread up to the largest *private* score: what a fit of the bins to the data does."""
    edges = np.linspace(0, scores.max(), 6)[1:]
    h = np.bincount(np.minimum(np.searchsorted(edges, scores), 4), minlength=5)
    b = np.cumsum(h)
    noise = _RNG.exponential(4.0, 5)
    return float(edges[np.argmax(noise - np.abs(b - round(0.9 * len(scores))))])


private_maximum.epsilon = 1.0


def opendp_quantile(scores):
    """OpenDP's private quantile at the level that is asked for, as it is used off the shelf."""
    return float(opendp_measurement()(scores.tolist()))


@lru_cache
def opendp_measurement():
    import opendp.prelude as dp

    from confide.selection import with_contrib

    grid = np.round(np.linspace(0.0, 1.0, 101), 6)
    return with_contrib(
        lambda: dp.m.make_private_quantile(
            dp.vector_domain(dp.atom_domain(T="f64", nan=False)),
            dp.symmetric_distance(),
            dp.max_divergence(),
            candidates=grid.tolist(),
            alpha=0.9,
            scale=1.8 / 5.0,
        )
    )


opendp_quantile.alpha = 0.1


def weakened(subject, factor):
    """A slope subject whose noise is cut by a factor while its claims stay: what an audit has to catch."""
    mechanism, candidates = subject.draw.args
    assert isinstance(mechanism, Slopes)
    broken = replace(mechanism, scale=mechanism.scale / factor)
    draw, law = (partial(one, broken, candidates) for one in (threshold, utility_law))
    return replace(subject, name=f"{subject.name}, noise cut by {factor:g}", draw=draw, law=law)
