"""A silo's own threshold after a common release: its request, its guarantee and its charge."""

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.errors import InputTypeError
from tests.federated.helpers import Federation
from tests.refused import refused


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Three silos, of which the last has the largest scores."""
    rng = np.random.default_rng(2)
    records = [rng.random(150) / 4, rng.random(150) / 4, rng.random(150)]
    return Federation(tmp_path_factory.mktemp("local"), records, budget=30.0)


def released(federation, alpha=0.2, **options):
    plan = federation.plan(alpha, 6.0, **options)
    return federated.aggregate(plan, federation.answers(plan))


@pytest.mark.slow
def test_the_request_is_that_of_the_plan(unlike, tmp_path):
    common = released(unlike, score="lac", classes=["a", "b"])
    ledger = confide.Ledger(tmp_path / "own.db")
    own = federated.local(common, np.random.default_rng(0).random(600), 1.5, ledger=ledger, dataset="new")
    assert (own.alpha, own.epsilon, own.score, own.classes) == (common.alpha, 1.5, "lac", ("a", "b"))
    assert own.recipe == Candidates.unit(51).recipe
    assert ledger.balance("new").totals.epsilon == 1.5
    assert own.threshold > common.threshold
    assert own.coverage == 0.8
    assert type(own) is confide.Release


def test_other_candidates_and_a_delta(unlike):
    common, scores = released(unlike, score="lac", delta=0.1), np.random.default_rng(0).random(600)
    own = federated.local(common, scores, 2.0, candidates=Candidates.around(common.threshold))
    assert own.recipe["around"] == common.threshold
    assert (own.guarantee.kind, own.guarantee.delta) == ("training_conditional", 0.1)


def test_of_several_thresholds_one_is_selected(unlike):
    levels = released(unlike, [0.4, 0.2], score="lac")
    with refused(InputTypeError, "release"):
        federated.local(levels, np.ones(5) / 2, 1.0)
    with refused(InputTypeError, "released"):
        federated.local(confide.calibrate(np.ones(5) / 2, 0.1, 1.0), np.ones(5) / 2, 1.0)
    own = federated.local(levels.alone(levels.level_of(0.4)), np.random.default_rng(0).random(600), 1.0)
    assert own.coverage == 0.6


@pytest.mark.slow
def test_every_silo_is_covered_where_the_common_threshold_fails_it(unlike):
    """Mean coverage of 300 drawn samples by the thresholds of an unlike silo; allow 4 standard errors."""
    common, rng = released(unlike, score="lac"), np.random.default_rng(1)
    assert common.threshold < 0.7
    covered = [min(federated.local(common, rng.random(120), 2.0).threshold, 1.0) for _ in range(300)]
    assert np.mean(covered) > 0.8 - 4 * np.std(covered) / np.sqrt(300)
    assert np.mean(covered) < 0.9
