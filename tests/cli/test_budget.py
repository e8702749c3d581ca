"""A year's budget on the command line: the epsilons of its releases, by each rule."""

import pytest

from confide.core import budget_plan

PLAN = ("budget", "plan", "--releases", 2, "--looks", 52, "--looks-per-person", 1, "--epsilon", 2, "--n", "200,300")
BASIC = ("--rule", "basic", "--dp-delta", 0)


@pytest.mark.slow
def test_a_plan_states_budgets_and_expected_coverage(confide_run):
    year = budget_plan(2.0, releases=2, looks=52, looks_per_person=1, dp_delta=0)
    coverage = ", ".join(f"{year.plan(n).expected_coverage:.3f}" for n in (200, 300))
    said = confide_run(*PLAN, *BASIC).out
    for line in (
        "2 releases and 52 looks. One person can be in all 2 releases and 1 of 52 looks. Together that is "
        "2-differentially private for this person, by basic composition.\n",
        "basic composition, chosen:\n",
        f"  2 releases  epsilon 0.5 each; expected coverage {coverage} with 200, 300 records\n",
        "  52 looks    epsilon 1 each; with 21 records or more, noise adds less than sampling does\n",
    ):
        assert line in said
    output = confide_run(*PLAN, *BASIC, "--json").json
    assert [(one["kind"], one["count"], one["per_person"], one["epsilon"]) for one in output["plan"]["entries"]] == [
        ("calibration", 2, 2, 0.5),
        ("look", 52, 1, 1.0),
    ]
    assert output["rules"]["basic"][1] == {"kind": "look", "epsilon": 1.0, "records": 21}
