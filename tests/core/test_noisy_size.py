"""Releases with a noisy number of records: sources, ledgers, files and kinds of release."""

import importlib
import math

import numpy as np
import pytest

import confide
from confide.candidates import LENGTHS, SHAPES, Candidates, Spread
from confide.core import RecordWeights, Request, files, release
from confide.core.sources import GivenCounts, Scores
from confide.core.tuning import sizes_of
from confide.counting import ScoreHistogram
from confide.errors import EarlierReleaseWarning, InputError, InputTypeError, OtherDataError
from tests.draws import always, last

pytestmark = [
    pytest.mark.usefixtures("noisy_number"),
    pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning"),  # +inf is possible, if improbable
]

SCORES = np.random.default_rng(5).random(2000)
STEPS = importlib.import_module("confide.core.steps")


@pytest.mark.slow
def test_every_release_draws_its_number():
    """It fails by chance in 1e-7: seven numbers without noise, each with probability tanh(1/10)."""
    assert {confide.calibrate(SCORES, 0.1, 1.0, score="lac").size.counted for _ in range(7)} != {2000}


@pytest.mark.parametrize("most", [None, *LENGTHS])
@pytest.mark.parametrize("kind", SHAPES)
def test_every_list_of_a_design_is_part_of_the_longest_one(kind, most):
    """Otherwise a design that follows a noisy number could not be counted after the charge."""
    law = Spread(kind, around=None if kind == "any" else 0.5, most=most)
    sizes = sizes_of(law)
    longest = Candidates.quantiles(law, sizes[-1]).edges
    assert all(np.isin(Candidates.quantiles(law, size).edges, longest).all() for size in sizes)
    assert math.isfinite(confide.calibrate(SCORES, 0.1, 1.0, candidates=law).threshold)


@pytest.mark.slow
def test_repeated_request_counts_once_and_draws_nothing(tmp_path, monkeypatch, draw_with):
    """The ledger has the release: neither a number nor a threshold is drawn, and no second pass is needed."""
    account = {"ledger": confide.Ledger(tmp_path / "budget.db"), "dataset": "patients"}
    first = confide.calibrate(SCORES, 0.1, 1.0, score="lac", **account)
    passes, count = [], Scores.count

    def drawn(*_):
        raise AssertionError("drawn again")

    draw_with(noisy_number=drawn, select=drawn)
    monkeypatch.setattr(Scores, "count", lambda self, *given: passes.append(given) or count(self, *given))
    with pytest.warns(EarlierReleaseWarning):
        assert confide.calibrate(SCORES, 0.1, 1.0, score="lac", **account) == first
    assert len(passes) == 1
    assert account["ledger"].account("patients").spent().epsilon == 1.0


WEIGHTS = np.tile([0.0, 0.0, 0.5, 2.0], 500)
BY_WEIGHT = {"weights": WEIGHTS, "weight_bound": 2.0}
BY_CLASS = {"class_weights": {"a": 1, "b": 2}, "labels": np.tile(["a", "b"], 1000)}


@pytest.mark.parametrize("weighted", [BY_WEIGHT, BY_CLASS], ids=["records", "classes"])
def test_weighted_records_have_a_noisy_number(weighted):
    """The number is noised, never the total weight, of 1250 or 3000. It fails by chance in 5e-9: 20 scales of noise."""
    released = confide.calibrate(SCORES, 0.1, 1.0, score="lac", **weighted)
    assert abs(released.size.counted - 2000) <= 400
    assert released.privacy.epsilon <= 1.0
    assert released.privacy.replace_one == 2 * released.mechanism.add_remove <= 1.9
    assert released.coverage == 0.9
    assert confide.Release.from_json(released.to_json()) == released


