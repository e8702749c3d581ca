"""Write the kept files that are missing."""

import json
import sqlite3
import tempfile
import warnings
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide import federated
from confide.core import ClassShift
from confide.federated.silo_ledger import KIND as CHECKPOINT_KIND
from confide.ledger import Cost, Ledger
from confide.scores import all_scores
from confide.watching import CorrectedRelease, Watch
from confide.watching.looks import LOOK_KIND
from tests.kept import FOLDER, RELEASES, keys_of, names, path_of, read, text_of

N, NAMES, NOW = 400, ["süd", "1"], datetime(2026, 11, 28, tzinfo=UTC)
RNG = np.random.default_rng(20261128)
PUBLIC: dict[str, Any] = {"neighbors": "replace_one"}
FEW = confide.Candidates.unit(20)
P = RNG.dirichlet([4, 2, 1], N)
Y = (P.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)
SCORES, WARD = np.asarray(confide.lac_score(P, Y)), RNG.choice(NAMES, N)
WIDTH, TARGET = np.tile([-1.0, 1.0], (N, 1)), RNG.normal(size=N)


def releases() -> dict[str, Any]:
    """Every type of key, and every form of guarantee, loss and candidates."""
    asked: dict[str, dict[str, Any]] = {
        "calibration": {"score": "lac", "classes": ["a", "b", "c"]},
        "calibration-delta": {
            "delta": "1/20",
            "score": "Abstand |ŷ − y| „größer“ 分数",
            "records_per_person": 2,
            "candidates": confide.Candidates.of([0.2, 0.5, 0.9]),
        },
        "calibration-infinite": {"epsilon": 0.001, **PUBLIC},
        "pps": {"mechanism": "pps", **PUBLIC},
    }
    ways = {"alpha": 0.1, "epsilon": 1.0, "score": "a score", "candidates": FEW}
    made: dict[str, Any] = {name: confide.calibrate(SCORES, **{**ways, **own}) for name, own in asked.items()}
    own: dict[str, Any] = {"candidates": FEW, "score": "lac"}
    letters, mixed = np.array(["a", "b", "c"])[Y], np.array([7, "b"], dtype=object)[(WARD == "1").astype(int)]
    shift = ClassShift.of_shares({"a": 0.6, "b": 0.3, "c": 0.1}, {"a": 0.3, "b": 0.3, "c": 0.4})
    levels = confide.calibrate(SCORES, [0.3, "1/10"], 3.0, **own)
    truth = RNG.random(P.shape) < P
    counts = confide.PublishedCounts(
        np.random.default_rng(0).integers(100, 200, 20), FEW, confide.Noise.discrete_laplace(2.0, copies=2), n=3000,
        score="lac",
    )  # fmt: skip
    offers = {"lac": confide.lac_score(P, Y), "margin": confide.margin_score(P, Y)}
    of_labels = {name: all_scores(P, name) for name in offers}
    made |= {
        "levels": levels,
        "groups": confide.calibrate(SCORES, 0.1, 2.0, groups=WARD, names=NAMES, **own),
        "groups-rho": confide.calibrate(SCORES, 0.1, groups=mixed, names=[7, "b", -(10**30)], rho=0.5, **PUBLIC, **own),
        "overlapping": confide.calibrate(
            SCORES, 0.2, 4.0, groups={"ward": WARD, "site": ["x"] * N}, names={"ward": NAMES, "site": ["x"]}, **own
        ),
        "sides": confide.calibrate_sides(WIDTH, TARGET, (0.1, 0.2), 3.0, share_low="0.25"),
        "risk": confide.calibrate_false_negatives(P, truth, 0.2, 2.0, candidates=FEW),
        "renewed": confide.recalibrate(
            confide.recalibrate(made["calibration"], SCORES, about={"date": "2026-02", "model": "m"}), SCORES
        ),
        "class-shares": confide.calibrate(
            SCORES, 0.1, 2.0, class_weights=shift, labels=letters, classes=["a", "b", "c"], **own
        ),
        "chosen": confide.choose_score(offers, 0.1, 2.0, sizes=of_labels).calibrate(),
        "published-counts": counts,
        "counts-calibration": confide.calibrate_counts(counts, 0.1),
    }
    return made


