"""The exponential mechanism: its law, scale, zCDP loss and running time; and the draws of releases."""

import ast
import math
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from opendp import mod
from scipy import stats
from scipy.stats import binomtest

import confide
from confide.errors import ConfideError
from confide.mechanisms import draw_size, slopes_for
from confide.noisy_counts import draw_counts
from confide.selection import (
    noisy_counts,
    noisy_number,
    range_of_zcdp,
    select,
    selection_law,
    uniforms,
    with_contrib,
    zcdp_of_range,
)
from confide.selection.draws import noisy_max
from confide.selection.padding import padded
from confide.support import float_above, scale_for
from tests.draws import SECURE, always, drawing_with
from tests.exact import histograms, law, mechanism_law, renyi, replaced, zcdp


@pytest.mark.parametrize(("distance", "epsilon"), [(20, 1.0), (18, 0.7), (7, 0.1), (123456, 3.3), (10**12, 1e-3)])
def test_scale_is_the_smallest_that_keeps_the_loss(distance, epsilon):
    """Range distance/scale, the loss by Lemma P2, exactly: at most epsilon, and above it at the float below."""
    scale = scale_for(distance, epsilon)
    assert distance / Fraction(scale) <= Fraction(epsilon)
    assert distance / Fraction(float(np.nextafter(scale, 0))) > Fraction(epsilon)


@pytest.mark.parametrize("on", [False, True])
def test_features_of_opendp_stay_as_they_were(on, monkeypatch):
    monkeypatch.setattr("opendp.mod.GLOBAL_FEATURES", {"contrib"} if on else set())
    assert with_contrib(lambda: "contrib" in mod.GLOBAL_FEATURES)
    assert ("contrib" in mod.GLOBAL_FEATURES) is on
    with pytest.raises(ZeroDivisionError):
        with_contrib(lambda: 1 / 0)
    assert ("contrib" in mod.GLOBAL_FEATURES) is on


@pytest.mark.parametrize("scale", [0.5, 20.0, 1e9 / 3])
def test_opendps_map_is_twice_the_largest_change_over_the_scale(scale):
    """OpenDP's map for the largest change d of one utility is 2 d/scale, whose square over 8 is rho."""
    loss = 2 * 20 / scale
    assert noisy_max(scale).map(20) == pytest.approx(loss**2 / 8, rel=1e-12)


