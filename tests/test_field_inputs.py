"""Inputs on which comparable software failed: equal scores, too few records, wrapped sums, tiny and large scores."""

import itertools
import math
import warnings

import numpy as np
import pytest

import confide
from confide import Candidates, Noise, PublishedCounts, federated
from confide.core import Release, candidates_of
from confide.errors import InputError
from tests.exact_tests import assert_threshold_below
from tests.refused import refused

RNG = np.random.default_rng(0)
FEW = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

ATOM = np.concatenate([np.full(800_000, 65_000.0), RNG.integers(0, 500_001, 200_000)])


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_median_of_a_million_records_is_the_score_that_most_have(neighbors):
    """About 26,000 scores are below the atom and 174,000 above: another threshold is 300,000 ranks away.

    Both slopes are at least 0.1 a rank at epsilon 0.5, so that its probability is below 501 exp(-30,000).
    """
    candidates = Candidates.of(np.arange(0, 501_000, 1000.0))
    released = confide.calibrate(ATOM, 0.5, 0.5, candidates=candidates, neighbors=neighbors)
    assert released.threshold == 65_000


GRID = Candidates.unit(50)
ONE_OF_MANY = {
    "scores": lambda s: confide.calibrate(s, 0.1, 4.0, candidates=GRID),
    "public number": lambda s: confide.calibrate(s, 0.1, 4.0, candidates=GRID, neighbors="replace_one"),
    "residuals": lambda s: confide.calibrate(s, 0.1, 4.0, score="absolute_residual"),
    "losses": lambda s: confide.calibrate_losses(np.tile(s[:, None], (1, 49)), GRID, 0.1, 4.0, loss="own"),
}


@pytest.mark.slow(unless=("losses", "public number", "scores"))
@pytest.mark.parametrize("kind", ONE_OF_MANY)
def test_one_other_record_among_equal_ones_changes_no_path(kind):
    """1,492 zeros, and 1,491 with a 1: no warning, the same candidates, and a threshold that is finite.

    Of eight thresholds each exceeds the bound of the exact test with a probability of 1e-8 or less.
    """
    zeros = np.zeros(1492)
    candidates = set()
    for scores in (zeros, np.append(zeros[1:], 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            released = ONE_OF_MANY[kind](scores)
        assert 0 <= released.threshold < math.inf
        if kind != "losses":  # the threshold of a loss depends on a random number of each record
            assert_threshold_below(released, scores, 1e-8)
        candidates.add(released.candidates)
    assert len(candidates) == 1


@pytest.mark.slow
def test_a_federation_plans_no_side_with_too_few_records():
    """The same 19 records, whatever the method and the budget; with more, a plan certifies 0.95 for each side."""
    silos = [federated.SiloKeys.generate(f"s{i}") for i in range(3)]
    for method in ("private-qq", "secure-sum"):
        for size, enough in ((4, False), (6, False), (14, True)):
            sized = [keys.public(size) for keys in silos]
            if not enough:
                with refused(InputError, "silos"):
                    federated.plan(sized, 0.1, 100.0, by="side", method=method, candidates=GRID)
                continue
            made = federated.plan(sized, 0.1, 100.0, by="side", method=method, candidates=GRID)
            for part in made.parts.values():
                assert part.certify()[1].coverage >= 0.95


@pytest.mark.slow
@FEW
@pytest.mark.parametrize("k", [1, 3])
def test_pixels_without_a_label_must_be_named(k):
    """The number 255 in masks of unsigned bytes is no class and no default; once it is named, images are calibrated."""
    outcomes = RNG.integers(0, max(k, 2), (5, 4, 4)).astype(np.uint8)
    outcomes[:, 0, 0] = 255
    probabilities = np.moveaxis(RNG.dirichlet(np.ones(k), (5, 4, 4)), -1, 1)
    images = list(zip(probabilities, outcomes, strict=True))
    argument = "masks" if k == 1 else "truth"
    with refused(InputError, argument):
        confide.calibrate_masks(images, 0.1, 1.0, candidates=GRID)
    released = confide.calibrate_masks(images, 0.1, 1.0, candidates=GRID, ignore_index=255)
    assert released.risk <= 0.1 + 1e-12
    with refused(InputError, argument):
        confide.evaluation.evaluate_masks(images, released)


@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.uint64, list])
def test_published_counts_of_billions_are_added_exactly(kind):
    """64 bins of about 3e9: the threshold is the first candidate from the target rank on, computed in integers."""
    counts = [3 * 10**9 + 17 * i * i for i in range(64)]
    given = counts if kind is list else np.array(counts, kind)
    noise = Noise.discrete_laplace(2.0)
    total, below = sum(counts), list(itertools.accumulate(counts))
    published = PublishedCounts(given, Candidates.unit(64), noise, total, score="lac", classes=["no", "yes"])
    released = confide.calibrate_counts(published, alpha=0.1)
    place = next(i for i in range(64) if 10 * below[i] >= 9 * (total + 1))
    assert 10 * below[place - 1] + 10**6 < 9 * total < 10 * below[place] - 10**6  # noise is much smaller
    assert released.threshold == candidates_of(released).edges[place]


@pytest.mark.slow(unless=("1000000000000.0-none", "1e-06-none"))
@pytest.mark.parametrize("mechanism", ["none", pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scale", [1e-6, 1e-300, 1e12])
def test_scores_of_any_size_keep_their_bits(tmp_path, scale, mechanism):
    """Through a release, its file, intervals, the text and the page; no such threshold is printed as zero.

    A private threshold exceeds the bound of the exact test with a probability of 1e-7 or less.
    """
    residuals = scale * (np.arange(3000) + 0.5) / 3000
    options = {"epsilon": 4.0} if mechanism is None else {"mechanism": mechanism}
    released = confide.calibrate(residuals, 0.1, score="absolute_residual", unit=scale, **options)
    released.save(tmp_path / "released.json")
    again = Release.load(tmp_path / "released.json")
    assert again.threshold.hex() == released.threshold.hex()
    ends = [confide.predict_interval(np.zeros(1), one).upper.tobytes() for one in (released, again)]
    assert ends[0] == ends[1]
    assert np.frombuffer(ends[0]) == pytest.approx([released.threshold], rel=1e-12, abs=0)
    shown = str(released).splitlines()[0].split()[1]
    assert float(shown) == pytest.approx(released.threshold, rel=1e-11, abs=0)
    if mechanism == "none":
        values = candidates_of(released.only).values
        assert again.threshold == values[values >= residuals[2700]][0]
    else:
        assert_threshold_below(again, residuals, 1e-7)
        assert shown in confide.report(released).html
