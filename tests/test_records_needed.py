"""The number of records needed is the same in Python, the command line, plans, pages, predictions and groups."""

import math
import re
import warnings

import numpy as np
import pytest

import confide
from confide.core import records_needed, typical_of_groups
from tests.calibrations import changed
from tests.docs.blocks import ROOT
from tests.draws import drawing_with, last

SCORES = np.linspace(0.01, 1.0, 500)
SECRET, RESIDUALS = 162, 208
CASES = {
    "a secret number": ({}, SECRET),
    "residuals": ({"score": "absolute_residual"}, RESIDUALS),
    "a public number": ({"neighbors": "replace_one"}, None),
    "rho": ({"epsilon": None, "rho": 0.1}, None),
    "delta": ({"delta": 0.1, "neighbors": "replace_one"}, None),
    "a loss that is rounded": ({"epsilon": 1 / 3, "neighbors": "replace_one", "records_per_person": 3}, None),
    "own candidates": ({"candidates": confide.Candidates.of(SCORES[::50]), "neighbors": "replace_one"}, None),
    "a number of candidates": ({"candidates": 30}, None),
}


@pytest.mark.long
def test_the_readme_states_what_plans_say():
    """The table that it links, and the numbers in its text."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = (ROOT / "docs/choose-epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) %, ([\d.]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", table, flags=re.MULTILINE)
    assert len(rows) == 6
    for coverage, epsilon, *stated in rows:
        needed = [
            confide.plan((100 - int(coverage)) / 100, float(epsilon), score=score, neighbors=neighbors).records_needed
            for score in ("lac", "absolute_residual")
            for neighbors in ("add_remove", "replace_one")
        ]
        assert needed == [int(number) for number in stated], (coverage, epsilon)
    assert f"{confide.plan(alpha=0.1, epsilon=1.0, n=1000).expected_coverage:.4f} instead of 0.9" in readme
    assert f"At 90 % and epsilon 1: {SECRET} for classes, {RESIDUALS} for regression" in readme
    assert f"in more than {100 * math.e / (1 + math.e):.0f} %" in " ".join(readme.split())


def _made(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return confide.calibrate(SCORES, 0.1, **{"epsilon": 1.0, "score": "lac", **options})


def _numbers(text):
    return [int(found.replace(",", "")) for found in re.findall(r"[Aa]bout ([\d,]+)(?:;| calibration records)", text)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_python_plans_warnings_and_pages_agree(name):
    options, known = CASES[name]
    made = _made(**options)
    plan = confide.plan(0.1, n=500, **{"epsilon": 1.0, "score": "lac", **options})
    needed = plan.records_needed
    assert known in (None, needed)
    assert records_needed(made) == needed
    assert records_needed(confide.Release.from_json(made.to_json())) == needed
    assert _numbers(str(made)) in ([needed], [] if made.n is not None and plan.enough_records else None)
    infinite = changed(made, threshold=math.inf)
    (note,) = confide.core.remarks(infinite)
    assert f"about {needed} " in note
    task = confide.predict_interval if made.score == "absolute_residual" else confide.predict_set
    with pytest.warns(confide.CoverageWarning, match=re.escape(note)):
        task([1.0] if made.score == "absolute_residual" else [[0.5, 0.5]], infinite)


@pytest.mark.slow
def test_groups_and_levels_say_the_number_of_their_plans():
    """Fifteen records in each of twelve groups: the warning agrees with the plan for such groups."""
    groups = np.repeat(np.arange(12), 15)
    with drawing_with(select=last):
        with pytest.warns(confide.CoverageWarning, match="12 groups") as caught:
            made = confide.calibrate(SCORES[:180], 0.1, 1.0, groups=groups, names=range(12), score="lac")
        needed = confide.plan(0.1, 1.0).records_needed
        assert needed > 90
        assert {number for one in caught for number in _numbers(str(one.message))} <= {needed}
        assert f"records needed: about {needed} in each group; with fewer" in str(made)
    levels = confide.calibrate(
        SCORES, [0.5, 0.2], 4.0, score="lac"
    )  # what the number means: tests/core/test_several.py
    assert f"records needed: about {confide.core.records_needed(levels)} for all of them; with fewer" in str(levels)


@pytest.mark.slow
def test_a_plan_for_too_few_records_says_so_first():
    plan = confide.plan(0.1, 1.0, 100)
    assert not plan.enough_records
    assert str(plan).startswith("NOT ENOUGH RECORDS: with 100 ")
    assert f"NOT ENOUGH RECORDS (about {SECRET} are needed)" in repr(plan)
    assert confide.plan(0.1, 1.0, 1000).remarks == ()


ASKED = {
    "share": ({"alpha": 0.9}, "alpha=0.9 is the share of new records that may be missed: coverage of only 0.1"),
    "delta": ({"delta": 1e-5}, "It is not the delta of differential privacy, which is 0 here"),
}


@pytest.mark.long(unless="delta")
@pytest.mark.parametrize("name", ASKED)
def test_probable_mistakes_are_reported(name):
    options, said = ASKED[name]
    asked = {"alpha": 0.1, "epsilon": 12.0, **options}
    with pytest.warns(confide.CoverageWarning, match=re.escape(said)) as caught:
        confide.calibrate(SCORES, score="lac", **asked)
    assert sum(said in str(one.message) for one in caught) == 1
    assert [one.filename for one in caught if said in str(one.message)] == [__file__]
    assert said in str(confide.plan(**asked))
    assert said in " ".join(confide.plan(**asked).remarks)


def test_a_guess_for_groups_is_no_smaller_than_150():
    sizes = ((1, 1), (4, 1), (12, 1), (1000, 1), (12, 700))
    assert [typical_of_groups(*given) for given in sizes] == [1000, 250, 150, 150, 700]
