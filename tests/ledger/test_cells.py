"""Cells of a partition with a bound per table: the stated loss bounds that of a person in two cells.

A limit of K records of a person holds in one table. A person in the tables of two cells gives K records to each, so
the losses add up, and their maximum would understate them (docs/theory-composition.md, Lemma B1).
"""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates, ConfideError, Dataset, Ledger
from confide.errors import InputError
from confide.evaluation import PrivateRequest
from confide.mechanisms import MECHANISMS, NEIGHBORS
from confide.tables import (
    ContributionBound,
    ScoreColumn,
    calibrate_table,
    evaluate_table_privately,
    recalibrate_table,
    score_histogram,
)
from tests.builders import grid
from tests.draws import always
from tests.exact import added, histograms, mechanism_law, worst_log_ratio
from tests.refused import refused

PEOPLE = ContributionBound("person", 1, ("visit",))
CANDIDATES = Candidates.unit(3)
NORTH, SOUTH = Dataset("patients", ("region", "north")), Dataset("patients", ("region", "south"))

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")


def records(people, bins):
    """Three visits of each of these people, all with the score of a bin."""
    scores = np.repeat((np.asarray(bins) + 0.5) / 3, 3)
    names = np.repeat(people, 3)
    visits = np.tile(np.arange(3), len(people))
    return pa.table({"person": pa.array(names, pa.int64()), "visit": visits, "s": pa.array(scores, pa.float64())})


