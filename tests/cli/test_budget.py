"""A year's budget on the command line: planned, written, followed by a ledger and by calibrations."""

import json

import pytest

from confide.candidates import Candidates
from confide.cli.exit_codes import EXISTS, REFUSED, USAGE
from confide.ledger import Ledger, Schedule
from confide.releases import load_release
from tests.calibrations import calibration_at
from tests.files import class_table, write

PLAN = ("budget", "plan", "--releases", 2, "--looks", 52, "--looks-per-person", 1, "--epsilon", 2, "--n", "200,300")
BASIC = ("--rule", "basic", "--dp-delta", 0)
ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", 0.3, "--candidates", "unit:20")


@pytest.fixture
def records(folder):
    return write(folder / "records.parquet", class_table())


@pytest.fixture
def schedule(confide_run, folder):
    assert confide_run(*PLAN, *BASIC, "--out", "schedule.json").code == 0
    return folder / "schedule.json"


def calibrate(confide_run, records, out, *options):
    return confide_run("calibrate", records, *ASK, "--schedule", "schedule.json", "--out", out, *options)


@pytest.mark.slow
def test_a_plan_states_budgets_and_expected_coverage(confide_run, schedule):
    read = Schedule.load(schedule)
    assert [(entry.kind, entry.count, entry.per_person, entry.epsilon) for entry in read.entries] == [
        ("calibration", 2, 2, 0.5),
        ("look", 52, 1, 1.0),
    ]
    said = confide_run(*PLAN, *BASIC).out
    coverage = ", ".join(f"{read.plan(n).expected_coverage:.3f}" for n in (200, 300))
    for line in (
        "2 releases and 52 looks. One person can be in all 2 releases and 1 of 52 looks. Together that is "
        "2-differentially private for this person, by basic composition.\n",
        "basic composition, chosen:\n",
        f"  2 releases  epsilon 0.5 each, permute-and-flip; expected coverage {coverage} with 200, 300 records\n",
        "  52 looks    epsilon 1 each; with 21 records or more, noise adds less than sampling does\n",
    ):
        assert line in said
    output = confide_run(*PLAN, *BASIC, "--json").json
    assert output["schedule"] == json.loads(json.dumps(read.fields))
    assert output["rules"]["basic"][1] == {"kind": "look", "epsilon": 1.0, "records": 21}
    assert confide_run("show", schedule).out.startswith("2 releases and 52 looks. One person can be in")
    assert confide_run("show", schedule, "--json").json["schedule"] == output["schedule"]


@pytest.mark.slow
def test_all_rules_are_compared(confide_run):
    said = confide_run("budget", "plan", "--looks", 52, "--epsilon", 3).out
    assert "zCDP, chosen:" in said or "PLD accounting, chosen:" in said
    assert (
        "basic composition:\n  52 looks  epsilon 0.0576923 each; with 6675 records or more, noise adds less than "
        "sampling does\n" in said
    )
    output = confide_run("budget", "plan", "--looks", 52, "--epsilon", 3, "--rule", "zcdp", "--json").json
    assert output["schedule"]["rule"] == "zcdp"
    assert (
        "(3, 1e-06)-differentially private for this person, by zCDP, also if the schedule is changed on the way"
        in (output["statement"])
    )


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--epsilon", 3), REFUSED, "--releases"),
        (("--epsilon", 3, "--looks", 2, "--rule", "pld", "--dp-delta", 0), REFUSED, "--rule"),
        (("--epsilon", 3, "--looks", 2, "--n", "many"), USAGE, "--n"),
        (("--epsilon", 3, "--looks", 2, "--alpha", "0.1,0.2"), USAGE, "--alpha"),
        (("--looks", 2), USAGE, "--epsilon"),
        (("--epsilon", 3, "--looks", 2, "--looks-per-person", 3), REFUSED, "--looks-per-person"),
    ],
)
def test_refusals(confide_run, options, code, says):
    ran = confide_run("budget", "plan", *options)
    assert ran.refused == (code, says)


@pytest.mark.slow
def test_existing_files_need_force(confide_run, schedule, folder):
    assert confide_run(*PLAN, *BASIC, "--out", "schedule.json").code == EXISTS
    assert confide_run(*PLAN, *BASIC, "--out", "schedule.json", "--force").code == 0
    (folder / "notes.json").write_text("{}")
    ran = confide_run(*PLAN, *BASIC, "--out", "notes.json", "--force")
    assert (ran.code, (folder / "notes.json").read_text()) == (REFUSED, "{}")


