"""Rows that can be read once, with a public number that is not known in advance: the release is that of the plan."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.tables import ContributionBound, ScoreColumn, TargetColumns, calibrate_table, score_batches
from tests.builders import slow
from tests.draws import always

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # a threshold may lie above all scores

N, PUBLIC = 200, {"neighbors": "replace_one"}
SCORES = np.abs(np.random.default_rng(0).normal(size=N))
WHAT = ScoreColumn("s", "absolute_residual")


def batches(columns):
    """The same rows as a new stream of mappings."""
    return ({name: values[rows] for name, values in columns.items()} for rows in np.array_split(np.arange(N), 4))


@pytest.mark.slow
@pytest.mark.parametrize("source", [batches, *slow([pa.table])])
def test_candidates_fit_the_records_that_count(source):
    """170 of 200 rows are complete; 50 persons have four rows each, two of which count."""
    plan = confide.plan(0.1, 1.0, N, score="absolute_residual", **PUBLIC)
    assert plan.chance_beyond < 0.05  # candidates for 1000 records, the default, would place half of the answers there
    for options in ({}, {"n": N}):
        released = calibrate_table(source({"s": SCORES}), WHAT, 0.1, 1.0, **PUBLIC, **options)
        assert (released.mechanism, released.recipe) == (plan.mechanism, plan.candidates.recipe)
    gaps = np.where(np.arange(N) < 30, np.nan, SCORES)
    released = calibrate_table(source({"s": gaps}), WHAT, 0.1, 1.0, skip_incomplete=True, **PUBLIC)
    assert released.mechanism == confide.plan(0.1, 1.0, 170, score="absolute_residual", **PUBLIC).mechanism
    owned = {"s": SCORES, "who": np.arange(N) % 50, "at": np.arange(N)}
    released = calibrate_table(source(owned), WHAT, 0.1, 4.0, people=ContributionBound("who", 2, ("at",)), **PUBLIC)
    planned = confide.plan(0.1, 4.0, 100, score="absolute_residual", records_per_person=2, **PUBLIC)
    assert released.mechanism == planned.mechanism


@pytest.mark.slow
def test_levels_and_sides_fit_the_actual_number():
    several = calibrate_table(batches({"s": SCORES}), WHAT, [0.2, 0.1], 2.0, **PUBLIC)
    at_once = confide.calibrate(SCORES, [0.2, 0.1], 2.0, score="absolute_residual", **PUBLIC)
    assert [part.mechanism for part in several.parts.values()] == [part.mechanism for part in at_once.parts.values()]
    quantiles = np.column_stack([SCORES - 1, SCORES + 1])
    low, high, y = *quantiles.T, SCORES[::-1]
    sides = calibrate_table(
        batches({"low": low, "high": high, "y": y}),
        TargetColumns(("low", "high"), "y", "cqr_sides"),
        0.2,
        2.0,
        **PUBLIC,
    )
    at_once = confide.calibrate_sides(quantiles, y, 0.2, 2.0, **PUBLIC)
    assert [one.recipe for one in sides.by_name.values()] == [one.recipe for one in at_once.by_name.values()]


@pytest.mark.parametrize("options", [{}, {"unit": 2.0}, {"candidates": confide.Candidates.around(2.0)}], ids=str)
def test_a_loader_is_calibrated_as_planned(options):
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    from confide import torch as front

    f, y = torch.zeros(N), torch.as_tensor(SCORES)
    loader = list(zip(f.split(60), y.split(60), strict=True))
    identity = torch.nn.Identity()
    request = {"score": "absolute_residual", **PUBLIC, **options}
    released = front.calibrate(identity, iter(loader), 0.1, 1.0, progress=False, **request)
    plan = confide.plan(0.1, 1.0, N, **request)
    assert released.mechanism == plan.mechanism
    assert released.recipe == plan.candidates.recipe


@pytest.mark.slow
def test_candidates_of_a_secret_number_ignore_the_rows(draw_with):
    """Under `add_remove` candidates depend on the noisy number only, because they must not reveal that of the rows."""
    draw_with(noisy_number=always(1000))
    plan = confide.plan(0.1, 1.0, 1000, score="absolute_residual")
    for scores in (SCORES, SCORES[:50]):
        rows = ({"s": part} for part in np.array_split(scores, 2))
        released = calibrate_table(rows, WHAT, 0.1, 1.0)
        assert released.recipe == plan.candidates.recipe
        assert released.mechanism == plan.mechanism


def test_counts_over_the_candidates_of_a_plan():
    """For array batches, which are counted before a request is made."""
    plan = confide.plan(0.1, 1.0, N, score="absolute_residual", **PUBLIC)
    counts = score_batches(np.array_split(SCORES, 4), score="absolute_residual", candidates=plan.candidates)
    released = confide.calibrate_histogram(counts, 0.1, 1.0, score="absolute_residual", **PUBLIC)
    assert released.mechanism == plan.mechanism
