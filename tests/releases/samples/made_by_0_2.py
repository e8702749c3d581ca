"""Files of the kinds that 0.2 brought, and what they said: run with 0.2 installed, `python made_by_0_2.py TESTS`.

Counts are drawn with noise that no one can repeat, so the files were made once and are kept. `TESTS` is the folder
`tests`: each of the folders in `FOLDERS` below it gets files and `expected.json`. `said` goes by public attributes
alone, and serves the tests of later versions, too.
"""

import json
import sqlite3
import sys
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide import releases
from confide.evaluation import PrivateEvaluation
from confide.ledger import Cost, Ledger, PlannedReleases, Schedule, check_head
from confide.planning import ClassShift
from confide.releases import parts_of, predecessors_of
from confide.watching import Watch

FOLDERS = {
    kind: Path(kind) / "samples" / "0.2" for kind in ("releases", "evaluation", "watching", "ledger")
}  # where each kind of file is kept

_PLANNED = (PlannedReleases("calibration", 6, 6, 0.25, "permute_and_flip"), PlannedReleases("look", 52, 2, 0.1))
YEAR = Schedule(3.0, 0.0, "basic", _PLANNED)


def said(value: Any) -> dict[str, Any]:
    """What a release, a private evaluation, a watch or a schedule says, as JSON."""
    match value:
        case PrivateEvaluation():
            found = {
                name: [_interval(one.coverage), {kind: list(map(_interval, own)) for kind, own in one.parts.items()}]
                for name, one in value.findings.items()
            }
            return {"found": found, "epsilon": value.privacy.epsilon, "counts": value.counts}
        case Watch():
            points = [[one.log_evidence, one.low, one.high, one.alarmed] for one in value.points]
            settings = [value.settings.noise_epsilon, list(value.settings.least), list(value.settings.bins)]
            return {"points": points, "settings": settings, "looks": [one.name for one in value.looks]}
        case Schedule():
            return {"loss": value.loss, "statement": value.statement}
    parts = {str(name): [part.threshold, part.coverage] for name, part in parts_of(value).items()}
    before = [[one.checksum, one.threshold] for one in predecessors_of(value)]
    return {"parts": parts, "epsilon": value.privacy.epsilon, "predecessors": before}


def _interval(found: Any) -> list[float]:
    return [found.value, found.low, found.high]


def read(text: str) -> Any:
    """What a file of any of these kinds holds."""
    document = getattr(releases, "Document", releases.Release)  # as 0.2 called both
    return (Schedule if json.loads(text)["kind"] == "confide.schedule" else document).from_json(text)