@pytest.mark.slow
def test_a_ledger_has_it_followed_and_calibrations_follow_it(confide_run, records, schedule, folder):
    followed = confide_run("ledger", "follow", "budget.db", schedule, "--dataset", "patients")
    assert "limit 2; of its schedule 2 of 2 releases and 52 of 52 looks are left\nOne person can be in" in followed.out
    paid = ("--ledger", "budget.db", "--dataset", "patients")
    assert calibrate(confide_run, records, "one.json", *paid).code == 0
    released = load_release(folder / "one.json")
    assert (released.epsilon, released.mechanism.selector) == (0.5, "permute_and_flip")
    ran = confide_run("calibrate", records, *ASK, "--epsilon", 1, "--out", "two.json", *paid)
    assert ran.refused == (REFUSED, "--dataset")
    assert not (folder / "two.json").exists()
    shown = confide_run("ledger", "show", "budget.db", "patients").out
    assert "of its schedule 1 of 2 releases and 52 of 52 looks are left" in shown
    assert "one person: 0.5-differential privacy: what the schedule says one person can be in, by basic" in shown
    listed = confide_run("ledger", "list", "budget.db", "--json").json["datasets"][0]
    assert listed["schedule"]["left"] == {"calibration": 1, "look": 52}
    again = confide_run("ledger", "follow", "budget.db", schedule, "--dataset", "patients")
    assert again.refused == (REFUSED, "--dataset")
    assert Ledger("budget.db").account("patients").left == {"calibration": 1, "look": 52}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epsilon", 1), "--epsilon"),
        (("--rho", 1), "--rho"),
        (("--selector", "exponential"), "--selector"),
        (("--neighbors", "replace_one"), "--neighbors"),
        (("--records-per-person", 2), "--records-per-person"),
        (
            ("--person", "name", "--max-records-per-person", 2, "--order", "name"),
            "--max-records-per-person",
        ),
    ],
)
def test_options_that_contradict_a_schedule_raise_errors(confide_run, records, schedule, folder, options, says):
    ran = calibrate(confide_run, records, "one.json", *options)
    assert ran.refused == (REFUSED, says)
    assert not (folder / "one.json").exists()


@pytest.mark.slow
def test_records_of_a_person_and_the_relation_are_the_schedules(confide_run, records, folder):
    plan = ("budget", "plan", "--releases", 3, "--epsilon", 3, "--records-per-person", 2, "--neighbors", "replace_one")
    assert confide_run(*plan, *BASIC, "--out", "schedule.json").code == 0
    assert calibrate(confide_run, records, "one.json", "--epsilon", 1).code == 0
    privacy = load_release(folder / "one.json").privacy
    assert (privacy.neighbors, privacy.records_per_person, privacy.epsilon) == ("replace_one", 2, 1.0)
    (folder / "looks.json").write_text(Schedule.load("schedule.json").to_json())
    assert (
        confide_run("budget", "plan", "--looks", 3, "--epsilon", 3, *BASIC, "--out", "looks.json", "--force").code == 0
    )
    ran = confide_run("calibrate", records, *ASK, "--schedule", "looks.json", "--out", "two.json")
    assert ran.refused == (REFUSED, "--schedule")
    (folder / "schedule.json").write_text("{}")
    ran = calibrate(confide_run, records, "two.json")
    assert ran.refused == (REFUSED, "schedule.kind")


def test_looks_follow_a_schedule(confide_run, schedule, folder):
    """The loss of a look, the relation and the planned number of looks. The ledger counts the looks."""
    calibration_at(float(Candidates.unit(10).values[4]), score=None).save("cal.json")
    batch = write(folder / "batch.csv", {"s": [0.1] * 40})
    look = ("watch", "cal.json", batch, "--state", "watch.json", "--score-column", "s", "--schedule", "schedule.json")
    assert confide_run("ledger", "follow", "budget.db", schedule, "--dataset", "patients").code == 0
    paid = ("--ledger", "budget.db", "--dataset", "patients")
    for name in ("one", "two"):
        ran = confide_run(*look, "--look", name, "--batch", 40, *paid, "--json")
        assert ran.code == 0
    assert (ran.json["settings"]["epsilon"], ran.json["settings"]["planned_looks"]) == (1.0, 52)
    account = Ledger("budget.db").account("patients")
    assert (account.left, account.under_schedule.epsilon) == ({"calibration": 2, "look": 50}, 1.0)
    for option, other in (("--epsilon", 0.5), ("--looks", 7)):
        ran = confide_run(*look, "--look", "three", "--batch", 40, option, other)
        assert ran.refused == (REFUSED, option)


@pytest.mark.slow
def test_renewals_follow_a_schedule(confide_run, records, schedule, folder):
    """The loss of the schedule, not of the earlier release. Another relation or selector begins a new chain."""
    again = ("--schedule", "schedule.json", "--probabilities", "p_*", "--label", "name")
    assert confide_run("calibrate", records, *ASK, "--epsilon", 1, "--out", "one.json").code == 0
    assert confide_run("recalibrate", "one.json", records, *again, "--cold", "--out", "two.json").code == 0
    assert load_release(folder / "two.json").epsilon == 0.5
    ran = confide_run("recalibrate", "one.json", records, *again, "--epsilon", 1, "--out", "three.json")
    assert ran.refused == (REFUSED, "--epsilon")
    for option, value in (("--selector", "exponential"), ("--neighbors", "replace_one"), ("--records-per-person", 2)):
        other = ("--epsilon", 1, option, value)
        assert confide_run("calibrate", records, *ASK, *other, "--out", "one.json", "--force").code == 0
        ran = confide_run("recalibrate", "one.json", records, *again, "--out", "three.json")
        assert ran.refused == (REFUSED, "--calibration")
