"""Four real hospitals: a model trained elsewhere, federated in process, over files and over Flower, with one result."""

import csv
import dataclasses
import hashlib
import json

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.cli import main
from confide.federated.silo_report import coverage_in_silo, own_calibration, shrunk_threshold
from confide.releases.calibration import Calibration
from experiments.federated.heart import NAMES, split
from tests.data import shared_data
from tests.federated.helpers import Federation

METHODS = [("private-qq", ["--dropouts", 1]), ("secure-sum", [])]


@pytest.fixture(scope="module")
def hospitals():
    """Scores of all four hospitals, to calibrate and to test, of a model from a third of the first two."""
    for name in NAMES:
        shared_data(f"uci_heart/{name}.csv")
    return list(zip(*split(0), strict=True))


@pytest.fixture
def scores(hospitals):
    return [calibration for calibration, _ in hospitals]


@pytest.fixture
def fixed_noise(monkeypatch):
    """Every draw becomes a function of what it is drawn for. Only a test can do this: no argument leads to it."""

    def generator(*parts):
        return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big"))

    def select(utilities, scale, selector):
        noise = generator(utilities.tolist(), scale, selector).exponential(size=len(utilities))
        return int(np.argmax(utilities / scale + noise))

    def share(size, scale, honest):
        return generator(size, scale, honest).integers(-1, 2, size)

    monkeypatch.setattr("confide.mechanisms.slopes.select", select)
    monkeypatch.setattr("confide.federated.protocols.secure_sum.noise_share", share)


def run(*arguments):
    assert main([str(a) for a in arguments]) == 0, arguments


class Files:
    """Four hospitals that exchange files by the command line: two commands each."""

    def __init__(self, folder, scores):
        self.folder, self.commands = folder, dict.fromkeys(NAMES, 0)
        folder.mkdir()
        self.coordinate(
            "keygen", "coordinator", "--keys", self.path("coordinator.key"), "--public", self.path("c.json")
        )
        for name, values in zip(NAMES, scores, strict=True):
            with self.path(f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows([["score"], *[[repr(float(v))] for v in values]])
            private, public = self.path(f"{name}.key"), self.path(f"{name}.json")
            self.hospital(name, "keygen", name, "--keys", private, "--public", public, "--size", len(values))

    def path(self, name):
        return self.folder / name

    def coordinate(self, *arguments):
        run("federated", *arguments)

    def hospital(self, name, *arguments):
        self.commands[name] += 1
        run("federated", *arguments)

    def plan(self, method, *options):
        silos = [part for name in NAMES for part in ("--silo", self.path(f"{name}.json"))]
        promise = ["--alpha", 0.2, "--epsilon", 4, "--score", "lac", "--candidates", "unit:41", "--method", method]
        keys, out = ["--keys", self.path("coordinator.key")], ["--out", self.path("plan.json")]
        self.coordinate("plan", *silos, *keys, *promise, *out, *options)
        return self.path("plan.json").read_text()

    def answer(self, name):
        out = self.path(f"{name}-answer.json")
        peers = [part for other in NAMES if other != name for part in ("--peer", self.path(f"{other}.json"))]
        own = ["--keys", self.path(f"{name}.key"), "--ledger", self.path(f"{name}.db"), "--budget", 4, *peers]
        what = ["--plan", self.path("plan.json"), "--coordinator", self.path("c.json"), "--out", out]
        columns = [self.path(f"{name}.csv"), "--score-column", "score", "--score", "lac"]
        self.hospital(name, "answer", *columns, *what, *own)
        return out.read_text()

    def aggregate(self):
        answers = [self.path(f"{name}-answer.json") for name in NAMES]
        self.coordinate("aggregate", *answers, "--plan", self.path("plan.json"), "--out", self.path("released.json"))
        return Calibration.load(self.path("released.json"))

    def federation(self, folder):
        """The same keys and policy in process, with fresh ledgers, which keys with a memory would refuse."""
        folder.mkdir()
        four = Federation(folder, [np.loadtxt(self.path(f"{name}.csv"), skiprows=1) for name in NAMES], budget=4.0)
        kept = [federated.SiloKeys.load(self.path(f"{name}.key")) for name in NAMES]
        four.keys = [dataclasses.replace(keys, memory=None) for keys in kept]
        coordinator = federated.SiloKeys.load(self.path("coordinator.key"))
        peers = {key.name: key.face().identity for key in four.keys}
        four.policy = federated.Policy(coordinator.public().signing, 4.0, 4.0, peers=peers)
        return four


def said(message):
    """What an answer says, apart from when."""
    return {name: value for name, value in json.loads(message)["content"].items() if name != "answered"}


@pytest.mark.some(1)
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_one_result_in_process_over_files_and_over_flower(tmp_path, scores, method, options, fixed_noise):
    pytest.importorskip("flwr", reason="needs the extra 'flower'")
    from flwr.clientapp import ClientApp

    from confide.federated import flower
    from tests.federated.in_process_grid import InProcessGrid

    files = Files(tmp_path / "files", scores)
    plan = files.plan(method, *options)
    over_files = [files.answer(name) for name in NAMES]
    released = files.aggregate()
    assert max(files.commands.values()) <= 3

    four = files.federation(tmp_path / "in process")
    in_process = four.answers(plan)
    assert [said(message) for message in in_process] == [said(message) for message in over_files]
    assert federated.aggregate(plan, in_process) == released

    app, nodes = ClientApp(), files.federation(tmp_path / "flower")

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
    ledgers = [federated.SiloLedger(files.path(f"{name}.db")).spent for name in NAMES]
    assert ledgers == pytest.approx([4.0] * 4)


def test_deterministic_parts_agree_without_noise(tmp_path, scores):
    """At a huge epsilon both private methods give the order statistics that theory names."""
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


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # so few patients: now and then no finite threshold
def test_per_silo_report_shows_what_happens_to_the_small_hospitals(tmp_path, hospitals, scores, monkeypatch):
    """Trained on the two large ones, the pooled threshold covers the two small ones below the level itself."""
    monkeypatch.setattr("confide.federated.protocols.secure_sum.noise_share", lambda size, *_: np.zeros(size, int))
    four = Federation(tmp_path, scores)
    plan = four.plan(0.2, 4.0, method="secure-sum", score="lac", candidates=Candidates.unit(41))
    pooled = federated.aggregate(plan, four.answers(plan))
    records = [np.concatenate(parts) for parts in hospitals]  # all that the model has not seen
    large, small = (
        np.concatenate([records[i] <= pooled.threshold for i in which]).mean() for which in ((0, 1), (2, 3))
    )
    assert small < 0.75 < 0.8 < large
    reports = [coverage_in_silo(name, s, pooled.threshold, 2.0) for name, s in zip(NAMES, records, strict=True)]
    for report, fresh in zip(reports, records, strict=True):
        assert report.estimate.low <= np.mean(fresh <= pooled.threshold) <= report.estimate.high
        assert report.epsilon == 2.0
    # A threshold of its own, or the larger of the two, restores what a small hospital was promised.
    for i in (2, 3):
        own = own_calibration(scores[i], 0.2, 4.0, score="lac", candidates=Candidates.unit(41))
        assert own.coverage >= 0.8
        raised = shrunk_threshold(pooled, own)
        assert raised >= max(pooled.threshold, own.threshold)
        assert np.mean(records[i] <= raised) >= np.mean(records[i] <= pooled.threshold)
