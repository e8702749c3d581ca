"""A warehouse counts once, over few lists of candidates; a noisy number of records then chooses one of them."""

from collections import Counter
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.candidates import Candidates
from confide.cli import main
from confide.core import release as release_of
from confide.core.sources import Scores
from confide.errors import EarlierReleaseWarning
from confide.tables import ContributionBound, ScoreColumn, TargetColumns, calibrate_table
from confide.warehouse import CountingPlan, counting_query, read_counts
from tests.draws import always, recording
from tests.warehouse.requests import OF_CLASSES, records

pytestmark = pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning")  # +inf is possible, if improbable

SCORES = np.random.default_rng(5).random(2000)
LAC = ScoreColumn("s", "lac")


def counts_of_query(plan, table, folder):
    """The counts in the file that the query returned."""
    with duckdb.connect() as database:
        database.register("records", table)
        database.sql(counting_query(plan, "duckdb", "records")).write_csv(str(folder / "counts.csv"))
    return read_counts(folder / "counts.csv", plan)


@pytest.mark.slow
@pytest.mark.parametrize("counted", [-50, 300, 1010, 40_000, 10**9])
def test_release_equals_that_of_arrays_whose_design_chooses_among_the_same_lists(draw_with, tmp_path, counted):
    """Given the noisy number, the candidates have the same utilities, so that the threshold has the same law."""
    drawn = []
    draw_with(noisy_number=recording(drawn, always(counted)), select=recording(drawn, always(5)))
    plan = CountingPlan.of(LAC, 0.1, 1.0)
    by_counts = plan.calibrate(counts_of_query(plan, pa.table({"s": SCORES}), tmp_path))
    by_arrays = release_of(Scores({None: SCORES}), plan.request)
    assert by_counts == by_arrays
    half = len(drawn) // 2  # without a second draw where the answer is +inf
    assert drawn[:half] == drawn[half:]
    assert drawn[0] == (2000, 5.0)
    assert by_counts.size.counted == counted


@pytest.mark.slow
@pytest.mark.usefixtures("noisy_number")
def test_release_draws_its_number(tmp_path):
    """It fails by chance in 5e-9, the noise exceeds 20 scales, and in 1e-7, seven numbers are without noise."""
    plan = CountingPlan.of(LAC, 0.1, 1.0)
    counts = counts_of_query(plan, pa.table({"s": SCORES}), tmp_path)
    found = [plan.calibrate(counts) for _ in range(7)]
    assert all(abs(one.size.counted - 2000) <= 100 for one in found)
    assert Counter(one.size.counted for one in found)[2000] < 7
    assert all(one.privacy.epsilon == 1.0 and one.coverage == 0.9 for one in found)


REQUESTS = {
    "classes": (OF_CLASSES, {}),
    "own list": (OF_CLASSES, {"candidates": Candidates.unit(60)}),
    "around a guess": (OF_CLASSES, {"candidates": Candidates.around(0.4)}),
    "levels": (OF_CLASSES, {"alpha": ["0.2", "0.1"]}),
    "each class": (OF_CLASSES, {"by_class": True}),
    "each group": (OF_CLASSES, {"by": "ward", "groups": ["s", "7", "n"], "skip_incomplete": True}),
    "sides": (TargetColumns(("f", "g"), "t", "cqr_sides"), {}),
    "residuals of people": (
        TargetColumns("f", "t"),
        {"unit": 2.0, "people": ContributionBound("who", 2, ("visit",)), "delta": 0.1},
    ),
    "zcdp": (TargetColumns(("f", "g"), "t"), {"epsilon": None, "rho": 0.3}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "first"), list(product(REQUESTS, ["counts", "table"])))
def test_ledger_recognises_the_request_of_the_table(draw_with, tmp_path, case, first):
    """The text is the same although the design for 40,000 records has a longer list for a table."""
    draw_with(noisy_number=always(40_000))
    what, options = REQUESTS[case]
    options = {"alpha": 0.1, "epsilon": 1.0, **options}
    account = {"ledger": confide.Ledger(tmp_path / "budget.db"), "dataset": "clinic"}
    if {"by", "by_class"} & options.keys():
        account["partition"] = "parts"
    table, plan = records(), CountingPlan.of(what, **options)
    counts = counts_of_query(plan, table, tmp_path)
    calls = [lambda: plan.calibrate(counts, **account), lambda: calibrate_table(table, what, **options, **account)]
    if first == "table":
        calls.reverse()
    released = calls[0]()
    spent = account["ledger"].account("clinic").spent()
    with pytest.warns(EarlierReleaseWarning):
        again = calls[1]()
    assert account["ledger"].account("clinic").spent() == spent
    assert again.to_json() == released.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("case", REQUESTS)
def test_release_is_verified_shown_and_renewed(draw_with, tmp_path, capsys, case):
    draw_with(noisy_number=always(40_000))
    what, options = REQUESTS[case]
    plan = CountingPlan.of(what, **{"alpha": 0.1, "epsilon": 1.0, **options})
    released = plan.calibrate(counts_of_query(plan, records(), tmp_path))
    (tmp_path / "released.json").write_text(released.to_json())
    assert all(part.size.design_for == 40_000 for part in released.parts.values())
    assert main(["verify", str(tmp_path / "released.json")]) == 0
    assert main(["show", str(tmp_path / "released.json")]) == 0
    shown = capsys.readouterr().out
    if released.by is None:
        assert "a noisy number" in shown
        renewed = confide.recalibrate(released, SCORES)
        assert renewed.renews == released.checksum


@pytest.mark.parametrize(
    "options",
    [
        {"neighbors": "replace_one", "n": 1000},
        {"mechanism": "pps", "n_min": 200},
    ],
)
def test_plans_without_a_noisy_number_survive_their_file(options):
    plan = CountingPlan.of(LAC, **{"alpha": 0.1, "epsilon": 1.0, **options})
    assert CountingPlan.from_json(plan.to_json()) == plan
