"""Ledgers with schedules: rejected charges, the total loss of one person, a delta that is spent once."""

import itertools
import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest

import confide
from confide.errors import BudgetError, InputError, InputTypeError
from confide.ledger import (
    Charge,
    Cost,
    Dataset,
    Group,
    Ledger,
    Limit,
    PlannedReleases,
    Schedule,
    budget_plan,
    request_digest,
)
from confide.ledger.limit import epoch_of
from confide.mechanisms.slopes import slopes_for
from confide.selection import zcdp_of_range
from tests.exact import added, divergence, histograms, mechanism_law
from tests.refused import refused

accounting = pytest.mark.skipif(find_spec("dp_accounting") is None, reason="needs the extra 'accounting'")
ADD = "add_remove"
NAMES = {"calibration": "slopes", "evaluation": "evaluation by noise", "look": "look by noise"}
YEAR = Schedule(
    3.0,
    0.0,
    "basic",
    (PlannedReleases("calibration", 4, 4, 0.5, "permute_and_flip"), PlannedReleases("look", 10, 1, 1.0)),
)
numbers = itertools.count()


def cost(kind, epsilon, group=None, rho=None):
    return Cost(epsilon, ADD, NAMES[kind], rho, None if group is None else Group(*group))


def charges(*costs):
    return [Charge(Dataset("patients", one.group), one, request_digest({"k": next(numbers)})) for one in costs]


def charge(ledger, *costs):
    return ledger.charge_all(charges(*costs))


def zcdp(releases=4, looks=10, looks_per_person=1, **more):
    return budget_plan(3.0, releases=releases, looks=looks, looks_per_person=looks_per_person, rule="zcdp", **more)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def test_charges_follow_kind_number_and_cost_of_the_schedule(ledger):
    account = ledger.follow("patients", YEAR)
    assert (account.schedule, account.limit, account.left) == (YEAR, Limit(3.0), {"calibration": 4, "look": 10})
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("evaluation", 0.1))
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("calibration", 0.50001))
    for _ in range(4):
        charge(ledger, cost("calibration", 0.5))
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("calibration", 0.001))
    charge(ledger, cost("calibration", 0.0))  # an answer that needed no data costs nothing and takes no place
    charge(ledger, cost("look", 1.0))
    charge(ledger, cost("look", 0.2))
    assert ledger.account("patients").left == {"calibration": 0, "look": 8}


def test_looks_at_other_people_cost_once(ledger):
    """One person is in one look: ten looks cost as much as the most expensive one, within the limit."""
    ledger.follow("patients", YEAR)
    for epsilon in [1.0] * 9 + [0.5]:
        charge(ledger, cost("look", epsilon))
    account = ledger.account("patients")
    assert account.spent().epsilon == 9.5
    assert (account.under_schedule.epsilon, account.under_schedule.rule) == (1.0, "basic")
    for _ in range(4):
        charge(ledger, cost("calibration", 0.5))
    assert ledger.account("patients").under_schedule.epsilon == 3.0
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("look", 0.5))


def test_cells_of_a_partition_count_for_each_person(ledger):
    """Charges about different cells count as one for each person."""
    ledger.follow("patients", YEAR)
    for week in range(12):
        charge(ledger, cost("look", 1.0, ("week", str(week))))
    for group in (("ward", "north"), ("ward", "south")):
        charge(ledger, *[cost("calibration", 0.5, group)])
    assert ledger.account("patients").left == {"calibration": 3, "look": 9}
    charge(ledger, *[cost("calibration", 0.5, ("ward", cell)) for cell in ("north", "south")])
    assert ledger.account("patients").left["calibration"] == 2
    assert ledger.account("patients").under_schedule.epsilon == 2.0


def test_what_is_released_together_is_one(ledger):
    """The levels of one calibration share its cost."""
    ledger.follow("patients", YEAR)
    charge(ledger, cost("calibration", 0.25), cost("calibration", 0.25))
    assert ledger.account("patients").left["calibration"] == 3
    assert [entry.joined for entry in ledger.account("patients").entries] == [False, True]
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("calibration", 0.3), cost("calibration", 0.3))
    charge(ledger, cost("calibration", 0.25), cost("look", 1.0), cost("calibration", 0.25))
    assert ledger.account("patients").left == {"calibration": 2, "look": 9}