def others(made: dict[str, Any]) -> dict[str, Any]:
    """Evaluations and watches."""
    one, letters = made["calibration"], np.array(["a", "b", "c"])[Y]
    sizes = confide.evaluate(one, probabilities=P, labels=letters, epsilon=1.0, parts=["size"])
    begun: dict[str, Any] = {"epsilon": 1.0, "batch": N}
    watch = Watch.start(one, **begun, tolerance=0.05, looks=12)
    for day in range(8):
        watch = watch.with_look(f"day {day}", [300, 100])
    correcting = Watch.start(one, **begun, correct="1/10", looks=12).with_look("a", [360, 40])
    return {
        "sets": confide.evaluation.evaluate_sets(one, P, letters, ["a", "b", "c"], groups=WARD),
        "intervals": confide.evaluation.evaluate_intervals(made["sides"], WIDTH, TARGET),
        "private-sets": confide.evaluate(one, probabilities=P, labels=letters, epsilon=1.0),
        "watch": Watch.start(made["groups"], **begun).with_look("a", [160, 40, 170, 30]),
        "watch-alarm": watch,
        "watch-sizes": Watch.start(one, **begun, bins=(0, 1, 2, 3), reference=sizes).with_look("a", [3, 300, 80, 20]),
        "watch-correction": correcting,
        "corrected": CorrectedRelease(one, correcting),
    }


def federation() -> dict[str, str]:
    """Messages of a sum, a signed release of several levels, a share, and the files of a silo."""
    boss, *silos = (keys_of(name) for name in ("coordinator", "north", "south", "east", "west", "centre"))
    public = [one.public(150, now=NOW) for one in silos]
    policy = federated.Policy(
        boss.public().identity, 90.0, 50.0, methods=federated.METHODS, peers={one.name: one.identity for one in public}
    )
    few: dict[str, Any] = {"candidates": confide.Candidates.unit(11)}
    plan = federated.plan(public, 0.2, 4.0, method="secure-sum", **few).sign(boss)
    levels = federated.plan(public[:3], [0.4, 0.3], 8.0, method="secure-sum", **few).sign(boss)
    replies = federated.plan(public[:3], 0.2, 6.0, method="private-qq", score="lac", classes=["a", "b"], **few).sign(
        boss
    )
    scores = [RNG.random(150) for _ in silos]
    with tempfile.TemporaryDirectory() as folder:
        own = [federated.SiloLedger(Path(folder) / f"{one.name}.db") for one in silos]
        everybody = list(zip(silos, own, scores, strict=True))
        sent = {
            text: [federated.answer(text, s, one, policy, ledger, now=NOW) for one, ledger, s in everybody[:silos_of]]
            for text, silos_of in ((plan, 5), (levels, 3), (replies, 3))
        }
        checkpoint = json.dumps({"kind": CHECKPOINT_KIND, "schema": 1, "number": 0, "seal": ""}) + "\n"
    replied = federated.aggregate(replies, sent[replies], keys=boss)
    return {
        "federated-plan": plan,
        "federated-answer": sent[plan][0],
        "federated": federated.aggregate(plan, sent[plan]).to_json(),
        "federated-plans": levels,
        "federated-levels": federated.aggregate(levels, sent[levels], keys=boss).to_json(),
        "own-share": federated.own_share(replied, sent[replies][0]).to_json(),
        "signed-release": federated.sign(confide.load(path_of("pps")), boss),
        "silo": public[0].to_json(),
        "policy": policy.to_json(),
        "checkpoint": checkpoint,
    }


def ledger() -> None:
    """A ledger with an account, and its export."""
    path = FOLDER / "kept.ledger"
    if path.exists():
        return
    own = Ledger(path)
    own.set_limit("patients", 2.0)
    own.attach(own.charge("patients", Cost(0.5, "add_remove", "slopes"), "0" * 64), "what was released", b"seen")
    confide.calibrate(np.arange(9.0), 0.2, mechanism="none", ledger=own, dataset="public size")
    path_of("ledger").write_text(json.dumps(own.export(), indent=1) + "\n")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for other in ("-wal", "-shm"):
        path.with_name(path.name + other).unlink(missing_ok=True)


def write(texts: dict[str, str]) -> None:
    """Write the files that are missing."""
    for name, text in texts.items():
        if not path_of(name).exists():
            path_of(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    write({name: value.to_json() for name, value in releases().items()})
    write(
        {name: value.to_json() for name, value in others({one: read(text_of(one)) for one in names(*RELEASES)}).items()}
    )
    look = {"kind": LOOK_KIND, "schema": 1, "release": "0" * 64, "name": "a", "made": NOW.isoformat()}
    write({"look": json.dumps({**look, "counts": [91, -2], "versions": {"opendp": "0.16.0"}})})
    if not path_of("private-keys").exists():
        keys_of("coordinator").save(path_of("private-keys"))
    write(federation())
    ledger()
