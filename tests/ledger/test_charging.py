"""`Ledger`: charges before releases of every kind, limits, identical requests, groups, bindings, names."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import confide
from confide.errors import (
    BudgetError,
    EarlierReleaseWarning,
    InputError,
    InputTypeError,
    OtherDataError,
    SimilarNameWarning,
)  # fmt: skip
from confide.ledger import (
    Charge,
    Cost,
    Dataset,
    Group,
    Ledger,
    compose,
    fingerprint,
    make_payment,
    parse_location,
    pay,
    request_digest,
)  # fmt: skip
from confide.mechanisms import PrivacyStatement
from tests.builders import slow
from tests.draws import SECURE
from tests.refused import assert_error_is_private, planted_scores, refused

SCORES = np.random.default_rng(0).random(2000)


def digest(*content):
    return request_digest({"request": [str(item) for item in content]})


def cost(epsilon, **options):
    return Cost(epsilon, options.pop("neighbors", "add_remove"), "slopes", **options)


def test_limit_is_exact_and_says_what_remains(ledger):
    ledger.set_limit("patients", 1.0)
    for k in range(10):
        ledger.charge("patients", cost(0.1), digest(k))
    assert ledger.account("patients").remaining() == 0.0
    with refused(BudgetError, "dataset"):
        ledger.charge("patients", cost(1e-6), digest("one more"))
    assert len(ledger.account("patients").entries) == 10
    ledger.charge("patients", cost(0.0), digest("free"))


def test_data_sets_without_a_limit_are_held_to_the_one_that_was_given(place):
    """The limit of an open `Ledger` also applies to existing data sets without a limit."""
    Ledger(place).charge("a", cost(1.0), digest(1))
    ledger, scores = Ledger(place, limit=1.5), np.random.default_rng(0).random(300)
    for charge in (
        lambda: ledger.charge("a", cost(1.0), digest(2)),
        lambda: confide.calibrate(scores, 0.5, 1.0, ledger=ledger, dataset="a"),
    ):
        with refused(BudgetError, "dataset"):
            charge()
    assert ledger.account("a").limit is None  # it is not on record
    ledger.set_limit("a", 2.0)  # an own limit counts alone
    ledger.charge("a", cost(1.0), digest(3))
    Ledger(place).set_limit("a", None)
    Ledger(place).charge("a", cost(1.0), digest(4))


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        ({}, "a1fbe3125f8c81ad"),
        ({"neighbors": "replace_one"}, "4204901e70fc56b1"),
        ({"candidates": confide.Candidates.around(0.9), "rho": 0.1, "epsilon": None}, "d590cc9a0a6291f5"),
        ({"alpha": [0.2, 0.1], "mechanism": "noisy-histogram"}, "c83ce500d14edc4c"),
        ({"class_weights": {0: 1, 1: 2}, "labels": np.arange(2000) % 2, "classes": 2}, "89b8c066082aaa15"),
    ],
)
def test_a_later_version_recognises_a_request(ledger, options, stated):
    """The digests are those of 0.4.0: with other ones every earlier request would be charged again."""
    options = {"alpha": 0.1, "epsilon": 1.0, "score": "lac"} | options
    confide.calibrate(SCORES, **options, ledger=ledger, dataset="patients")
    assert ledger.account("patients").entries[0].request[:16] == stated


@pytest.mark.slow
def test_a_threshold_is_charged_with_its_zcdp(ledger):
    released = confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="patients")
    assert ledger.account("patients").costs[0].rho == released.privacy.rho < 1 / 2


def test_groups_share_a_limit_in_parallel(ledger):
    ledger.set_limit("patients", 1.0)
    for cell in ("north", "south", "east"):
        group = Group("region", cell)
        ledger.charge(Dataset("patients", group), cost(0.75, group=group), digest(cell))
    account = ledger.account("patients")
    assert account.spent().epsilon == 0.75
    assert account.remaining() == 0.25
    assert account.remaining(Group("region", "north")) == 0.25
    assert account.remaining(Group("region", "west")) == 1.0
    assert account.remaining(Group("sex", "f")) == 0.25
    with refused(BudgetError, "dataset"):
        ledger.charge("patients", cost(0.5), digest("all"))
    with refused(InputError, "cost"):
        ledger.charge(Dataset("patients", Group("region", "west")), cost(0.5), digest("mismatch"))


@pytest.mark.slow
def test_relations_do_not_mix(ledger):
    ledger.charge("public n", cost(1.0, neighbors="replace_one"), digest(1))
    with refused(InputError, "dataset"):
        ledger.charge("public n", cost(1.0), digest(2))
    with refused(InputError, "dataset"):
        ledger.set_limit("public n", 1.0)
    released = confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="public n")  # secret n, other unit
    charged = ledger.account("public n").entries[-1].cost
    assert charged.epsilon == released.privacy.replace_one > 1.0
    confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="secret n")
    with refused(InputError, "neighbors"):
        confide.calibrate(SCORES, 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="secret n")


@pytest.mark.slow
def test_binding_to_data(ledger, tmp_path):
    key = bytes(range(32))
    bound = Dataset("patients", fingerprint=fingerprint(key, SCORES))
    confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset=bound)
    for other in (Dataset("patients", fingerprint=fingerprint(key, SCORES[1:])), "patients"):
        with refused(OtherDataError, "dataset"):
            confide.calibrate(SCORES[1:], 0.1, 1.0, ledger=ledger, dataset=other)
    assert len(ledger.account("patients").entries) == 1
    path = tmp_path / "data.csv"
    path.write_text("score\n0.5\n")
    assert fingerprint(key, path) != fingerprint(bytes(range(1, 33)), path)
    for wrong in (b"short", "text"):
        with refused(InputError, "key"):
            fingerprint(wrong, path)


OTHERS = [
    {"epsilon": 0.5}, {"score": "mine"}, {"candidates": confide.Candidates.unit(50)}, {"delta": 0.1}, {"n_min": 5},
    {"records_per_person": 2}, {"dataset": "other"}, {"dataset": Dataset("patients", ("region", "north"))},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"alpha": 0.2}, *slow(OTHERS)])
def test_identical_requests_cost_once_and_different_ones_do_not(ledger, change):
    asked = {"alpha": 0.1, "epsilon": 1.0, "score": "lac", "dataset": "patients", "ledger": ledger}
    first = confide.calibrate(SCORES, **asked)
    for same in ({}, {"alpha": "1/10"}):
        with pytest.warns(confide.errors.EarlierReleaseWarning):
            assert confide.calibrate(SCORES, **asked | same) == first
    confide.calibrate(SCORES, **asked | change)
    assert sum(len(account.entries) for account in ledger.accounts().values()) == 2


def test_the_charge_is_on_disk_before_the_mechanism_runs(ledger, draw_with):
    seen = []

    def watched(utilities, scale):
        seen.append([(e.cost.epsilon, e.release) for e in ledger.account("patients").entries])
        return SECURE.select(utilities, scale)

    draw_with(select=watched)
    confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="patients")
    assert seen == [[(1.0, None)]]
    assert ledger.account("patients").entries[0].release is not None


def test_over_the_limit_the_data_are_not_touched(ledger, monkeypatch, draw_with):
    ledger.set_limit("patients", 0.5)

    def forbidden(*arguments, **options):
        raise AssertionError("the data were touched")

    monkeypatch.setattr(confide.ScoreHistogram, "from_scores", forbidden)
    draw_with(select=forbidden, noisy_number=forbidden)
    with refused(BudgetError, "dataset") as caught:
        confide.calibrate(planted_scores(), 0.1, 1.0, ledger=ledger, dataset="patients")
    assert_error_is_private(caught.value)
    assert ledger.account("patients").entries == ()


def test_bad_data_cost_nothing(ledger):
    with refused(InputError, "scores"):
        confide.calibrate([0.1, np.nan], 0.1, 1.0, ledger=ledger, dataset="patients")
    assert ledger.accounts() == {}


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 3])
def test_a_release_is_kept_before_anything_is_said_about_it(ledger, levels):
    """The tests turn warnings into errors."""
    asked = {"candidates": confide.Candidates.of([-1.0]), "ledger": ledger, "dataset": "patients"}
    with pytest.raises(confide.CoverageWarning):
        confide.calibrate(SCORES, [0.1 * k for k in range(1, levels + 1)], 1.0, **asked)
    (entry,) = ledger.account("patients").entries
    assert [stored["threshold"] for stored in json.loads(entry.release)["thresholds"]] == ["+inf"] * levels


def test_charges_together_are_bounded_together(ledger):
    ledger.set_limit("patients", 1.0)
    charges = [Charge(Dataset("patients"), cost(0.75), digest(k)) for k in range(2)]
    with refused(BudgetError, "dataset"):
        ledger.charge_all(charges)
    assert ledger.account("patients").entries == ()
    assert ledger.charge_all([]) == []
    groups = [Group("region", cell) for cell in ("north", "south")]
    cells = [Charge(Dataset("patients", one), cost(0.75, group=one), digest(one)) for one in groups]
    assert ledger.charge_all(cells) == [one.token for one in cells]
    assert ledger.account("patients").spent().epsilon == 0.75
    with refused(InputError, "charges"):
        ledger.charge_all([Charge(Dataset(name), cost(0.1), digest(name)) for name in ("a", "b")])


def test_arguments_are_checked(ledger):
    with refused(InputError, "ledger"):
        confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger)
    with refused(InputError, "ledger"):
        confide.calibrate(SCORES, 0.1, 1.0, dataset="patients")
    with refused(InputTypeError, "ledger"):
        confide.calibrate(SCORES, 0.1, 1.0, ledger="budget.db", dataset="patients")
    with refused(InputTypeError, "again"):
        confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="patients", again=1)
    for wrong in ("", " padded ", "x" * 201, "two\nlines"):
        with refused(InputError, "dataset"):
            ledger.charge(wrong, cost(1.0), digest(1))
    for wrong in ("", "0" * 63, "g" * 64, None):
        with refused(InputError, "request"):
            ledger.charge("patients", cost(1.0), wrong)
    for wrong in (-1.0, np.inf, np.nan, (1.0, 2.0), (1.0, 1e-6, 3.0), "1", True):
        with pytest.raises((InputError, InputTypeError)):
            ledger.set_limit("patients", wrong)
    with refused(InputError, "dataset"):
        ledger.account("unknown")


@pytest.mark.slow
def test_threads_share_a_handle(ledger):
    """Those who read are not told of a copy of before while others charge."""
    ledger.set_limit("patients", 1.0)
    with ThreadPoolExecutor(4) as pool:
        charged = [pool.submit(ledger.charge, "patients", cost(0.25), digest(k)) for k in range(12)]
        read = [pool.submit(ledger.account, "patients") for _ in range(12)]
    assert not [one for one in read if one.exception()]
    errors = [one.exception() for one in charged if one.exception()]
    assert [type(error) for error in errors] == [BudgetError] * 8
    assert len(ledger.account("patients").entries) == 4


# Kinds of releases

PRIVACY = PrivacyStatement("add_remove", 0.5, 1, 0.5, 1.0, None)


def released(ledger, counts, *, week=3, mechanism="look by discrete-laplace", charge_first=False, **options):
    """A release about a week; `steps` records the steps in their order."""
    steps = []

    def look():
        steps.append(("looked", ledger.account("patients").spent().epsilon if ledger.accounts() else 0.0))
        return counts

    def draw(seen):
        steps.append(("drawn", ledger.account("patients").spent().epsilon))
        return f"week {week}: {len(steps)}"

    payment = make_payment(PRIVACY, mechanism, {"week": week}, ledger, "patients", **options)
    return pay(payment, look, bytes, draw, charge_first=charge_first), steps


def test_a_release_of_any_kind_is_charged_before_it_is_drawn_and_answered_again_for_nothing(place):
    ledger = Ledger(place, limit=1.0)
    text, steps = released(ledger, [4, 1])
    assert (text, steps) == ("week 3: 2", [("looked", 0.0), ("drawn", 0.5)])
    with pytest.warns(EarlierReleaseWarning):
        assert released(ledger, [4, 1]) == ("week 3: 2", [("looked", 0.5)])
    with refused(OtherDataError, "dataset"):
        released(ledger, [4, 2])
    assert ledger.account("patients").spent().epsilon == 0.5
    assert released(ledger, [4, 1], week=4, charge_first=True)[1] == [("looked", 1.0), ("drawn", 1.0)]
    with refused(BudgetError, "dataset"):
        released(ledger, [4, 1], again=True)
    with refused(InputError, "ledger"):
        make_payment(PRIVACY, "look by discrete-laplace", {}, ledger, None)


# Releases without privacy

FEW = SCORES[:300]


def bare(ledger, scores=FEW):
    return confide.calibrate(scores, 0.1, mechanism="none", ledger=ledger, dataset="patients")


@pytest.mark.slow
def test_without_a_limit_the_total_is_infinite(ledger):
    confide.calibrate(FEW, 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="patients")
    bare(ledger)
    account = ledger.account("patients")
    for loss in (account.spent(), account.spent(1e-6)):
        assert loss.epsilon == math.inf
        assert str(loss) == "NOT PRIVATE: 1 of 2 releases is without privacy: the total is infinite"
    assert account.remaining() is None
    (document,) = json.loads(json.dumps(ledger.export(), allow_nan=False))["datasets"]
    assert document["spent"] == "+inf"
    assert [entry["epsilon"] for entry in document["entries"]] == [account.entries[0].cost.epsilon, "+inf"]


def test_a_limit_set_afterwards_has_nothing_left(ledger):
    bare(ledger)
    account = ledger.set_limit("patients", 1e12, neighbors="replace_one")
    assert account.remaining() == 0.0
    with refused(BudgetError, "dataset"):
        confide.calibrate(FEW, 0.1, 1.0, neighbors="replace_one", ledger=ledger, dataset="patients")


@pytest.mark.parametrize("limit", [1e12, (1e12, 1e-6)])
def test_a_limit_refuses_it_before_the_data_are_touched(tmp_path, limit, monkeypatch):
    ledger = Ledger(tmp_path / "limited.db", limit=limit)
    monkeypatch.setattr(confide.ScoreHistogram, "from_scores", lambda *_: pytest.fail("the data were touched"))
    with refused(BudgetError, "dataset"):
        bare(ledger)
    assert ledger.accounts() == {}
    ledger.set_limit("patients", limit, neighbors="replace_one")
    with refused(BudgetError, "dataset"):
        bare(ledger)
    assert ledger.account("patients").entries == ()


# Names of data sets

COMPOSED, DECOMPOSED, CAPITAL = "café", "cafe\u0301", "Café"


def test_unicode_forms_and_case_are_one_name(place):
    ledger = Ledger(place, limit=2.5)
    for k, name in enumerate((COMPOSED, DECOMPOSED)):
        ledger.charge(name, cost(1.0), f"{k}" * 64)
    with refused(BudgetError, "dataset"):
        ledger.charge(CAPITAL.upper(), cost(1.0), "2" * 64)
    assert list(ledger.accounts()) == [COMPOSED]
    assert ledger.account(CAPITAL).spent().epsilon == 2.0
    assert ledger.relation(DECOMPOSED) == "add_remove"
    assert ledger.set_limit(CAPITAL, 9.0).dataset == COMPOSED
    assert list(ledger.accounts()) == [COMPOSED]


@pytest.mark.slow
def test_spellings_ask_the_same(ledger):
    first = confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset=COMPOSED)
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset=CAPITAL) == first


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("patients 2024", "p\u0430tients 2024"),  # a Cyrillic letter
        ("OPERA", "\u039fPERA"),  # a Greek one
        ("patients 2024", "patients-2024"),
        ("ward 10", "ward lO"),
        ("caf\u00e9", "cafe"),
        ("clinic", "\uff43linic"),  # a wide letter
        ("patients", "patient"),  # a letter too few
        ("north ward", "northh ward"),
        ("patients 2024", "pateints 2024"),  # two letters exchanged
        ("Patients-2024", "patjents 2024"),
    ],
)
def test_similar_names_are_pointed_out_once(ledger, known, new):
    ledger.charge(known, cost(1.0), "0" * 64)
    with pytest.warns(SimilarNameWarning) as said:
        ledger.charge(new, cost(1.0), "1" * 64)
    assert said[0].filename == __file__
    assert repr(known) in str(said[0].message)
    ledger.charge(new, cost(1.0), "2" * 64)  # known by now
    assert list(ledger.accounts()) == [known, new]


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda path: fingerprint(b"short", path), InputError, "key"),
        (lambda path: fingerprint(bytes(range(32)), path / "none"), InputError, "path"),
        (lambda path: fingerprint(bytes(range(32)), str(path)), InputTypeError, "data"),
        (lambda _: Dataset("a", fingerprint="0" * 63), InputError, "fingerprint"),
        (lambda _: Dataset("a", group=("region", "north", "x")), InputTypeError, "group"),
        (lambda _: parse_location(5), InputTypeError, "path"),
        (lambda _: compose([], dp_delta=1e-301), InputError, "dp_delta"),
    ],
)
def test_invalid_arguments_raise_by_name_before_anything_is_written(call, error, argument, tmp_path):
    with refused(error, argument):
        call(tmp_path)
    assert not list(tmp_path.iterdir())
