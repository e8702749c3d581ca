"""Whom a promise is about, wherever it is printed: new records like those of all silos, or of a silo drawn by size."""

import dataclasses

import numpy as np
import pytest

import confide
from confide import federated
from confide.cli.run import main
from tests.federated.helpers import Federation

ALIKE = "if the silos are alike"
BY_SIZE = "for a new record of silo j with probability n_j/n, however unlike the silos are"


@pytest.fixture
def three(tmp_path):
    rng = np.random.default_rng(0)
    return Federation(tmp_path, [rng.random(300) for _ in range(3)])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("options", "said", "unsaid"),
    [
        ({"method": "private-qq"}, ALIKE, "however unlike"),
        ({"method": "private-qq", "delta": 0.1}, ALIKE, "however unlike"),
        ({"method": "secure-sum", "population": "common"}, ALIKE, "however unlike"),
        ({"method": "fedcp-qq", "epsilon": None}, ALIKE, "however unlike"),
        ({"method": "secure-sum"}, BY_SIZE, ALIKE),
    ],
)
def test_a_promise_says_what_it_assumes_of_silos(three, tmp_path, capsys, options, said, unsaid):
    plan = three.plan(score="lac", **options)
    read, _ = federated.FederatedPlan.read(plan)
    released = federated.aggregate(plan, three.answers(plan))
    path = tmp_path / "released.json"
    released.save(path)
    assert main(["show", str(path)]) == 0
    told = [str(released), str(released.guarantee), str(read.certify()[1]), read.assumed, capsys.readouterr().out]
    assert all(said in text and unsaid not in text for text in told)
    page = confide.report(released).html
    assert (said == ALIKE) == (ALIKE in page)
    assert ("All silos must be alike" if said == ALIKE else BY_SIZE) in page
    assert "silos" not in released.guarantee.fields()  # it follows from the plan, as in files of 0.1
    assert confide.Calibration.load(path).guarantee == released.guarantee


def test_a_mixture_of_0_1_says_its_own_weights(three):
    read, _ = federated.FederatedPlan.read(three.plan(method="secure-sum"))
    older = dataclasses.replace(read, protocol=dataclasses.replace(read.protocol, weights=None))
    assert "(n_j + 1)/(n + silos), however unlike" in str(older.certify()[1])


def test_no_promise_assumes_nothing(three):
    plan = three.plan(epsilon=None, method="fedcp-avg", score="lac")
    read, _ = federated.FederatedPlan.read(plan)
    released = federated.aggregate(plan, three.answers(plan))
    assert read.assumed == ""
    assert "promise: NO COVERAGE IS PROMISED" in str(released)
    assert "at least 0 " not in str(released)