@pytest.mark.parametrize(
    "utilities", [[0, 0, 0, 0], [-3, 0, -1, -6, -40], [-1000, -999, -1003, -1001], list(range(-12, 1))]
)
def test_library_law_is_the_exact_law(utilities):
    u = np.array(utilities, dtype=np.int64)
    exact = law(u, 2.0)
    np.testing.assert_allclose(selection_law(np.exp((u - u.max()) / 2.0)), exact, rtol=1e-9)
    assert exact.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    ("utilities", "scale"),
    [
        ([-30, -20, -10, 0, -5, -15, -45], 10.0),
        ([0, 0, 0, -1], 1.0),
        ([-(10**15), -(10**15) - 3 * 10**14, -(10**15) - 5 * 10**14], 4.1e14),
        (list(range(-60, 0)) + list(range(0, -40, -1)), 11.7),
    ],
)
def test_installed_sampler_matches_exact_law(utilities, scale):
    """Chi-square at level 1e-6 of OpenDP's sampler, compared with the exact law."""
    u = np.array(utilities, dtype=np.int64)
    draws = np.bincount([select(u, scale) for _ in range(6000)], minlength=len(u))
    expected = 6000 * selection_law(np.exp((u - u.max()) / scale))
    small = expected < 10
    observed = np.append(draws[~small], draws[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    statistic = np.sum((observed[keep] - wanted[keep]) ** 2 / wanted[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-6


SOURCE = Path(confide.__file__).parent
DRAWS = SOURCE / "selection" / "draws.py"
UTILITIES = np.array([-1000, 0])


def everything():
    """One draw of every kind, each of which the secure draws leave as it is."""
    counts = np.array([90, 10])
    coins = uniforms(3)
    inside = int(((coins >= 0) & (coins < 1)).sum())
    return select(UTILITIES, 1.0), noisy_counts(counts, 1e-9).tolist(), noisy_number(7, 1e-9), inside


SECURELY = (1, [90, 10], 7, 3)


def test_every_draw_is_replaced_for_a_block():
    with drawing_with(select=always(0), noisy_counts=always(UTILITIES), noisy_number=always(5), uniforms=np.zeros):
        assert everything() == (0, [-1000, 0], 5, 3)
        assert draw_size(1000, 20.0, 1).counted == 5
        assert draw_counts([90, 10], 1.0).tolist() == [-1000, 0]
        with drawing_with(select=always(1)):
            assert everything()[:2] == (1, [-1000, 0])
        assert select(UTILITIES, 1.0) == 0
    with drawing_with(noisy_number=SECURE.noisy_number):
        assert everything() == SECURELY


@pytest.mark.slow
@pytest.mark.usefixtures("noisy_number")
def test_no_draw_is_used_again():
    """Two of so wide draws are equal with a probability below 1e-8; coins agree at every distance as often as not."""
    zero = np.zeros(1, np.int64)
    numbers = [(int(noisy_counts(zero, 1e15)[0]), noisy_number(0, 1e15), float(uniforms(1)[0])) for _ in range(1000)]
    assert [len(set(values)) for values in zip(*numbers, strict=True)] == [1000] * 3
    assert len(set(noisy_counts(np.zeros(1000, np.int64), 1e15).tolist())) == 1000
    coins = np.array([select(np.zeros(2, np.int64), 1.0) for _ in range(2000)])
    for lag in range(1, 101):
        agreeing = int((coins[lag:] == coins[:-lag]).sum())
        assert binomtest(agreeing, 2000 - lag).pvalue > 1e-8


def test_an_error_ends_the_replacement():
    with pytest.raises(ZeroDivisionError), drawing_with(select=lambda utilities, scale: 1 // 0):
        select(UTILITIES, 1.0)
    assert select(UTILITIES, 1.0) == 1


def test_other_threads_draw_securely():
    with drawing_with(select=always(0), noisy_number=always(5)), ThreadPoolExecutor(1) as other:
        assert other.submit(everything).result() == SECURELY


def test_a_misspelt_draw_raises():
    with pytest.raises(TypeError), drawing_with(selects=always(0)):
        pass


def test_no_argument_file_or_environment_reaches_the_replacement():
    """No other module of the library names it or what it sets, and its own module reads no input."""
    named = re.compile(r"\b(_drawing_with|_thread)\b")
    assert [path for path in SOURCE.rglob("*.py") if named.search(path.read_text())] == [DRAWS]
    module = ast.parse(DRAWS.read_text())
    assert not {node.id for node in ast.walk(module) if isinstance(node, ast.Name)} & {"open", "input", "__import__"}
    imported = {node.module for node in ast.walk(module) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(module) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {
        "collections.abc", "contextlib", "dataclasses", "functools", "threading", "typing", "numpy", "numpy.typing",
        "opendp.domains", "opendp.measurements", "opendp.measures", "opendp.metrics", "opendp.mod", "confide.arrays",
        "confide.support",
    }  # fmt: skip
    assert not {"Draws", "_drawing_with"} & vars(confide.selection).keys()


RANGES = [1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0]
ORDERS = [1 + 1e-4, 1.01, 1.1, 1.25, 1.5, 1.75, 1.99, 2.0, 2.01, 2.5, 3.0, 5.0, 10.0, 50.0, 1e3]


def two_points(eta, order):
    """The Renyi divergences of this order of all two-point laws whose log-odds differ by eta, on a fine grid."""
    start = np.linspace(-order * eta - 20, 20, 20001)  # log-odds of the second law
    log_odds = [np.logaddexp(0, start + eta * step) for step in (0.0, 1.0, order)]
    return (log_odds[2] - order * log_odds[1] + (order - 1) * log_odds[0]) / (order - 1)


@pytest.mark.parametrize("eta", RANGES)
def test_every_order_of_every_two_point_law(eta):
    """No order is above order * rho, and those near 1 are as close as the grid allows: no smaller number is valid."""
    rho = zcdp_of_range(eta)
    rounding = 1e-9 if eta >= 0.5 else 1e-5
    for order in ORDERS:
        allowed = 1e-14 * (1 + order * (eta + 20)) / (order - 1)  # error of the subtracted floats
        assert two_points(eta, order).max() <= order * rho + allowed
    start = np.linspace(-eta - 20, 20, 400001)
    p = 1 / (1 + np.exp(-start - eta))
    kl = np.logaddexp(0, start) - np.logaddexp(0, start + eta) + eta * p
    assert kl.max() == pytest.approx(rho, rel=rounding)


def test_a_smaller_bound_would_fail():
    """The test above detects errors: it fails for a loss that is 0.1 % smaller."""
    assert two_points(2.0, 1 + 1e-4).max() > (1 + 1e-4) * 0.999 * zcdp_of_range(2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("slopes", "epsilon"), [((13, 7), 1.0), ((3, 1), 2.5), ((1, 1), 6.0)])
def test_enumerated_laws_of_the_exponential_mechanism(slopes, epsilon):
    """Every order, for all neighbouring histograms; 2.5 and 6 are ranges where epsilon^2/8 is much too large."""
    mechanism = slopes_for(Fraction(0), Fraction(4), *slopes, "replace_one", epsilon)
    rho, laws = zcdp_of_range(mechanism.replace_one), {h: mechanism_law(mechanism, h) for h in histograms(6, 4)}
    worst = max(
        renyi(laws[h], laws[g], order) / order for h in laws for g in replaced(h) for order in (1.0001, 1.5, 2, 4, 16)
    )
    assert 0.5 * rho < worst <= rho + 1e-9


def test_never_below_and_at_most_a_float_above():
    for eta in [1e-12, 1e-9, 1e-6, 1e-3, *(i / 97 for i in range(1, 400)), 50.0, 700.0, 1e4, 1e6]:
        stated = zcdp_of_range(eta)
        assert Fraction(math.nextafter(stated, 0)) < zcdp(eta) <= Fraction(stated)
        assert stated <= float_above(Fraction(eta) ** 2 / 8)
        both = zcdp_of_range(eta, eta)
        assert Fraction(math.nextafter(both, 0)) < 2 * zcdp(eta) <= Fraction(both) <= Fraction(zcdp_of_range(2 * eta))
    assert zcdp_of_range(0.0) == zcdp_of_range() == 0.0
    assert zcdp_of_range(math.inf, 1.0) == math.inf


def test_the_largest_range_that_a_loss_allows():
    for rho in [1e-14, 1e-9, 1e-6, 0.01, 0.125, 0.5, 1.0, 2.0, 7.77, 100.0, 9e5]:
        eta = range_of_zcdp(rho)
        assert zcdp_of_range(eta) <= rho < zcdp_of_range(math.nextafter(eta, math.inf))
        assert eta >= math.sqrt(8 * rho) * (1 - 1e-15)
    assert [round(range_of_zcdp(rho), 3) for rho in (0.125, 0.5, 2.0)] == [1.007, 2.056, 4.453]
    assert range_of_zcdp(1e6) == 1e6


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
