"""Files of the kinds and schemas that no other sample has: run once with 0.2: `python -m tests.samples_of_0_2`.

Keys, noise and signatures cannot be drawn again. They lie in folders `samples/other`, and those of a federation in
`tests/federated/samples/0.2`, whose keys protect nothing else. Files that exist are left as they are.
"""

import json
import sqlite3
import tempfile
import warnings
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide import federated
from confide.candidates import Candidates
from confide.ledger import Cost, Ledger
from confide.tables import ClassColumns, ScoreColumn
from confide.warehouse import CountingPlan

TESTS = Path(__file__).parent
FEDERATED = TESTS / "federated" / "samples" / "0.2"
PARTS = ("plan", "answers", "openings", "parts", "released")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def write(path: Path, text: str) -> None:
    """A file that is not there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(text, encoding="utf-8")


def documents() -> dict[str, str]:
    """Texts by their names below `tests`."""
    rng = np.random.default_rng(1)
    p, ward = rng.dirichlet([4, 2, 1], 400), np.array(["north", "south"])[rng.integers(0, 2, 400)]
    y = (p.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    plain = confide.calibrate(confide.lac_score(p, y), 0.1, mechanism="none")
    old = confide.evaluate_sets(plain, p, y, groups=ward)
    scored = CountingPlan.of(
        ScoreColumn("s"), "0.1", 1.0, candidates=Candidates.unit(20), n=400, neighbors="replace_one"
    )
    classes = CountingPlan.of(
        ClassColumns(("a", "b"), "y", ("a", "b")), Fraction(1, 5), 2.0, by="ward", groups=("n", "s")
    )
    spread = confide.calibrate(confide.lac_score(p, y), 0.1, 2.0, score="lac")
    look = {"kind": "confide.look", "schema": 1, "look": "a", "release": "0" * 64, "made": "2026-11-22T00:00:00+00:00"}
    return {
        "releases/samples/other/spread.json": spread.to_json(),
        "evaluation/samples/other/subgroups.json": old.to_json(),
        "warehouse/samples/other/scores.json": scored.to_json(),
        "warehouse/samples/other/classes-by-ward.json": classes.to_json(),
        "watching/samples/other/look.json": json.dumps({**look, "counts": [91, -2]}),
    }


def ledgers() -> None:
    """A ledger, and its export with a release without privacy; both have schema 2."""
    path = TESTS / "ledger" / "samples" / "other" / "schema-2.ledger"
    if path.exists():
        return
    path.parent.mkdir(parents=True)
    own = Ledger(path)
    own.set_limit("patients", 2.0)
    own.attach(own.charge("patients", Cost(0.5, "add_remove", "slopes"), "0" * 64), "what was released", b"seen")
    confide.calibrate(np.arange(9.0), 0.2, mechanism="none", ledger=own, dataset="public size")
    write(path.with_name("no-schedule.export.json"), json.dumps(own.export(), indent=1) + "\n")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for other in ("-wal", "-shm"):
        path.with_name(path.name + other).unlink(missing_ok=True)


def keys(name: str) -> federated.SiloKeys:
    """The keys of a name, created if missing."""
    path = FEDERATED / "keys" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        federated.SiloKeys.generate(name).save(path)
    return federated.SiloKeys.load(path)


def federations() -> None:
    """Messages and releases of several levels, several groups, both rounds of a sum, replies, and a share."""
    boss, silos = keys("coordinator"), [keys(name) for name in ("north", "south", "east", "west", "centre")]
    few, rng = Candidates.unit(11), np.random.default_rng(2)
    scores = [rng.random(150) for _ in silos]
    public, secret = [k.public(150, now=NOW) for k in silos], [k.public(now=NOW) for k in silos]
    policy = federated.Policy(
        boss.public().identity, 90.0, 50.0, methods=federated.METHODS, peers={one.name: one.identity for one in public}
    )
    options: dict[str, Any] = {"candidates": few}
    plans = {
        "levels": federated.plan_levels(public, [0.4, 0.3], 8.0, method="secure-sum", **options),
        "groups": federated.plan_groups(secret, ["a", "b"], 0.4, 8.0, n_typical=75, **options),
        "opened": federated.plan(public, 0.2, 4.0, method="secure-sum", dropouts=1, **options),
        "private-qq": federated.plan(
            public, 0.2, 6.0, method="private-qq", about={"model": "m"}, classes=["a", "b"], score="lac", **options
        ),
    }
    for name, plan in plans.items():
        if not (FEDERATED / name / "plan.json").exists():
            _round(name, plan.sign(boss), boss, silos, scores, policy)
    for other in (FEDERATED / "keys").glob("*.sessions"):
        other.unlink()
    write(FEDERATED / "silo.json", public[0].to_json())
    write(FEDERATED / "policy.json", policy.to_json())


def _round(name: str, text: str, boss: Any, silos: Any, scores: Any, policy: Any) -> None:
    found: dict[str, Any] = {"plan": text}
    with tempfile.TemporaryDirectory() as folder:
        own = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in silos]
        named = {"groups": ["a", "b"] * 75} if name == "groups" else {}
        everybody = list(zip(silos, own, scores, strict=True))
        found["answers"] = [federated.answer(text, s, k, policy, one, now=NOW, **named) for k, one, s in everybody]
        if name == "opened":
            asked = federated.openings(text, found["answers"], boss)
            helping = [(k, one) for k, one, _ in everybody if k.name in asked]
            found["openings"] = [asked[k.name] for k, _ in helping]
            found["parts"] = [federated.open_part(text, asked[k.name], k, policy, one) for k, one in helping]
    more: dict[str, Any] = {"keys": boss} if name in ("levels", "private-qq") else {}  # signed by the coordinator
    released = federated.aggregate(text, found["answers"], parts=found.get("parts", ()), **more)
    found["released"] = released.to_json()
    for part, value in found.items():
        kept = value if isinstance(value, str) else json.dumps(value, indent=1) + "\n"
        write(FEDERATED / name / f"{part}.json", kept)
    if name == "private-qq":
        write(FEDERATED / "own-share.json", federated.own_share(released, found["answers"][0]).to_json())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, text in documents().items():
        write(TESTS / name, text)
    ledgers()
    federations()
