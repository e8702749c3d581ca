"""The running time of the sampler depends on the data, and padding hides it."""

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import ConfideError
from confide.mechanisms.slopes import slopes_for
from confide.selection.padding import padded


@dataclass(frozen=True)
class Timing:
    """Median seconds on two kinds of data, and the area under the ROC curve of one running time (0.5 is useless)."""

    fast: float
    slow: float
    told_apart: float


def measure(mechanism, one, other, runs, wrap=lambda draw: draw()):
    """Time the mechanism on two vectors of counts in turn; `wrap` runs the draw, for example within `padded`."""
    from scipy.stats import mannwhitneyu

    times = ([], [])
    for _ in range(runs):
        for which, counts in enumerate((one, other)):
            begin = time.perf_counter()
            wrap(lambda counts=counts: mechanism.choose(counts))
            times[which].append(time.perf_counter() - begin)
    medians = sorted(float(np.median(t)) for t in times)
    area = float(mannwhitneyu(times[0], times[1]).statistic) / runs**2
    return Timing(medians[0], medians[1], max(area, 1 - area))


def cases(m=2000, n=100_000):
    mechanism = slopes_for(Fraction(0), Fraction(9 * n // 10), 14, 6, "replace_one", 1.0)
    spread = np.bincount(np.arange(n) % m, minlength=m)
    few = np.zeros(m, dtype=np.int64)
    few[m // 2] = 9 * n // 10
    few[-1] = n - few[m // 2]  # half of all candidates hold exactly the target rank
    return mechanism, spread, few


@pytest.mark.slow
def test_time_tells_data_apart_and_padding_hides_it():
    mechanism, spread, few = cases()
    bare = measure(mechanism, spread, few, 60)
    assert bare.told_apart > 0.5 + 4.75 * math.sqrt((2 * 60 + 1) / (12 * 60**2))  # Mann-Whitney at level 1e-6
    assert bare.slow > 2 * bare.fast
    seconds = 30 * bare.slow

    def padded_draw(draw):
        with padded(seconds):
            return draw()

    hidden = measure(mechanism, spread, few, 12, padded_draw)
    assert hidden.slow < 1.05 * hidden.fast


def test_padding_is_checked_and_holds_when_the_block_fails():
    for wrong in (0.0, -1.0, float("nan"), "1"):
        with pytest.raises(ConfideError), padded(wrong):
            pass
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError), padded(0.05):
        raise ZeroDivisionError
    assert time.monotonic() - begin >= 0.05