@pytest.mark.slow
def test_a_ledger_distinguishes_records_without_weight(tmp_path):
    """They change no weighted count, but the noisy number that is released."""
    asked = {"score": "lac", "weight_bound": 2.0, "ledger": confide.Ledger(tmp_path / "budget.db"), "dataset": "d"}
    confide.calibrate(SCORES, 0.1, 1.0, weights=WEIGHTS, **asked)
    with pytest.raises(OtherDataError):
        confide.calibrate(np.append(SCORES, 0.5), 0.1, 1.0, weights=np.append(WEIGHTS, 0.0), **asked)


@pytest.mark.parametrize("records", [-1, 2**60, 1.0, True])
def test_impossible_number_of_weighted_records_raises(records):
    with pytest.raises((InputError, InputTypeError)):
        ScoreHistogram(Candidates.of([0.5]), np.array([1, 2]), records)


@pytest.mark.parametrize("name", ["library_versions", "unanswered_design", "assembled", "to_json", "entry_text"])
def test_step_that_needs_no_draw_fails_before_the_charge(tmp_path, monkeypatch, name):
    ledger = confide.Ledger(tmp_path / "b.db")

    def fail(*_args, **_given):
        raise InputError("step", "must fail")

    owners = {"to_json": confide.Release, "entry_text": files}
    monkeypatch.setattr(owners.get(name, STEPS), name, fail)
    with pytest.raises(InputError, match="must fail"):
        confide.calibrate(
            SCORES, 0.025, 0.5, groups=np.resize(["a", "b"], len(SCORES)), names=["a", "b"], score="absolute_residual",
            unit=2.5, neighbors="replace_one", ledger=ledger, dataset="d", partition="site",
        )  # fmt: skip
    assert ledger.accounts() == {}


REQUESTS = {
    "plain": {},
    "little epsilon": {"epsilon": 2e-5},
    "much epsilon": {"epsilon": 1e6},
    "least alpha": {"alpha": "0.000001"},
    "largest alpha": {"alpha": "0.999999"},
    "fine alpha": {"alpha": "0.499999"},
    "several records": {"records_per_person": 1000, "epsilon": 0.5},
    "zcdp": {"epsilon": None, "rho": 0.1},
    "residuals": {"score": "absolute_residual"},
    "unit": {"score": "absolute_residual", "unit": 2.5},
    "largest n_min": {"n_min": 2**48},
    "weights": {"population": RecordWeights.bounded(1000), "alpha": "0.499999", "epsilon": 5e-3},
}
SEVERAL = {
    "delta": {"delta": 0.05, "n_min": 100},
    "risk": {"loss": "false_negative_rate", "score": None},
    "levels": {"by": "level", "alpha": (0.05, 0.1, 0.3)},
    "groups": {"by": "group", "names": ("a", "b: c")},
    "classes": {"by": "class", "names": ("a", "b"), "neighbors": "replace_one"},
    "sides": {"by": "side", "alpha": (0.05, 0.1), "score": None},
}


@pytest.mark.slow
@pytest.mark.parametrize("counted", [-(2**62), 0, 3000, 2**62])
@pytest.mark.parametrize("name", [*REQUESTS, *SEVERAL])
def test_no_noisy_number_raises_after_the_charge(tmp_path, draw_with, name, counted):
    """Whatever the number and the thresholds are, the release is stored, and returned again at no cost."""
    draw_with(noisy_number=always(counted), select=last if counted < 3000 else always(0))
    ledger = confide.Ledger(tmp_path / "b.db")
    request = Request(**{"alpha": 0.1, "epsilon": 1.0, "score": "lac"} | (REQUESTS | SEVERAL)[name])
    records = 1000 if request.population is not None else None
    seen = request.counted_over()
    counts = np.zeros(seen.size, dtype=np.int64)
    counts[0] = 1000
    source = GivenCounts(dict.fromkeys(request.rows, ScoreHistogram(seen, counts, records)))
    payer = STEPS.Payer(ledger, "d", "wards" if request.disjoint else None)
    drawn = release(source, request, payer)
    assert {part.size.counted for part in drawn.by_name.values()} == {counted}
    with pytest.warns(EarlierReleaseWarning):
        assert release(source, request, payer).to_json() == drawn.to_json()
