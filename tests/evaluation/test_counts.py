"""The one counter: what it counts is what a loop over the records counts, in any batches, and noise is all that a
private evaluation adds."""

from collections import Counter, defaultdict

import numpy as np
import pytest

import confide
from confide.evaluation import PrivateRequest, TooManyGroupsError, evaluate_arrays
from confide.evaluation.counts import Counts, NamedCounts, RecordOutcomes, outcomes_of
from tests.draws import without_noise
from tests.refused import refused

BATCHES = [slice(0, 1), slice(1, 1), slice(1, 260), slice(260, 400)]


def records(seed, parts, outcomes):
    """The part of each of 400 records in each division, its outcome, and what is measured of it."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, 400) for size in parts], rng.integers(0, outcomes, 400), rng.integers(0, 9, 400)


@pytest.mark.parametrize("parts", [(), (1,), (5,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("outcomes", [2, 4])
def test_cells_equal_loop_over_records(parts, outcomes):
    places, outcome, measured = records(len(parts), parts, outcomes)
    counts = Counts(parts, outcomes)
    for batch in BATCHES:
        counts.add([place[batch] for place in places], outcome[batch], measured[batch])
    cells, sums = Counter(), defaultdict(int)
    for *place, one, size in zip(*places, outcome, measured, strict=True):
        cells[*place, one] += 1
        sums[tuple(place)] += size
    assert counts.cells.shape == (*parts, outcomes)
    assert {at: int(counts.cells[at]) for at in np.ndindex(counts.cells.shape)} == {
        at: cells[at] for at in np.ndindex(counts.cells.shape)
    }
    assert {at: float(counts.measured[at]) for at in np.ndindex(parts)} == {at: sums[at] for at in np.ndindex(parts)}
    assert counts.n.sum() == 400
    assert np.array_equal(counts.with_outcomes([0, 1]), counts.cells[..., 0] + counts.cells[..., 1])


def test_groups_are_parts_in_order_of_occurrence():
    (place,), outcome, measured = records(7, (6,), 2)
    names = np.array(["e", "c", "a", "f", "b", "d"])[place]
    counts = NamedCounts()
    for batch in BATCHES:
        counts.add_groups(names[batch], outcome[batch], measured[batch])
    for name, row in zip(counts.names, counts.rows(), strict=True):
        own = names == name
        assert row == (own.sum(), (own & (outcome == 0)).sum(), measured[own].sum())
    assert sorted(counts.names) == list("abcdef")
    with refused(TooManyGroupsError, "groups"):
        counts.add_groups(range(995), np.zeros(995, int))


def test_invalid_part_raises():
    for place in (-1, 2):
        for parts in ((2,), (2, 2)):
            counts = Counts(parts)
            with pytest.raises(ValueError):
                counts.add([np.array([place])] * len(parts), np.array([0]))
            assert not counts.cells.any()


def test_outcomes_of_sides_and_of_levels():
    low, high = np.array([True, False, True, False]), np.array([True, True, False, False])
    assert outcomes_of([RecordOutcomes(low & high, None, (low, high))]).tolist() == [0, 1, 2, 3]
    assert outcomes_of([RecordOutcomes(low & high), RecordOutcomes(low), RecordOutcomes(low | high)]).tolist() == [
        0,
        2,
        1,
        3,
    ]
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
    if by == "sides":
        ends = [(found.coverage.covered, found.coverage.missed) for found in private.findings.values()][1:]
        assert ends == [(part.covered, part.n - part.covered) for part in plain.groups]
        assert private.coverage.value == plain.coverage.value
        return
    pairs = [(plain, private.finding)] if by != "levels" else [(plain[one], private[one]) for one in (0.3, 0.1)]
    for exact, found in pairs:
        assert found.coverage.value == exact.coverage.value
        shown = {"class": exact.classes, "size": exact.sizes, "group": exact.groups}
        assert set(found.parts) == {"sets": {"class", "size"}, "levels": {"class"}, "groups": set(shown)}[by]
        for kind, parts in found.parts.items():
            some = [(part.name, part.covered, part.missed) for part in parts if part.covered + part.missed]
            assert some == [(part.name, part.covered, part.n - part.covered) for part in shown[kind]]