def test_a_schedule_by_zcdp_bounds_the_concentrated_loss(ledger):
    schedule = zcdp()
    each = schedule.entry_for("calibration").epsilon
    ledger.follow("patients", schedule)
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("calibration", each))  # by permute-and-flip it would cost four times as much
    for _ in range(4):
        charge(ledger, cost("calibration", each, rho=zcdp_of_range(each)))
    for _ in range(10):
        charge(ledger, cost("look", schedule.entry_for("look").epsilon))
    bound = ledger.account("patients").under_schedule
    assert bound.adaptive
    assert 2.99 < bound.epsilon <= 3.0


@pytest.mark.slow
@accounting
def test_a_schedule_by_pld_counts_whole_from_its_first_charge(ledger, monkeypatch):
    schedule = budget_plan(3.0, releases=20, looks=20, rule="pld")
    release, look = (entry.epsilon for entry in schedule.entries)
    assert 20 * (release + look) > 3.3  # which a sum would not allow
    ledger.follow("patients", schedule)
    assert ledger.account("patients").under_schedule.epsilon == 0
    charge(ledger, cost("look", look / 2))
    assert ledger.account("patients").under_schedule.epsilon == 3.0
    for _ in range(20):
        charge(ledger, cost("calibration", release))
    for _ in range(19):
        charge(ledger, cost("look", look))
    for kind in ("calibration", "look"):
        with refused(BudgetError, "dataset"):
            charge(ledger, cost(kind, 1e-3))
    monkeypatch.setattr(sys.modules[Schedule.__module__], "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    shown = ledger.account("patients").schedule.statement  # also where dp-accounting is not installed
    assert "by PLD accounting, since the schedule is fixed in advance" in shown
    ledger.set_limit("patients", (2.9, 1e-6))
    assert not ledger.account("patients").allows(cost("look", 1e-3))


def test_what_was_spent_before_counts(ledger):
    """By its sum, or by zCDP under a zCDP schedule; an own limit is kept."""
    charge(ledger, cost("calibration", 1.0))
    with refused(BudgetError, "dataset"):
        ledger.follow("patients", YEAR)
    assert ledger.account("patients").schedule is None
    ledger.set_limit("patients", 4.0)
    assert ledger.follow("patients", YEAR).limit == Limit(4.0)
    assert ledger.account("patients").left["calibration"] == 4  # earlier charges take no place
    ledger.set_limit("others", (3.4, 1e-6))
    ledger.charge("others", Cost(0.2, ADD, "slopes"), "0" * 64)
    ledger.follow("others", zcdp(12))  # 3 + 0.2 by sums, and less by zCDP
    ledger.set_limit("third", (3.0, 1e-6))
    ledger.charge("third", Cost(0.2, ADD, "slopes"), "0" * 64)
    with refused(BudgetError, "dataset"):
        ledger.follow("third", zcdp(12))


def test_a_schedule_is_replaced_by_one_that_keeps_what_is_left(ledger):
    """Charges under the first schedule stay spent, with its numbers per person."""
    ledger.follow("patients", YEAR)
    for _ in range(5):
        charge(ledger, cost("look", 1.0))
    with refused(BudgetError, "dataset"):
        ledger.follow("patients", YEAR)
    rest = budget_plan(2.0, releases=8, dp_delta=0)
    account = ledger.follow("patients", rest)
    assert (account.limit, account.left) == (Limit(3.0), {"calibration": 8})
    with refused(BudgetError, "dataset"):
        charge(ledger, cost("look", 0.1))
    for _ in range(8):
        charge(ledger, cost("calibration", 0.25))
    assert ledger.account("patients").under_schedule.epsilon == 3.0
    with refused(BudgetError, "dataset"):
        ledger.follow("patients", budget_plan(0.1, looks=1, dp_delta=0))


@pytest.mark.slow
@accounting
def test_a_delta_is_spent_once(ledger):
    """After charges that may have spent it: zCDP after zCDP, and basic composition after everything."""
    pld = budget_plan(1.0, looks=100, rule="pld")
    basic, concentrated = budget_plan(0.5, looks=2, dp_delta=0), zcdp(1, 2)
    for first, follows in ((pld, [basic]), (concentrated, [basic, concentrated]), (basic, [pld, concentrated, basic])):
        for second in (pld, concentrated, basic):
            name = f"{first.rule} {second.rule}"
            ledger.set_limit(name, (9.0, 1e-6))
            ledger.follow(name, first)
            ledger.follow(name, second)  # nothing was charged yet: nothing was spent
            ledger.follow(name, first)
            ledger.charge(name, Cost(1e-3, ADD, NAMES["look"]), request_digest({"of": name}))
            if second in follows:
                assert ledger.follow(name, second).schedule == second
            else:
                with refused(BudgetError, "dataset"):
                    ledger.follow(name, second)
    for name, limit in (("with", (9.0, 1e-6)), ("without", 1.5)):
        ledger.set_limit(name, limit)
        ledger.charge(name, Cost(1e-3, ADD, NAMES["look"]), request_digest({"of": name}))
    with refused(BudgetError, "dataset"):
        ledger.follow("with", pld)
    with refused(BudgetError, "dataset"):
        ledger.follow("without", pld)  # a limit without delta


def test_after_pld_nothing_but_sums(ledger):
    """A basic schedule after one by PLD: the limit's delta allows nothing more."""
    first = Schedule(2.0, 1e-6, "pld", (PlannedReleases("look", 4, 4, 0.5),))
    last = Schedule(1.5, 0.0, "basic", (PlannedReleases("look", 4, 4, 0.375),))
    epochs = [epoch_of(first, [(cost("look", 0.5), False)] * 3), epoch_of(last, [(cost("look", 0.375), False)] * 4)]
    fits = sys.modules["confide.ledger.limit"].fits
    assert fits(Limit(3.0, 1e-6), epochs)
    assert not fits(Limit(2.999, 1e-2), epochs)


def test_refusals(ledger, tmp_path):
    with refused(InputTypeError, "schedule"):
        ledger.follow("patients", {})
    greedy = Schedule(1.0, 0.0, "basic", (PlannedReleases("look", 2, 2, 0.6),))
    with refused(InputError, "entries"):
        ledger.follow("patients", greedy)
    ledger.set_limit("hospitals", 9.0, neighbors="replace_one")
    with refused(BudgetError, "dataset"):
        ledger.follow("hospitals", YEAR)
    ledger.charge("bare", Cost(math.inf, ADD, "none"), "0" * 64)
    with refused(BudgetError, "dataset"):
        ledger.follow("bare", YEAR)
    ledger.follow("patients", YEAR)
    with refused(BudgetError, "dataset"):
        ledger.charge("patients", Cost(math.inf, ADD, "none"), "0" * 64)
    assert "patients" in Ledger(ledger.path, create=False).accounts()


def test_the_schema_rises_with_a_schedule_and_with_nothing_else(ledger):
    def schema():
        with closing(sqlite3.connect(ledger.path)) as connection:
            return connection.execute("PRAGMA user_version").fetchone()[0]

    charge(ledger, cost("calibration", 0.5), cost("calibration", 0.5))
    assert (schema(), ledger.export()["schema"]) == (2, 1)
    ledger.set_limit("patients", 4.0)
    ledger.follow("patients", YEAR)
    assert (schema(), ledger.export()["schema"]) == (3, 3)
    charge(ledger, cost("look", 1.0))
    assert schema() == 3
    shown = ledger.export()["datasets"][0]
    assert shown["schedule"]["left"] == {"calibration": 4, "look": 9}
    assert shown["under_schedule"]["epsilon"] == 2.0
    json.dumps(ledger.export(), allow_nan=False)


@pytest.mark.slow
def test_calibrations_follow_a_schedule(ledger):
    """A calibration at the planned cost succeeds; any other raises an error before the data are read."""
    scores, few = np.random.default_rng(0).random(5000), {"candidates": confide.Candidates.unit(20)}
    schedule = budget_plan(2.0, releases=2, looks=3, dp_delta=0)
    ledger.follow("patients", schedule)
    each = schedule.entry_for("calibration").epsilon
    with refused(BudgetError, "dataset"):
        confide.calibrate(scores, 0.1, 0.6, ledger=ledger, dataset="patients", **few)
    confide.calibrate(scores, 0.1, each, ledger=ledger, dataset="patients", **few)
    confide.calibrate_levels(scores, [0.2, 0.1], each, ledger=ledger, dataset="patients", **few)
    with refused(BudgetError, "dataset"):
        confide.calibrate(scores, 0.3, 0.1, ledger=ledger, dataset="patients", **few)


TAKE = """
import sys
from confide.errors import BudgetError
from confide.ledger import Cost, Ledger, request_digest
done = 0
for k in range(6):
    try:
        request = request_digest({"k": [sys.argv[2], k]})
        Ledger(sys.argv[1]).charge("patients", Cost(0.1, "add_remove", "slopes"), request)
        done += 1
    except BudgetError as error:
        assert "has had the 7 releases of its schedule" in str(error)
print(done)
"""


@pytest.mark.slow
def test_two_processes_cannot_both_take_the_last(ledger):
    """Twelve tries for seven releases, with a limit ten times as large."""
    ledger.set_limit("patients", 99.0)
    ledger.follow("patients", budget_plan(0.7, releases=7, dp_delta=0))
    command = [sys.executable, "-c", TAKE, str(ledger.path)]
    running = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"]
    assert sum(int(one.communicate()[0]) for one in running) == 7
    assert len(ledger.account("patients").entries) == 7


def noisy(count, epsilon, reach=25):
    """The law of a count with discrete Laplace noise on reach either way of 0 and 1, its tails in the last places."""
    z = np.arange(-reach, reach + 2) - count
    law = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    tail = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    law[0], law[-1] = tail * math.exp(epsilon * (z[0] + 1)), tail * math.exp(-epsilon * (z[-1] - 1))
    return law / law.sum()


@pytest.mark.parametrize(("rule", "delta"), [("basic", 0), ("zcdp", 1e-2), pytest.param("pld", 1e-2, marks=accounting)])
@pytest.mark.parametrize(("looks_per_person", "epsilon"), [(1, 2.0), (2, 1.0)])
def test_a_small_year_by_enumeration(rule, delta, looks_per_person, epsilon):
    """Two releases and three looks, a person in one or two of the looks: every database, every outcome of everything.

    A person's record is in both releases' counts and in the covered, or the missed, of the looks it is in. The joint
    law of all outcomes, with the person and without, is as close as stated, both ways round.
    """
    year = budget_plan(
        epsilon, releases=2, looks=3, looks_per_person=looks_per_person, dp_delta=delta or 1e-2, rule=rule
    )
    release, look = year.entries
    mechanism = slopes_for(Fraction(9, 10), Fraction(1, 2), 9, 1, ADD, release.epsilon, release.selector)
    looks = [np.ones(1), np.ones(1)]
    for _ in range(looks_per_person):
        here, there = noisy(1, look.epsilon), noisy(0, look.epsilon)
        looks = [np.outer(looks[0], here).ravel(), np.outer(looks[1], there).ravel()]
    worst = 0.0
    for h in (h for n in range(4) for h in histograms(n, 3)):
        for g in added(h):
            one, other = mechanism_law(mechanism, g), mechanism_law(mechanism, h)
            both = [np.outer(one, one).ravel(), np.outer(other, other).ravel()]
            p, q = (np.outer(a, b).ravel() for a, b in zip(both, looks, strict=True))
            worst = max(worst, divergence(p, q, year.epsilon), divergence(q, p, year.epsilon))
    assert worst <= year.dp_delta + 1e-12
    assert year.loss <= year.epsilon


def test_a_year_nearly_spends_what_it_says():
    """Looks by PLD or sums cost as much as stated: at nine tenths of it the divergence is too large."""
    year = Schedule(2.0, 0.0, "basic", (PlannedReleases("look", 3, 2, 1.0),))
    p, q = (np.outer(noisy(c, 1.0), noisy(c, 1.0)).ravel() for c in (1, 0))
    assert divergence(p, q, year.loss) < 1e-12
    assert divergence(p, q, 0.9 * year.loss) > 1e-3