def made() -> dict[str, dict[str, Any]]:
    """One of every kind, by folder and name."""
    rng = np.random.default_rng(20261122)
    n, public = 400, confide.Candidates.unit(40)
    p, ward = rng.dirichlet([4, 2, 1], n), np.array(["north", "south"])[rng.integers(0, 2, n)]
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    scores, width, target = confide.lac_score(p, y), np.tile([-1.0, 1.0], (n, 1)), rng.normal(size=n)
    first = confide.calibrate(scores, 0.1, 2.0, score="lac", classes=3, candidates=public)
    second = confide.recalibrate(first, scores, about={"date": "2026-02"})
    levels = confide.calibrate_levels(scores, [0.3, 0.1], epsilon=4.0, score="lac", candidates=public)
    groups = confide.calibrate_groups(scores, ward, ["north", "south"], 0.2, 4.0, candidates=public)
    sides = confide.calibrate_sides(width, target, 0.2, 4.0)
    shift = ClassShift.of_shares({"0": 0.6, "1": 0.3, "2": 0.1}, {"0": 0.3, "1": 0.3, "2": 0.4})
    ways: dict[str, Any] = {"score": "lac", "classes": ["0", "1", "2"], "candidates": public}
    weights = {"weights": rng.choice([0.5, 1.0], n), "weight_bound": 1.0}
    divided = {"groups": ward, "group_names": ["north", "south"]}
    sizes = confide.evaluate(first, probabilities=p, labels=y, epsilon=1.0, parts=["size"])
    noisy = confide.randomise_labels(y, 3, 3.0)
    begun: dict[str, Any] = {"epsilon": 1.0, "batch": 400}
    bins: dict[str, Any] = {"bins": (0, 1, 2, 3)}
    theirs = confide.Candidates.published(20)
    published: dict[str, Any] = {"mechanism": "pps", "n_min": 200, "score": "lac", "candidates": theirs}
    return {
        "releases": {
            "renewed": second,
            "renewed-twice": confide.recalibrate(second, scores),
            "renewed-levels": confide.recalibrate(levels, scores),
            "class-shares": confide.calibrate(scores, 0.1, 2.0, class_weights=shift, labels=y.astype(str), **ways),
            "noisy-labels": confide.calibrate_noisy_labels(p, noisy, 0.2, about={"model": "m"}),
            "record-weights": confide.calibrate(scores, 0.1, 2.0, **weights, **ways),
            "pps-secret-n": confide.calibrate(scores, 0.1, 5.0, **published),
        },
        "evaluation": {
            "private-sets": confide.evaluate(first, probabilities=p, labels=y, epsilon=1.0),
            "private-sizes": sizes,
            "private-groups": confide.evaluate(groups, scores=scores, groups=ward, epsilon=1.0),
            "private-public-n": confide.evaluate(first, scores=scores, epsilon=1.0, neighbors="replace_one", **divided),
            "private-levels": confide.evaluate(levels, probabilities=p, labels=y, epsilon=1.0),
            "private-sides": confide.evaluate(sides, predictions=width, targets=target, epsilon=1.0),
            "private-people": confide.evaluate(first, scores=scores, epsilon=1.0, records_per_person=2),
        },
        "watching": {
            "coverage": Watch.start(first, **begun).with_look("a", [360, 40]).with_look("b", [250, 150]),
            "groups": Watch.start(groups, **begun, neighbors="replace_one").with_look("a", [160, 40, 170, 30]),
            "sizes": Watch.start(first, **begun, **bins).with_look("a", [3, 300, 80, 20]).with_look("b", [-1, 9, 9, 9]),
            "reference": Watch.start(first, **begun, **bins, reference=sizes).with_look("a", [3, 300, 80, 20]),
            "alarm": alarmed(Watch.start(first, **begun, tolerance=0.05, looks=12)),
        },
        "ledger": {"schedule": YEAR},
    }  # fmt: skip


def alarmed(watch: Watch) -> Watch:
    """A watch whose alarm is on."""
    for day in range(8):
        watch = watch.with_look(f"day {day}", [300, 100])
    return watch


def ledger(path: Path) -> None:
    """A ledger of entries of every kind, under a schedule, and next to it the file that remembers its last record."""
    own, asked = Ledger(path), (f"{k:064x}" for k in range(9))
    own.set_limit("hospitals", 2.0)
    for mechanism in ("slopes", "private evaluation by discrete-laplace", "look by discrete-laplace"):
        token = own.charge("hospitals", Cost(0.25, "add_remove", mechanism), next(asked))
        own.attach(token, "what was released", b"seen")
    own.follow("patients", YEAR)
    for _ in range(2):
        own.charge("patients", Cost(0.1, "add_remove", "look by discrete-laplace"), next(asked))
    check_head(own, path.with_name("head.json"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for other in ("-wal", "-shm"):
        path.with_name(path.name + other).unlink(missing_ok=True)


def main(tests: Path) -> None:
    """Write all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        everything = made()
    for kind, values in everything.items():
        folder = tests / FOLDERS[kind]
        folder.mkdir(parents=True)
        expected = {}
        if kind == "ledger":
            ledger(folder / "budget.ledger")
            expected["budget.ledger"] = Ledger(folder / "budget.ledger", create=False).export()
        for name, value in values.items():
            (folder / f"{name}.json").write_text(value.to_json(), encoding="utf-8")
            expected[f"{name}.json"] = said(value)
        (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
