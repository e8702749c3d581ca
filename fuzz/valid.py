"""Valid documents of every kind, made once; fuzzing and tests of readers change them."""

import json
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import confide
from confide import federated
from confide.candidates import Candidates
from confide.core import ClassShift, Release
from confide.evaluation import evaluate_intervals, evaluate_scores, evaluate_sets
from confide.tables import Columns, TargetColumns
from confide.tables.bin_counts import Job
from confide.tables.unread import UnreadTable
from confide.watching import Watch
from fuzz.source import with_checksum


@cache
def releases() -> tuple[Any, ...]:
    """Valid releases of every mechanism, of several thresholds and for other populations, as JSON values."""
    rng = np.random.default_rng(0)
    p, scores, labels = rng.random((400, 4)), rng.random(400), np.array(["a", "b"])[rng.integers(0, 2, 400)]
    public, few = {"neighbors": "replace_one"}, confide.Candidates.unit(20)
    options: list[dict[str, Any]] = [
        {"epsilon": 1.0, "score": "lac"},
        {"epsilon": 1.0, "score": "absolute_residual", **public},
        {"rho": 0.1, "candidates": confide.Candidates.of([0.1, 0.5, 0.9])},
        {"epsilon": 2.0, "delta": 0.1, "n_min": 50, "records_per_person": 2},
        {"epsilon": 5.0, "mechanism": "pps", **public},
        {"epsilon": 5.0, "mechanism": "pps", "n_min": 200, "candidates": confide.Candidates.published(20)},
        {"epsilon": 5.0, "mechanism": "noisy-histogram", **public},
        {"epsilon": 2.0, "mechanism": "opendp-quantile"},
        {"mechanism": "none", **public},
        {"epsilon": 2.0, "weights": rng.choice([0.5, 1.0], 400), "weight_bound": 1.0, "candidates": few},
        {
            "epsilon": 2.0,
            "class_weights": ClassShift.of_shares({"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.8}),
            "labels": labels,
            "score": "lac",
            "classes": ["a", "b"],
            "candidates": few,
        },
    ]
    law = confide.Noise.discrete_laplace(2.0, copies=2)
    number = {"n_noisy": 900, "n_noise": confide.Noise.discrete_laplace(5.0)}
    counted = confide.PublishedCounts(rng.integers(0, 90, 20), few, law, score="lac", **number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [confide.calibrate(scores, 0.1, **one) for one in options]
        levels = confide.calibrate(p[:, 0], [0.3, 0.1], 4.0, score="lac", neighbors="replace_one")
        made += [
            *(release for release, _ in evaluated()[1:5]),
            confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 4.0),
            confide.recalibrate(levels, p[:, 1], about={"date": "2026"}),
            confide.calibrate_counts(counted, 0.1),
        ]
        return tuple(json.loads(one.to_json()) for one in made)


def steep() -> str:
    """A release whose weights exceed all floats, signed again; it once made every reader overflow."""
    document = json.loads(json.dumps(releases()[0]))
    document["thresholds"][0]["mechanism"] |= {"rise": 10**9, "flat": "0"}
    return str(with_checksum(document))


@cache
def evaluated() -> tuple[tuple[Release, Any], ...]:
    """Releases, and the JSON of evaluations on labelled records: one threshold, levels, groups, classes, sides."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([4, 2, 1], size=600)
    y = (p.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    scores, ward = confide.lac_score(p, y), np.array(["north", "south"])[rng.integers(0, 2, 600)]
    width, target = np.tile([-1.0, 1.0], (600, 1)), rng.normal(size=600)
    one = confide.calibrate(scores, 0.1, 2.0, score="lac")
    levels = confide.calibrate(scores, [0.3, 0.1], epsilon=4.0, score="lac")
    groups = confide.calibrate(scores, 0.2, 4.0, groups=ward, names=["north", "south"], score="lac")
    classes = confide.calibrate(scores, 0.3, 8.0, groups=y, names=[0, 1, 2], by="class", score="lac")
    sides = confide.calibrate_sides(width, target, 0.2, 4.0)
    found: list[tuple[Release, Any]] = [
        (one, evaluate_sets(one, p, y)),
        (levels, evaluate_sets(levels, p, y)),
        (groups, evaluate_sets(groups, p, y, groups=ward)),
        (classes, evaluate_sets(classes, p, y)),
        (sides, evaluate_intervals(sides, width, target)),
        (levels, evaluate_scores(levels, scores)),
    ]
    return tuple((release, json.loads(one.to_json())) for release, one in found)


@cache
def privately_evaluated() -> tuple[Any, ...]:
    """Valid private evaluations, as JSON values: by class and size, of groups, levels, sides, and of a loss."""
    rng = np.random.default_rng(0)
    p, ward = rng.dirichlet([4, 2, 1], size=300), np.array(["north", "south"])[rng.integers(0, 2, 300)]
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    scores, labels = confide.lac_score(p, y), rng.random(p.shape) < p
    width, target = np.tile([-1.0, 1.0], (300, 1)), rng.normal(size=300)
    public = confide.Candidates.unit(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = confide.calibrate(scores, 0.1, 2.0, score="lac", candidates=public)
        levels = confide.calibrate(scores, [0.3, 0.1], epsilon=4.0, score="lac", candidates=public)
        sides = confide.calibrate_sides(width, target, 0.2, 4.0)
        risk = confide.calibrate_false_negatives(p, labels, 0.2, 4.0)
        found = (
            confide.evaluate(one, probabilities=p, labels=y, epsilon=1.0),
            confide.evaluate(
                one, scores=scores, epsilon=1.0, groups=ward, group_names=["north", "south"], neighbors="replace_one"
            ),
            confide.evaluate(levels, probabilities=p, labels=y, epsilon=1.0),
            confide.evaluate(sides, predictions=width, targets=target, epsilon=1.0),
            confide.evaluate(risk, scores=scores, epsilon=0.5, records_per_person=2),
        )
    return tuple(json.loads(each.to_json()) for each in found)


@cache
def watches() -> tuple[Any, ...]:
    """Valid states of watches, as JSON values: of coverage, of groups, of sizes, and of sizes with a reference."""
    rng = np.random.default_rng(0)
    scores, ward = rng.random(300), np.array(["north", "south"])[rng.integers(0, 2, 300)]
    public = confide.Candidates.unit(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = confide.calibrate(scores, 0.1, 2.0, score="lac", classes=3, candidates=public)
        groups = confide.calibrate(scores, 0.2, 4.0, groups=ward, names=["north", "south"], candidates=public)
        p = rng.dirichlet([4, 2, 1], size=300)
        known = confide.evaluate(one, probabilities=p, labels=p.argmax(axis=1), epsilon=1.0, parts=["size"])
    begun: dict[str, Any] = {"epsilon": 1.0, "batch": 300}
    of_sizes = Watch.start(one, **begun, bins=(0, 1, 2, 3))
    made = (
        Watch.start(one, **begun).with_look("a", [260, 40]).with_look("b", [200, 100]),
        Watch.start(groups, **begun, neighbors="replace_one").with_look("a", [130, 20, 120, 30]),
        of_sizes.with_look("a", [3, 200, 80, 20]).with_look("b", [-1, 100, 100, 100]),
        Watch.start(one, **begun, bins=(0, 1, 2, 3), reference=known).with_look("a", [3, 200, 80, 20]),
    )
    return tuple(json.loads(each.to_json()) for each in made)


@cache
def counted() -> tuple[list[Job], str]:
    """What the query of both sides of intervals counts, and its digest."""
    what = TargetColumns(("f", "g"), "t", "cqr_sides")
    columns = Columns(what)
    table = UnreadTable(columns)
    jobs = [Job(one, Candidates.unit(12)) for one in columns.source(table).records]
    return jobs, table.digest(jobs)


class Federation(NamedTuple):
    """Valid messages of a federation, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silos: list[federated.SiloKeys]
    plan: str
    answers: list[str]
    released: str


@cache
def federation() -> Federation:
    """A plan of three silos, one answer to it, and the release from all answers."""
    keys = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
    coordinator = federated.SiloKeys.generate("coordinator")
    edges = confide.Candidates.unit(20)
    plan = federated.plan([k.public(size=60) for k in keys], 0.2, 2.0, candidates=edges, method="private-qq").sign(
        coordinator
    )
    policy = federated.Policy(coordinator=coordinator.public().signing, budget=10.0, per_plan=10.0)
    scores, answers = np.random.default_rng(0).random(60), []
    with tempfile.TemporaryDirectory() as folder:
        for k in keys:
            state = federated.SiloLedger(Path(folder) / f"{k.name}.db")
            answers.append(federated.answer(plan, scores, k, policy, state))
    released = federated.aggregate(plan, answers)
    return Federation(coordinator, keys, plan, answers, released.to_json())


class Team(NamedTuple):
    """Valid messages about two levels and about two groups, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silo: federated.SiloKeys
    plans: tuple[str, ...]
    answers: tuple[str, ...]
    released: tuple[str, ...]


@cache
def team() -> Team:
    """Two silos that answer two levels of a sum, and two groups."""
    keys, boss = [federated.SiloKeys.generate(f"s{i}") for i in range(2)], federated.SiloKeys.generate("coordinator")
    few, scores = confide.Candidates.unit(6), np.random.default_rng(0).random(60)
    public, secret = [k.public(60) for k in keys], [k.public() for k in keys]
    levels = federated.plan(public, [0.4, 0.3], 8.0, candidates=few, method="secure-sum")
    groups = federated.plan(secret, 0.4, 8.0, by="group", names=["a", "b"], candidates=few, n_typical=30)
    plans = (levels.sign(boss), groups.sign(boss))
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(boss.public().identity, budget=40.0, per_plan=20.0, peers=peers)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for text, names in zip(plans, (None, ["a", "b"] * 30), strict=True):
            ledgers = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in keys]
            answers.append(
                [
                    federated.answer(text, scores, k, policy, ledger, groups=names)
                    for k, ledger in zip(keys, ledgers, strict=True)
                ]
            )
    released = tuple(federated.aggregate(text, sent).to_json() for text, sent in zip(plans, answers, strict=True))
    return Team(boss, keys[0], plans, tuple(sent[0] for sent in answers), released)


class Replied(NamedTuple):
    """Valid messages of a sum of replies and of replies in the clear, and the keys that sign them."""

    silo: federated.SiloKeys
    text: str
    answer: str
    released: str
    share: str


@cache
def replied() -> Replied:
    """Three silos that add their replies up, and send them in the clear for another plan."""
    keys, boss = [federated.SiloKeys.generate(f"s{i}") for i in range(3)], federated.SiloKeys.generate("coordinator")
    public, few = [k.public(size=60) for k in keys], confide.Candidates.unit(6)
    hidden = federated.plan(public, 0.4, 10.0, candidates=few, method="fedcp2-qq-sum").sign(boss)
    opened = federated.plan(public, 0.2, 4.0, candidates=few, method="private-qq").sign(boss)
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(
        boss.public().identity, budget=40.0, per_plan=20.0, methods=("fedcp2-qq-sum", "private-qq"), peers=peers
    )
    scores, sent = np.random.default_rng(0).random(60), {}
    with tempfile.TemporaryDirectory() as folder:
        ledgers = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in keys]
        for plan in (hidden, opened):
            sent[plan] = [federated.answer(plan, scores, k, policy, one) for k, one in zip(keys, ledgers, strict=True)]
    share = federated.own_share(federated.aggregate(opened, sent[opened]), sent[opened][0]).to_json()
    return Replied(keys[0], hidden, sent[hidden][0], federated.aggregate(hidden, sent[hidden]).to_json(), share)


def policy() -> federated.Policy:
    """A policy that pins its peers."""
    own = federation()
    peers = {keys.name: keys.public_keys().identity for keys in own.silos}
    return federated.Policy(own.coordinator.public_keys().identity, budget=4.0, per_plan=2.0, peers=peers)
