"""Four real hospitals: a model trained at one of them, federated over files, over Flower and in process."""

import csv
import json
import warnings

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.federated.report import coverage_in_silo, own_calibration, shrunk_threshold
from confide.scores import lac_score
from tests.data import shared_data
from tests.federated.helpers import Federation

NAMES = ("cleveland", "hungarian", "switzerland", "va")


def read(name):
    with shared_data(f"uci_heart/{name}.csv").open() as file:
        rows = list(csv.reader(file))
    rows = rows[1:] if any(c.isalpha() for c in rows[0][0]) else rows
    table = np.array([[float(v) if v.strip() not in ("?", "") else np.nan for v in row] for row in rows])
    return table[:, :-1], (table[:, -1] > 0).astype(int)


@pytest.fixture(scope="module")
def scores():
    """A model from the first half of every hospital; scores of the second halves."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    parts = []
    for name in NAMES:
        x, y = read(name)
        order = rng.permutation(len(y))
        half = len(y) // 3
        parts.append((x[order[:half]], y[order[:half]], x[order[half:]], y[order[half:]]))
    x, y = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(x, y)
        return [lac_score(model.predict_proba(p[2]), p[3]) for p in parts]


@pytest.mark.parametrize(
    ("method", "options"), [("private-qq", {"dropouts": 1}), ("secure-sum", {"population": "common"})]
)
def test_same_result_in_process_and_over_flower(tmp_path, scores, method, options):
    flwr = pytest.importorskip("flwr", reason="needs the extra 'flower'")
    assert flwr
    from flwr.clientapp import ClientApp

    from confide.federated import flower
    from tests.federated.in_process_grid import InProcessGrid

    four = Federation(tmp_path, scores)
    plan = four.plan(0.2, 4.0, method=method, score="lac", candidates=Candidates.unit(41), **options)
    app = ClientApp()

    def setup(context):
        i = int(context.node_config["i"])
        return flower.SiloSetup(four.scores[i], four.keys[i], four.policy, four.states[i])

    flower.register(app, setup)
    over_flower, asked = flower.calibrate(InProcessGrid(app, {i: {"i": i} for i in range(4)}), plan)
    assert [asked.errors, asked.refused, asked.silent] == [{}, {}, []]
    over_files = []
    for i in range(4):
        path = tmp_path / f"{i}.json"
        path.write_text(four.answer(i, plan))
        over_files.append(path.read_text())
    assert federated.aggregate(plan, over_files) == over_flower
    assert over_flower.coverage >= 0.8
    assert all(json.loads(text)["content"]["session"] for text in over_files)


def test_deterministic_parts_agree_without_noise(tmp_path, scores):
    """With noise switched off, both private methods give the order statistics that theory names."""
    four = Federation(tmp_path, scores, budget=1e6)
    plan = four.plan(0.2, 1e5, candidates=Candidates.unit(41))
    read_plan = federated.FederatedPlan.read(plan)[0]
    released = federated.aggregate(plan, four.answers(plan))
    targets = [int(t) for t in read_plan.targets]
    values = read_plan.candidates.values
    replies = sorted(values[np.searchsorted(values, np.sort(s)[t - 1])] for s, t in zip(scores, targets, strict=True))
    assert released.threshold == replies[released.k - 1]
    summed = four.plan(0.2, 1e5, method="secure-sum", population="common", candidates=Candidates.unit(41))
    target = int(federated.FederatedPlan.read(summed)[0].targets[0])
    pooled = np.sort(np.concatenate(scores))[target - 1]
    assert federated.aggregate(summed, four.answers(summed)).threshold == values[np.searchsorted(values, pooled)]


def test_per_silo_report_shows_the_hospitals_apart(tmp_path, scores):
    four = Federation(tmp_path, scores)
    plan = four.plan(0.2, 4.0, method="secure-sum", score="lac", candidates=Candidates.unit(41))
    pooled = federated.aggregate(plan, four.answers(plan))
    reports = [coverage_in_silo(name, s, pooled.threshold, 1.0) for name, s in zip(NAMES, scores, strict=True)]
    for report, s in zip(reports, scores, strict=True):
        assert report.estimate.low <= np.mean(s <= pooled.threshold) <= report.estimate.high
        assert report.epsilon == 1.0
    own = own_calibration(scores[0], 0.4, 4.0, score="lac", candidates=Candidates.unit(41))
    assert shrunk_threshold(pooled, own) >= max(pooled.threshold, own.threshold)
