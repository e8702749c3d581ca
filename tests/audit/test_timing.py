"""The running time of the sampler depends on the data, and padding hides it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.audit.timing import measure
from confide.errors import ConfideError
from confide.mechanisms.slopes import slopes_for
from confide.selection.padding import padded


def cases(m=2000, n=100_000):
    mechanism = slopes_for(Fraction(0), Fraction(9 * n // 10), 14, 6, "replace_one", 1.0, "permute_and_flip")
    spread = np.bincount(np.arange(n) % m, minlength=m)  # one candidate is good, and all others are rejected first
    few = np.zeros(m, dtype=np.int64)
    few[m // 2] = 9 * n // 10
    few[-1] = n - few[m // 2]  # half of all candidates hold exactly the target rank
    return mechanism, spread, few


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
    import time

    for wrong in (0.0, -1.0, float("nan"), "1"):
        with pytest.raises(ConfideError), padded(wrong):
            pass
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError), padded(0.05):
        raise ZeroDivisionError
    assert time.monotonic() - begin >= 0.05
