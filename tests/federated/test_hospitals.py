"""Four real hospitals and an external model: in process, over files and over Flower the result is the same."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.releases.calibration import Calibration
from experiments.federated.heart import NAMES, split
from tests.builders import slow
from tests.data import shared_data
from tests.federated.by_files import Files
from tests.federated.helpers import Federation

METHODS = [("private-qq", ["--dropouts", 1]), *slow([("secure-sum", [])])]


@pytest.fixture(scope="module")
def hospitals():
    """Scores of all four hospitals, for calibration and test, from a model trained on a third of the first two."""
    for name in NAMES:
        shared_data(f"uci_heart/{name}.csv")
    return list(zip(*split(0), strict=True))


@pytest.fixture
def scores(hospitals):
    return [calibration for calibration, _ in hospitals]


@pytest.fixture
def fixed_noise(monkeypatch):
    """Make every draw a function of its purpose. Only a test can do this, because no argument sets it."""

    def generator(*parts):
        return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big"))

    def select(utilities, scale):
        noise = generator(utilities.tolist(), scale).exponential(size=len(utilities))
        return int(np.argmax(utilities / scale + noise))

    def share(size, scale, honest):
        return generator(size, scale, honest).integers(-1, 2, size)

    monkeypatch.setattr("confide.mechanisms.slopes.select", select)
    monkeypatch.setattr("confide.federated.protocols.secure_sum.noise_share", share)


def in_process(files, folder, scores):
    """Create a federation with the same keys and policy, and fresh ledgers."""
    folder.mkdir()
    four = Federation(folder, scores, budget=4.0)
    four.keys = [files.keys[name] for name in NAMES]
    peers = {key.name: key.public_keys().identity for key in four.keys}
    four.policy = federated.Policy(files.keys["coordinator"].public().signing, 4.0, 4.0, peers=peers)
    return four


def said(message):
    """Return the content of an answer without its time."""
    return {name: value for name, value in json.loads(message)["content"].items() if name != "answered"}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_one_result_in_process_over_files_and_over_flower(
    tmp_path, monkeypatch, run, scores, method, options, fixed_noise
):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("flwr", reason="needs the extra 'flower'")
    from flwr.clientapp import ClientApp

    from confide.federated import flower
    from tests.federated.in_process_grid import InProcessGrid

    asked = ("--alpha", 0.2, "--epsilon", 4, "--score", "lac", "--candidates", "unit:41")
    columns = ("--score-column", "s", "--score", "lac")
    files = Files(run, dict(zip(NAMES, map(len, scores), strict=True)), asked=asked, columns=columns)
    for name, values in zip(NAMES, scores, strict=True):
        Path(f"{name}.csv").write_text("s\n" + "\n".join(repr(float(value)) for value in values) + "\n")
    files.plan("--method", method, *options)
    plan = Path("plan.json").read_text()
    for name in NAMES:
        files.answer(name)
    over_files = [Path(file).read_text() for file in files.answers()]
    files.aggregate()
    released = Calibration.load("released.json")

    four = in_process(files, tmp_path / "in process", scores)
    answers = four.answers(plan)
    assert [said(message) for message in answers] == [said(message) for message in over_files]
    assert federated.aggregate(plan, answers) == released

    app, nodes = ClientApp(), in_process(files, tmp_path / "flower", scores)

    def setup(context):
        i = int(context.node_config["i"])
        return flower.SiloSetup(nodes.scores[i], nodes.keys[i], nodes.policy, nodes.ledgers[i])

    flower.register(app, setup)
    over_flower, asked = flower.calibrate(InProcessGrid(app, {i: {"i": i} for i in range(4)}), plan)
    assert [asked.errors, asked.refused, asked.silent] == [{}, {}, []]
    assert sorted(map(said, asked.answers.values()), key=str) == sorted(map(said, over_files), key=str)
    assert over_flower == released

    assert released.coverage >= 0.8
    assert released.answered == NAMES
    assert np.isfinite(released.threshold)
    ledgers = [federated.SiloLedger(f"{name}.db").spent for name in NAMES]
    assert ledgers == pytest.approx([4.0] * 4)


@pytest.mark.slow
def test_deterministic_parts_agree_without_noise(tmp_path, scores):
    """At a huge epsilon both private methods give the order statistics of the theory."""
    four = Federation(tmp_path, scores, budget=1e6)
    plan = four.plan(0.2, 1e5, candidates=Candidates.unit(41))
    read_plan = federated.FederatedPlan.read(plan)[0]
    released = federated.aggregate(plan, four.answers(plan))
    targets = [int(t) for t in read_plan.protocol.targets]
    values = read_plan.candidates.values
    replies = sorted(values[np.searchsorted(values, np.sort(s)[t - 1])] for s, t in zip(scores, targets, strict=True))
    assert released.threshold == replies[released.k - 1]
    summed = four.plan(0.2, 1e5, method="secure-sum", population="common", candidates=Candidates.unit(41))
    target = federated.FederatedPlan.read(summed)[0].protocol.target
    pooled = np.sort(np.concatenate(scores))[target - 1]
    assert federated.aggregate(summed, four.answers(summed)).threshold == values[np.searchsorted(values, pooled)]


def test_a_private_evaluation_shows_what_happens_to_the_small_hospitals(tmp_path, hospitals, scores, monkeypatch):
    """The pooled threshold of a model trained on the two large hospitals covers the two small ones below the level."""
    monkeypatch.setattr("confide.federated.protocols.secure_sum.noise_share", lambda size, *_: np.zeros(size, int))
    four = Federation(tmp_path, scores)
    plan = four.plan(0.2, 4.0, method="secure-sum", score="lac", candidates=Candidates.unit(41))
    pooled = federated.aggregate(plan, four.answers(plan))
    records = [np.concatenate(parts) for parts in hospitals]  # all records that did not train the model
    large, small = (
        np.concatenate([records[i] <= pooled.threshold for i in which]).mean() for which in ((0, 1), (2, 3))
    )
    assert small < 0.75 < 0.8 < large
    for fresh in records:
        found = confide.evaluate(pooled, scores=fresh, epsilon=2.0, neighbors="replace_one")
        assert found.coverage.low <= np.mean(fresh <= pooled.threshold) <= found.coverage.high
