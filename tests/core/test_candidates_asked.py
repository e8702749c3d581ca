"""All entry points accept the same candidates: a list, a spread, their number, or None."""

import numpy as np
import pytest

import confide
import confide.tables
from confide import federated
from confide.cli.request import NAMES, read_arguments
from confide.core import candidates_of
from confide.scores import score_kind
from tests.calibrations import suited
from tests.refused import refused

SCORES = np.linspace(0, 1, 400)
PUBLIC = {"neighbors": "replace_one"}
EVEN = confide.Candidates.unit(20)


def fronts(candidates):
    """The recipe of each entry point's release or plan, for scores in [0, 1]."""
    own = {"candidates": candidates, **PUBLIC}
    lac = {"score": "lac", **own}
    half = np.arange(400) % 2
    truth = np.random.default_rng(0).random((400, 2)) < 0.5
    p = np.repeat(SCORES[:, None], 2, axis=1)
    levels = confide.calibrate(SCORES, [0.3, 0.2], 4.0, **lac)
    groups = confide.calibrate(SCORES, 0.2, 4.0, groups=half, names=[0, 1], candidates=candidates, score="lac")
    released = confide.calibrate(SCORES, 0.2, 2.0, **lac)
    yield "plan", confide.plan(0.2, 2.0, 400, **lac).candidates.recipe
    yield "calibrate", released.recipe
    yield "levels", levels[0.2].recipe
    yield "groups", groups[0].recipe
    yield "losses", confide.calibrate_false_negatives(p, truth, 0.2, 2.0, **own).recipe
    images = [(one.reshape(2, 1), true.reshape(2, 1)) for one, true in zip(p, truth, strict=True)]
    yield "masks", confide.calibrate_masks(images, 0.2, 2.0, **own).recipe
    yield "renewal", confide.recalibrate(released, SCORES, candidates=candidates).recipe
    table = {"s": SCORES}
    what = confide.tables.ScoreColumn("s", "lac")
    yield "tables", confide.tables.calibrate_table(_arrow(table), what, 0.2, 2.0, **own).recipe


def _arrow(columns):
    import pyarrow

    return pyarrow.table(columns)


@pytest.mark.parametrize("candidates", [EVEN, 20, np.int64(20)], ids=["list", "number", "numpy's number"])
def test_a_number_gives_equally_spaced_candidates(candidates):
    found = dict(fronts(candidates))
    assert {name: dict(recipe) for name, recipe in found.items()} == {name: dict(EVEN.recipe) for name in found}


def test_a_number_gives_default_candidates_of_other_scores():
    for score, kind in (
        ("absolute_residual", "residual"),
        ("aps_deterministic", "mass"),
        ("cqr", "signed"),
        (None, "any"),
    ):
        planned = score_kind(score).choose_candidates(50)
        assert planned.recipe["of"] == kind
        assert planned.size <= 60
        assert suited(50, score, 0.1, 1.0) == planned
    assert confide.plan(0.1, 1.0, score="gamma", candidates=50, unit=2.0).candidates.recipe["unit"] == 2.0
    released = confide.calibrate(SCORES, 0.2, 2.0, score="gamma", candidates=50, unit=2.0, **PUBLIC)
    assert candidates_of(released) == score_kind("gamma").choose_candidates(50, 2.0)
    assert score_kind("aps_deterministic").choose_candidates(1) == confide.Candidates.unit(1)


def test_a_federation_and_the_command_line_accept_a_number():
    silos = [federated.SiloKeys.generate(name).public(size=300) for name in ("a", "b")]
    assert federated.plan(silos, 0.2, 2.0, score="lac", candidates=20, method="private-qq").candidates == EVEN
    assert read_arguments("calibrate", NAMES, {}, ["candidates=20"]) == {"candidates": 20}


@pytest.mark.parametrize("wrong", [True, 0.5, [0.5], "20", (1, 2)], ids=repr)
def test_other_candidates_raise(wrong):
    silos = [federated.SiloKeys.generate("a").public(size=300)]
    calls = (
        lambda: confide.plan(0.1, 1.0, candidates=wrong),
        lambda: confide.calibrate(SCORES, 0.1, 1.0, candidates=wrong),
        lambda: federated.plan(silos, 0.1, 1.0, candidates=wrong, method="private-qq"),
        lambda: confide.calibrate(SCORES, [0.2], 1.0, candidates=wrong),
    )
    for call in calls:
        with refused(confide.InputTypeError, "candidates"):
            call()
    for number in (0, -1, 10**9):
        with refused(confide.InputError, "candidates"):
            confide.calibrate(SCORES, 0.1, 1.0, candidates=number)
    with refused(confide.InputTypeError, "candidates"):
        confide.calibrate_losses(np.zeros((5, 4)), 5, 0.1, 1.0, loss="mine")