def released(table, dataset, ledger, **options):
    return calibrate_table(
        table, ScoreColumn("s", "lac"), 0.5, 1.0, candidates=CANDIDATES, people=PEOPLE, ledger=ledger, dataset=dataset,
        **options,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def counts(table):
    return tuple(score_histogram(table, ScoreColumn("s", "lac"), CANDIDATES, people=PEOPLE).counts.tolist())


@pytest.mark.slow
def test_what_is_stated_is_no_less_than_what_a_person_in_two_cells_loses(ledger):
    """By the exact laws of two releases, over all small tables and scores of the person."""
    first = released(records(np.arange(9), [0] * 9), NORTH, ledger)
    assert sum(counts(records([1, 2], [0, 1]))) == 2  # a person with three visits counts once, in each table

    def one(h):
        return mechanism_law(first.mechanism, h)

    def both(h):
        """The cells may hold the same scores, and their noise is independent."""
        return np.outer(one(h), one(h)).ravel()

    tables = [h for n in range(5) for h in histograms(n, 3)]
    alone, together = (worst_log_ratio(law, tables, added) for law in (one, both))
    assert alone <= 1.0 < together <= 2.0
    assert together == pytest.approx(2 * alone)

    assert ledger.account("patients").spent().epsilon == 1.0  # of one cell; the maximum would state as much of both
    with refused(InputError, "dataset"):
        released(records([0, 1], [0, 1]), SOUTH, ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    released(records([0, 1], [0, 1]), Dataset("patients", ("region, in the south", "south")), ledger)
    assert ledger.account("patients").spent().epsilon == 2.0 >= together


@pytest.mark.slow
def test_people_in_one_cell_pay_the_maximum(ledger):
    """With `one_cell` cells cost their maximum; the request is the same, so it is recognised."""
    first = released(records([0, 1], [0, 1]), NORTH, ledger)
    released(records([2, 3], [0, 1]), Dataset("patients", SOUTH.group, one_cell=True), ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert released(records([0, 1], [0, 1]), Dataset("patients", NORTH.group, one_cell=True), ledger) == first


@pytest.mark.slow
def test_a_table_that_is_divided_is_bounded_as_a_whole(ledger):
    """Groups of one table: a person has at most K records in all of them, so they cost their maximum, every month."""
    table = records(np.arange(40), [0, 1] * 20).append_column("region", pa.array(["north", "south"] * 60))
    groups = {"by": "region", "groups": ["north", "south"], "partition": "region"}
    first = released(table, "patients", ledger, **groups)
    whole = {"people": PEOPLE, "by": "region", "partition": "region", "ledger": ledger, "dataset": "patients"}
    recalibrate_table(first, table, ScoreColumn("s", "lac"), **whole)
    assert ledger.account("patients").spent().epsilon == 2.0
    north = table.filter(pa.compute.equal(table["region"], "north"))
    with refused(InputError, "dataset"):  # bounded in other records than before
        released(north, "patients", ledger, by="region", groups=["north"], partition="region", n_min=2)
    assert ledger.account("patients").spent().epsilon == 2.0


def evaluated(table, dataset, ledger):
    release = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    asking = PrivateRequest(1.0, ledger=ledger, dataset=dataset)
    return evaluate_table_privately(table, ScoreColumn("s", "lac"), release, asking, people=PEOPLE)


def renewed(table, dataset, ledger):
    release = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    return recalibrate_table(release, table, ScoreColumn("s", "lac"), people=PEOPLE, ledger=ledger, dataset=dataset)


@pytest.mark.slow
@pytest.mark.parametrize("release", [released, renewed, evaluated])
def test_every_front_refuses_the_second_cell(release, ledger):
    """The error comes before any charge; a release about all records adds up."""
    released(records([0, 1], [0, 1]), NORTH, ledger)
    with refused(InputError, "dataset"):
        release(records([0, 1], [0, 1]), SOUTH, ledger)
    assert ledger.account("patients").spent().epsilon == 1.0
    release(records([0, 1], [0, 1]), "patients", ledger)
    assert ledger.account("patients").spent().epsilon == 2.0


def test_the_check_is_within_the_charge(ledger, monkeypatch):
    """Another process may charge another cell after the limit was checked: the transaction checks again."""
    from confide.ledger import Transaction

    look = Transaction.check_limit

    def then_another_charges(transaction):
        look(transaction)
        ledger.charge(SOUTH, confide.ledger.Cost(1.0, "add_remove", "m", None, SOUTH.group), "0" * 64)

    monkeypatch.setattr(Transaction, "check_limit", then_another_charges)
    with refused(InputError, "dataset"):
        released(records([0, 1], [0, 1]), NORTH, ledger)


SIZES = (0, 1, 30, 31, 500)
SCORES = np.random.default_rng(0).random(max(SIZES))
UNIT = confide.Candidates.unit(20)


def groups(scores, **options):
    options |= {"partition": "kind"}
    return confide.calibrate(scores, 0.1, 0.5, groups=np.full(len(scores), "a"), names=["a", "b"], **options)


def sides(scores, **options):
    return confide.calibrate_sides(np.tile([0.2, 0.8], (len(scores), 1)), scores, 0.1, 0.5, **options)


def levels(scores, **options):
    return confide.calibrate(scores, [0.1, 0.2], 0.5, **options)


def one(scores, **options):
    return confide.calibrate(scores, 0.1, **options)


def output(folder, n, options, ask=one):
    """Everything except the threshold: statements, errors, charges, stored texts and the budget left."""
    ledger = Ledger(folder / f"{n}.db")
    ledger.set_limit("patients", 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", confide.CoverageWarning)  # says that the threshold is +inf
            released = ask(SCORES[:n], **{"candidates": UNIT, **options}, ledger=ledger, dataset="patients")
        stated = without_thresholds(json.loads(released.to_json()))
    except ConfideError as error:
        stated = f"{type(error).__name__}: {error}"
    account = ledger.account("patients")
    charged = [(entry.cost, entry.request, entry.release is not None) for entry in account.entries]
    return stated, charged, account.remaining()


def without_thresholds(document):
    drawn = ("threshold", "counts", "sha256")
    if isinstance(document, dict):
        return {key: without_thresholds(part) for key, part in document.items() if key not in drawn}
    return [without_thresholds(part) for part in document] if isinstance(document, list) else document


@pytest.mark.slow(unless="slopes-add_remove")
@pytest.mark.parametrize(("mechanism", "neighbors"), grid(list(MECHANISMS), NEIGHBORS))
def test_no_output_depends_on_n(tmp_path, draw_with, mechanism, neighbors):
    draw_with(noisy_number=always(1010))
    epsilon = {} if mechanism == "none" else {"epsilon": 0.5}
    found = [output(tmp_path, n, {"mechanism": mechanism, "neighbors": neighbors, **epsilon}) for n in SIZES]
    assert all(each == found[0] for each in found)
    if neighbors == "replace_one" or mechanism == "none":
        assert "publishes the number of records" in found[0][0]
        assert found[0][1:] == ([], 1.0)


ASKED = [(one, more, 1) for more in ({"delta": 0.1}, {"records_per_person": 2}, {"n_min": 40})]
ASKED += [(levels, {}, 1), (groups, {}, 2), (sides, {}, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "more", "charges"), ASKED)
def test_no_output_depends_on_n_for_other_requests(tmp_path, draw_with, ask, more, charges):
    draw_with(noisy_number=always(1010))
    options = {"epsilon": 0.5, **more} if ask is one else more
    found = [output(tmp_path, n, options, ask) for n in SIZES]
    assert all(each == found[0] for each in found)
    assert len(found[0][1]) == charges


@pytest.mark.parametrize("several", ["levels", "sides", "losses"])
def test_no_release_of_several_thresholds_publishes_n(tmp_path, several):
    scores, paid = SCORES[:30], {"ledger": Ledger(tmp_path / "b.db"), "dataset": "patients", "candidates": UNIT}
    paid["ledger"].set_limit("patients", 1.0)
    paid["neighbors"] = "replace_one"
    ask = {
        "levels": lambda: confide.calibrate(scores, [0.1, 0.2], 0.5, **paid),
        "sides": lambda: confide.calibrate_sides(np.tile([0.0, 1.0], (30, 1)), scores, 0.1, 0.5, **paid),
        "losses": lambda: confide.calibrate_losses(
            np.zeros((30, UNIT.size - 1)), risk=0.1, epsilon=0.5, u=scores, loss="mine", **paid
        ),
    }[several]
    with refused(InputError, "neighbors"):
        ask()
    assert paid["ledger"].account("patients").entries == ()
