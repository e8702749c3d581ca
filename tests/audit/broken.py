"""Mechanisms with a defect each, as people write them. They claim epsilon = 1, or coverage .9."""

import math

import numpy as np

from tests.audit import others


def covering(level):
    """A threshold whose coverage is `level` for every continuous law of scores, whatever their number."""
    rng = np.random.default_rng()

    def threshold(scores):
        n = len(scores)
        rank = math.floor(level * (n + 1) + rng.random())
        return float(np.sort(scores)[rank - 1]) if rank <= n else math.inf

    return threshold


def strictly_below(scores):
    """`<` where `<=` is right: the largest score that is below the threshold of split conformal prediction."""
    rank = math.ceil(0.9 * (len(scores) + 1))
    ordered = np.sort(scores)
    below = ordered[ordered < ordered[rank - 1]]
    return float(below[-1]) if len(below) else 0.0


def infinite_below_8(scores):
    """Too few records are admitted openly."""
    return math.inf if len(scores) < 8 else 0.5


def parity_from_20(scores):
    """Whether n is even shows in the threshold, where there are twenty or more."""
    return 0.5 if len(scores) < 20 or len(scores) % 2 else 0.6


class Every:
    """Honest noise for each call alone, drawn anew in every 50th call only."""

    neighbors = "replace_one"
    epsilon = 1.0

    def __init__(self, calls=50):
        self.calls, self.count, self.rng = calls, 0, np.random.default_rng()

    def __call__(self, scores):
        if self.count % self.calls == 0:
            self.noise = self.rng.exponential(others.honest.scale, 4)
        self.count += 1
        return others.THRESHOLDS[int(np.argmax(others.honest.utilities(scores) + self.noise))]


class Response:
    """Randomised response on whether the first record is high: the most telling mechanism of its loss."""

    neighbors = "replace_one"
    epsilon = 1.0

    def __init__(self, loss):
        self.keep, self.rng = 1 / (1 + math.exp(-loss)), np.random.default_rng()

    def __call__(self, scores):
        truth = scores.min() > 0.5
        return 0.6 if truth == (self.rng.random() < self.keep) else 0.4


cut_135 = others.PermuteAndFlip(cut=1.35)


class Repeating:
    """The noise of each call is drawn from the number of the call, which starts again after some."""

    neighbors = "replace_one"
    epsilon = 1.0

    def __init__(self, period):
        self.period, self.count = period, 0

    def __call__(self, scores):
        self.count = (self.count + 1) % self.period
        noise = np.random.default_rng(self.count).exponential(others.honest.scale, 4)
        return others.THRESHOLDS[int(np.argmax(others.honest.utilities(scores) + noise))]


class Late:
    """Noise enough for what is seen now, and the record of the call before."""

    neighbors = "replace_one"
    epsilon = 1.0

    def __init__(self):
        self.before, self.rng = 0.0, np.random.default_rng()

    def __call__(self, scores):
        shown = 0.9 if self.rng.random() < (0.1 + 0.8 * (self.before > 0.5)) else 0.1
        self.before = float(scores.max())
        return shown
