"""The one counter: what it counts is what a loop over the records counts, in any batches, and noise is all that a
private evaluation adds."""

from collections import Counter

import numpy as np
import pytest

import confide
from confide.evaluation import PrivateRequest, ScoreOutcomes, Tally, TooManyGroupsError, evaluate_arrays, exact_query
from confide.evaluation.tally import Counts, RecordOutcomes, outcomes_of
from tests.calibrations import calibration_at
from tests.draws import without_noise
from tests.refused import refused

BATCHES = [slice(0, 1), slice(1, 1), slice(1, 260), slice(260, 400)]


@pytest.mark.parametrize("parts", [(), (1,), (5,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("outcomes", [2, 4])
def test_cells_equal_loop_over_records(parts, outcomes):
    rng = np.random.default_rng(len(parts))
    places = [rng.integers(0, size, 400) for size in parts]
    outcome, measured = rng.integers(0, outcomes, 400), rng.integers(0, 9, (2, 400))
    counts = Counts((*parts, outcomes), (*parts, 2))
    for batch in BATCHES:
        counts.add([place[batch] for place in places], outcome[batch], measured[:, batch])
    cells, sums = Counter(), Counter()
    for one, sizes, *place in zip(outcome, measured.T, *places, strict=True):
        cells[*place, one] += 1
        sums.update({(*place, level): size for level, size in enumerate(sizes.tolist())})
    assert counts.cells.shape == (*parts, outcomes)
    assert all(counts.cells[at] == cells[at] for at in np.ndindex(counts.cells.shape))
    assert all(counts.sums[at] == sums[at] for at in np.ndindex(*parts, 2))


def test_groups_are_counted_by_name_in_any_batches():
    rng = np.random.default_rng(7)
    names, scores = rng.choice(list("ecafbd"), 400), rng.random(400)
    comparison = ScoreOutcomes(calibration_at(0.5))
    tally = Tally(comparison, exact_query(comparison, grouped=True))
    for batch in BATCHES:
        tally.add(scores[batch], groups=names[batch])
    found = tally.result().groups
    assert found.names == tuple("abcdef")
    for part in found:
        own = names == part.name
        assert (part.n, part.covered) == (own.sum(), (own & (scores <= 0.5)).sum())
    with refused(TooManyGroupsError, "groups"):
        tally.add(np.zeros(995), groups=range(995))


def test_invalid_part_raises():
    for place in (-1, 2):
        for parts in ((2,), (2, 2)):
            counts = Counts((*parts, 2))
            with pytest.raises(ValueError):
                counts.add([np.array([place])] * len(parts), np.array([0]))
            assert not counts.cells.any()


def test_outcomes_of_sides_and_of_levels():
    low, high = np.array([True, False, True, False]), np.array([True, True, False, False])
    assert outcomes_of([RecordOutcomes(low & high, None, (low, high))]).tolist() == [0, 1, 2, 3]
    nested = [RecordOutcomes(low & high), RecordOutcomes(low), RecordOutcomes(low | high)]
    assert outcomes_of(nested).tolist() == [0, 2, 1, 3]
    assert outcomes_of([RecordOutcomes(low)]).tolist() == [0, 1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["sets", "groups", "sides", "levels"])
def test_evaluation_equals_private_one_without_noise(draw_with, by):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([4, 2, 1], 1500)
    y, ward = (p.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1), rng.choice(["a", "b"], 1500)
    targets, quantiles = rng.normal(size=1500), np.tile([-1.0, 1.0], (1500, 1))
    scores, arrays, groups = confide.lac_score(p, y), {"probabilities": p, "labels": y}, None
    if by == "sets":
        released = confide.calibrate(scores, 0.1, 5.0, score="lac", classes=3)
    elif by == "groups":
        released, groups = confide.calibrate(scores, 0.1, 5.0, groups=ward, names=["a", "b"], score="lac"), ward
    elif by == "levels":
        released = confide.calibrate(scores, [0.3, 0.1], 5.0, score="lac")
    else:
        released = confide.calibrate_sides(quantiles, targets, 0.2, 5.0)
        arrays = {"predictions": quantiles, "targets": targets}
    draw_with(noisy_counts=without_noise)
    plain = evaluate_arrays(released, None, arrays, groups)
    private = evaluate_arrays(released, PrivateRequest(epsilon=1.0), arrays, groups)
    for name, exact in plain.findings.items():
        found = private.findings[name]
        assert found.coverage.value == exact.coverage.value
        assert {table.kind for table in found.tables} == {
            "sets": {"class", "size"}, "levels": {"class"}, "groups": {"class", "size", "group"},
            "sides": set() if name else {"end"},
        }[by]  # fmt: skip
        for table in found.tables:
            some = [(part.name, part.covered, part.missed) for part in table if part.n]
            assert some == [(part.name, part.covered, part.missed) for part in exact.table(table.kind)]
