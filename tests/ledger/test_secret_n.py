"""On a data set under add_remove, only the noisy number and the threshold depend on the number of records."""

import json
import warnings

import numpy as np
import pytest

import confide
from confide import ConfideError, Ledger
from confide.errors import InputError
from confide.ledger import Cost
from confide.mechanisms import MECHANISMS, NEIGHBORS, privacy_statement
from confide.mechanisms.privacy import PrivacyStatement
from tests.builders import grid
from tests.draws import always
from tests.refused import refused

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


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"delta": 0.1}, {"records_per_person": 2}, {"n_min": 40}])
def test_no_output_depends_on_n_for_other_choices(tmp_path, draw_with, more):
    draw_with(noisy_number=always(1010))
    found = [output(tmp_path, n, {"epsilon": 0.5, **more}) for n in SIZES]
    assert all(each == found[0] for each in found)
    assert found[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("ask", [groups, sides, levels])
def test_no_output_depends_on_n_for_several_thresholds(tmp_path, draw_with, ask):
    draw_with(noisy_number=always(1010))
    found = [output(tmp_path, n, {}, ask) for n in SIZES]
    assert all(each == found[0] for each in found)
    assert len(found[0][1]) == (1 if ask is levels else 2)


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


def test_relation_comes_before_cost():
    for epsilon in (0.0, 1.0, np.inf):
        public = PrivacyStatement("replace_one", epsilon, 1, None, epsilon, None)
        with refused(InputError, "neighbors"):
            Cost.of(public, "slopes", "add_remove")
        assert Cost.of(public, "slopes", "replace_one").epsilon == epsilon
    nothing = privacy_statement(None, "add_remove", 1)
    assert Cost.of(nothing, "slopes").epsilon == Cost.of(nothing, "slopes", "replace_one").epsilon == 0
