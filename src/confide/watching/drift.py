"""What is tested: that parts are covered; or that sets are no larger and no smaller than in a reference batch.

Whether sizes drift says nothing about coverage: sets can keep their sizes and miss, and change their sizes and cover.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.noisy_counts import coverage_interval
from confide.watching.e_process import DROPS, SIZE_DROPS
from confide.watching.reference import Reference

_LEAST = 0.02
"""A share that may be smaller is not tested: there is nothing it could fall to."""


@dataclass(frozen=True, eq=False)
class Tests:
    """Tests of "this share is at least so much", each of which reads its counts off those of a look.

    Parameters
    ----------
    names
        Of the tests.
    least
        What is tested, float64, shape (tests,).
    members
        Which counts are records with the property, boolean, shape (tests, counts); and those without it.
    others
        The same.
    drops
        The drops that bets suit.
    """

    names: tuple[str, ...]
    least: NDArray[np.float64]
    members: NDArray[np.bool_]
    others: NDArray[np.bool_]
    drops: tuple[float, ...]

    @property
    def noises(self) -> NDArray[np.int64]:
        """How many noises the records with and without the property hold, shape (tests, 2)."""
        return np.stack([self.members.sum(axis=1), self.others.sum(axis=1)], axis=1)

    def sums(self, counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Records with and without the property, int64, shape (tests,)."""
        found = np.asarray(counts, np.int64)
        return self.members @ found, self.others @ found


def coverage_tests(least: Sequence[float], names: Sequence[str]) -> Tests:
    """That each part is covered at least so well; of every part a look has a covered and a missed count.

    Examples
    --------
    >>> coverage_tests([0.88, 0.86], ["a", "b"]).sums([9, 1, 7, 3])
    (array([9, 7]), array([1, 3]))
    """
    one = np.eye(len(names), dtype=np.bool_)
    covered, missed = (np.kron(one, np.array([pair], np.bool_)) for pair in ([1, 0], [0, 1]))
    return Tests(tuple(names), np.asarray(least, np.float64), covered, missed, DROPS)


def size_tests(reference: Reference, bins: Sequence[int], error: float) -> Tests:
    """That sets up to each size are as frequent as in a reference, and those above it.

    Each share is bounded from below by the reference, all bounds together with half of the error: where they hold, and
    sizes have not changed, each test has an e-process, and so has their average, with the other half for its alarm.

    Parameters
    ----------
    reference
        Noisy numbers of records by bin.
    bins
        The smallest size of each bin.
    error
        The chance of a false alarm in all.

    Examples
    --------
    >>> tests = size_tests(Reference((1400, 400, 140, 60), 1.0), [0, 1, 2, 3], 0.05)
    >>> tests.names[:2], [bool(0.65 < share < 0.7) for share in tests.least[:2]]
    (('sets of 0', 'sets of 1 and more'), [True, False])
    """
    cuts, counts = len(bins) - 1, np.asarray(reference.counts, np.int64)
    up_to = np.tri(cuts, len(bins), dtype=np.bool_)
    noises = reference.noises * np.stack([up_to.sum(axis=1), (~up_to).sum(axis=1)], axis=1)
    low, high = np.zeros(cuts), np.ones(cuts)
    for cut in range(cuts):
        below, above = counts[up_to[cut]].sum(), counts[~up_to[cut]].sum()
        ends = coverage_interval(
            [below], [above], reference.epsilon, error=error / (2 * cuts), guess=0.5, noises=tuple(noises[cut].tolist())
        )
        low[cut], high[cut] = float(ends[0][0]), float(ends[1][0])
    names, least, members = [], [], []
    for cut in range(cuts):
        top, bottom = bins[cut + 1] - 1, bins[cut + 1]
        names += [f"sets of {top}" if top == 0 else f"sets of at most {top}", f"sets of {bottom} and more"]
        least += [low[cut], 1 - high[cut]]
        members += [up_to[cut], ~up_to[cut]]
    kept = [place for place, share in enumerate(least) if share >= _LEAST]
    chosen = np.array(members, np.bool_)[kept].reshape(len(kept), len(bins))
    return Tests(tuple(names[place] for place in kept), np.array(least)[kept], chosen, ~chosen, SIZE_DROPS)
