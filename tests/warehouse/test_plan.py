"""Plans: candidates that follow from the request as for a table, a file that is checked, errors."""

import json
from dataclasses import replace

import numpy as np
import pytest

from confide.candidates import Candidates, Spread
from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError
from confide.tables import ClassColumns, ContributionBound, LossColumns, TargetColumns, calibrate_table
from confide.warehouse import CountingPlan
from tests.calibrations import suited
from tests.refused import Refused, refused
from tests.warehouse.requests import CASES, OF_CLASSES, plan_of, records

LAC = ClassColumns("p_*", "y", ("a", "b", "c"))


@pytest.mark.parametrize("case", CASES)
def test_a_plan_survives_its_file(tmp_path, case):
    plan = plan_of(case)
    plan.save(tmp_path / "plan.json")
    read = CountingPlan.load(tmp_path / "plan.json")
    assert read == plan
    assert read.digest == plan.digest
    assert read.to_json() == plan.to_json()


def test_candidates_are_those_of_a_table():
    """Those of the public number; otherwise of the longest list among which a noisy number chooses."""
    assert CountingPlan.of(LAC, 0.1, 0.5).candidates == Candidates.quantiles(Spread("probability"), 7680)
    public = CountingPlan.of(LAC, 0.1, 0.5, neighbors="replace_one", n=300)
    assert public.candidates == suited(None, "lac", 0.1, 0.5, 300, neighbors="replace_one")
    unit = CountingPlan.of(TargetColumns("f", "t"), 0.1, 0.5, unit=25.0)
    assert unit.candidates == Candidates.quantiles(Spread("residual", unit=25.0), 7680)


def test_the_digest_identifies_the_counts():
    """Another level over the same candidates may have the same counts; another column, list or bound may not."""
    fixed = {"candidates": Candidates.unit(50)}
    plan = CountingPlan.of(LAC, 0.1, 1.0, **fixed)
    assert CountingPlan.of(LAC, 0.2, 2.0, **fixed).digest == plan.digest
    others = [
        CountingPlan.of(LAC, 0.1, 1.0, candidates=Candidates.unit(51)),
        CountingPlan.of(ClassColumns("q_*", "y", ("a", "b", "c")), 0.1, 1.0, **fixed),
        CountingPlan.of(ClassColumns("p_*", "y", ("a", "c", "b")), 0.1, 1.0, **fixed),
        CountingPlan.of(ClassColumns("p_*", "y", ("a", "b", "c"), label_positions=True), 0.1, 1.0, **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, skip_incomplete=True, **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, by_class=True, **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, by="g", groups=["x", "y"], **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, by="g", groups=["y", "x"], **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, people=ContributionBound("who", 2, ("visit",)), **fixed),
        CountingPlan.of(LAC, 0.1, 1.0, people=ContributionBound("who", 3, ("visit",)), **fixed),
    ]
    assert len({plan.digest, *(one.digest for one in others)}) == 11


INVALID = [
    Refused(CountingPlan.of, {"what": LAC, "alpha": 0.1, "epsilon": 1.0}, change, argument, kind=InputError)
    for change, argument in (
        ({"what": ClassColumns("p_*", "y", ("a", "b"), "aps_deterministic")}, "score"),
        ({"what": TargetColumns("f", "t", "gamma")}, "score"),
        ({"what": ClassColumns(("p_a", "p_b"), "y", ("a", "b"), logits=True)}, "logits"),
        ({"what": LossColumns("l_*")}, "losses"),
        ({"what": ClassColumns("p", "y", ("a", "b", "c"))}, "probabilities"),
        ({"what": ClassColumns("p_*", "y")}, "classes"),
        ({"neighbors": "replace_one"}, "n"),
        ({"epsilon": ..., "mechanism": "none"}, "n"),
        ({"n": 100}, "n"),
        ({"by_class": True, "neighbors": "replace_one", "n": 100}, "n"),
        ({"alpha": [0.1, 0.2], "by_class": True}, "by"),
        ({"candidates": Candidates.of([0.5])}, "candidates"),
        ({"groups": ["a"]}, "by"),
        ({"people": ContributionBound("who", 3, ("visit",)), "records_per_person": 2}, "records_per_person"),
        ({"what": TargetColumns("f", "t", "cqr")}, "prediction"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"slope": 1}, "options"),
    )
]


@pytest.mark.parametrize("row", INVALID, ids=str)
def test_invalid_requests_raise_an_error(row):
    row.check()


def _signed(**changed):
    from confide.support.shapes import checksum

    content = json.loads(plan_of("classes").to_json()) | changed
    content.pop("sha256")
    content = {key: value for key, value in content.items() if value is not ...}
    return json.dumps({**content, "sha256": checksum(content)})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no counting plan"),
        ("[", "not a JSON object"),
        (plan_of("classes").to_json().replace('"1/10"', '"1/5"'), "damaged or was altered"),
        (_signed(digest="0" * 12), "digest is not that"),
        (_signed(schema=2), "newer confide"),
        (_signed(candidates={"kind": "spread"}), "cannot be used: recipe"),
        (_signed(candidates={"kind": "spread", "of": "probability"}), "digest is not that"),
        (_signed(alpha=["2"]), "cannot be used: alpha must lie"),
        (_signed(alpha=[]), "cannot be used: alpha"),
        (_signed(more=1), "unknown field"),
        (_signed(people=...), "lacks the field 'people'"),
        (_signed(epsilon="much"), "cannot be used"),
        (_signed(candidates={"kind": "of", "size": 3}), "cannot be used: recipe"),
        (_signed(by={"kind": "ward", "column": "g", "names": ["a"]}), "divides records by something unknown"),
        (_signed(columns={"kind": "tables"}), "columns are of an unknown kind"),
    ],
)
def test_files_that_are_not_plans_raise_an_error(text, words):
    with pytest.raises(FormatError):
        CountingPlan.from_json(text)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("classes", {"neighbors": "replace_one", "n": 1200, "delta": 0.1}),
        ("classes", {"mechanism": "none", "epsilon": None, "n": 1200}),
        ("classes", {"alpha": ["0.2", "0.1"], "neighbors": "replace_one", "n": 1200}),
        ("each class", {"neighbors": "replace_one"}),
        ("sides", {}),
    ],
)
def test_a_release_equals_that_of_the_table_except_for_the_draw(case, options):
    """Everything except the draw is equal for a public number and your own list of candidates."""
    what, given, count = CASES[case]
    options = {"alpha": 0.1, "epsilon": 1.0, **given, **options}
    table, plan = records(), CountingPlan.of(what, **options)
    by_counts = plan.calibrate(count(table, plan, what))
    by_table = calibrate_table(table, what, **options)
    assert by_counts.request == by_table.request
    for key, drawn in by_table.parts.items():
        again = replace(by_counts.parts[key], threshold=drawn.threshold, noisy_counts=drawn.noisy_counts)
        assert drawn == again
    if options.get("mechanism") == "none":
        assert by_counts == by_table


def test_another_number_of_records_releases_nothing():
    plan = CountingPlan.of(OF_CLASSES, 0.1, 1.0, neighbors="replace_one", n=100)
    counts = ScoreHistogram.from_scores(np.linspace(0, 1, 99), plan.candidates)
    with refused(InputError, "n") as error:
        plan.calibrate({"lac": counts})
    assert "n=100 was given, and found is another" in str(error.value)
    assert "99" not in str(error.value)
