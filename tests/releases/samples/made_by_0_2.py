"""Files of the kinds that 0.2 wrote, and what they said: run with 0.2 installed, `python made_by_0_2.py TESTS`.

Counts are drawn with noise that no one can repeat, so the files were made once and are kept: files that exist are left
as they are. `TESTS` is the folder `tests`: each of the folders in `FOLDERS` below it gets files and `expected.json`,
whose texts were brought up to today's wording. `said` goes by public attributes alone, and serves the tests of later
versions, too.
"""

import json
import sys
import warnings
from dataclasses import astuple, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide import releases
from confide.evaluation import Evaluation, LevelEvaluation, PrivateEvaluation, read_evaluation
from confide.planning import ClassShift
from confide.releases import predecessors_of
from confide.watching import Watch

FOLDERS = {
    kind: Path(kind) / "samples" / "0.2" for kind in ("releases", "evaluation", "watching")
}  # where each kind of file is kept

N = 400


def said(value: Any) -> dict[str, Any]:
    """What a release, an evaluation or a watch says, as JSON."""
    match value:
        case PrivateEvaluation():
            found = {
                name: [_interval(one.coverage), {kind: list(map(_interval, own)) for kind, own in one.parts.items()}]
                for name, one in value.findings.items()
            }
            return {"found": found, "epsilon": value.privacy.epsilon, "counts": value.counts}
        case Evaluation() | LevelEvaluation():
            return summary(value)
        case Watch():
            points = [[one.log_evidence, one.low, one.high, one.alarmed] for one in value.points]
            settings = [value.settings.noise_epsilon, list(value.settings.least), list(value.settings.bins)]
            return {"points": points, "settings": settings, "looks": [one.name for one in value.looks]}
    before = [[one.checksum, as_json(one.threshold)] for one in predecessors_of(value)]
    return {**summary(value), "predecessors": before}


def _interval(found: Any) -> list[float]:
    return [found.value, found.low, found.high]


def summary(value: Any) -> dict[str, Any]:
    """What a release or an evaluation says, field by field; floats as `repr` writes them."""
    kind = type(value).__name__
    if kind in ("LevelCalibration", "GroupCalibration"):
        parts = [[as_json(name), summary(part)] for name, part in value.parts.items()]
        own = {"by": value.by, "neighbors": value.neighbors} if kind == "GroupCalibration" else {}
        return {"type": kind, "text": text_of(value), **own, "privacy": statement(value.privacy), "parts": parts}
    if kind == "SidesCalibration":
        parts = [["low", summary(value.low)], ["high", summary(value.high)]]
        return {"type": kind, "text": text_of(value), "privacy": statement(value.privacy), "parts": parts}
    if kind == "RiskCalibration":
        own = {"loss": value.loss, "bound": as_json(value.bound), "risk": as_json(value.risk)}
        return {"type": kind, "text": text_of(value), **own, "calibration": summary(value.calibration)}
    if kind == "LevelEvaluation":
        levels = [[as_json(alpha), summary(one)] for alpha, one in value.levels.items()]
        return {"type": kind, "calibration": value.calibration, "levels": levels}
    if kind == "Evaluation":
        plain = ("calibration", "promised", "mean_size", "singletons", "empty", "mean_width", "by")
        rows = {name: as_json(getattr(value, name)) for name in ("coverage", "examples")}
        columns = ("name", "n", "covered", "members", "promised", "mean_width")
        for name in ("classes", "sizes", "groups"):
            rows[name] = [[as_json(getattr(part, column)) for column in columns] for part in getattr(value, name)]
        return {"type": kind, **{name: as_json(getattr(value, name)) for name in plain}, **rows}
    plain = ("threshold", "alpha", "candidates", "recipe", "score", "coverage", "versions")
    return {
        "type": kind,
        "text": text_of(value),
        **{name: as_json(getattr(value, name)) for name in plain},
        "guarantee": statement(value.guarantee),
        "privacy": statement(value.privacy),
        "mechanism": None if value.mechanism is None else {"name": value.mechanism.name, **statement(value.mechanism)},
    }


def text_of(value: Any) -> str:
    """What it says as text, without the line about records needed, which later versions add."""
    return "\n".join(line for line in str(value).splitlines() if not line.startswith("records needed: "))


def statement(value: Any) -> dict[str, Any]:
    """The fields of a statement by their names; without those that came later and say nothing."""
    stated = {field.name: getattr(value, field.name) for field in fields(value)}
    later = ("rule", "silos", "population")
    return {name: as_json(one) for name, one in stated.items() if one or name not in later}


def as_json(value: Any) -> Any:
    """A field as JSON: whole numbers and texts as they are, other numbers exactly, as text."""
    if isinstance(value, float | Fraction):
        return repr(float(value)) if isinstance(value, float) else f"Fraction {value}"
    if isinstance(value, tuple):
        return [as_json(one) for one in value]
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): as_json(one) for key, one in value.items()}
    return as_json(astuple(value)) if hasattr(value, "__dataclass_fields__") else value


def read(text: str) -> Any:
    """What a file of any of these kinds holds."""
    document = getattr(releases, "Document", releases.Release)  # as 0.2 called both
    others = {"confide.evaluation": read_evaluation}
    return others.get(json.loads(text)["kind"], document.from_json)(text)


def made() -> dict[str, dict[str, Any]]:
    """One of every kind, by folder and name."""
    rng = np.random.default_rng(20261122)
    n, public = N, confide.Candidates.unit(40)
    plain = {**plain_releases(), **releases_of_parts()}
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
            **plain,
            "renewed": second,
            "renewed-twice": confide.recalibrate(second, scores),
            "renewed-levels": confide.recalibrate(levels, scores),
            "class-shares": confide.calibrate(scores, 0.1, 2.0, class_weights=shift, labels=y.astype(str), **ways),
            "noisy-labels": confide.calibrate_noisy_labels(p, noisy, 0.2, about={"model": "m"}),
            "record-weights": confide.calibrate(scores, 0.1, 2.0, **weights, **ways),
            "pps-secret-n": confide.calibrate(scores, 0.1, 5.0, **published),
        },
        "evaluation": {
            **evaluations(plain),
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
    }  # fmt: skip


def plain_releases() -> dict[str, Any]:
    """Releases of one threshold: every mechanism, every kind of candidates, losses and guarantees of every form."""
    rng, make = np.random.default_rng(20261123), confide.Candidates
    scores, unit = rng.random(N), make.unit(20)
    public: dict[str, Any] = {"neighbors": "replace_one"}
    first = {**public, "rise": 0, "shift": 8}
    asked: dict[str, dict[str, Any]] = {
        "calibration": {"score": "lac", "candidates": make.unit(20, "logit")},
        "slopes": {"score": None, "candidates": make.of(np.linspace(-1, 2, 15) ** 3), **first},
        "slopes-given": {"alpha": "1/3", "n_min": 200, "n_typical": 400, "slopes": (30, 7), "shift": 3.25},
        "calibration-delta": {"delta": "1/20", "candidates": make.spread("residual", 20)},
        "calibration-infinite": {"epsilon": 0.001, **public},
        "calibration-infinite-rho": {"epsilon": None, "rho": 1e-6, **public},
        "calibration-rho": {"epsilon": None, "rho": 0.1, "candidates": make.spread("signed", 20)},
        "people": {"score": "Abstand |ŷ − y| „größer“ 分数", "records_per_person": 3, "candidates": make.anything()},
        "pps": {"mechanism": "pps", "candidates": make.ranks(5, 1.0), **public},
        "pps-laplace": {"mechanism": "pps-laplace", "epsilon": 20.0, "alpha": 0.3, **public},
        "noisy-histogram": {"mechanism": "noisy-histogram", "candidates": make.mass(20, 10)},
        "noisy-histogram-replace_one": {"mechanism": "noisy-histogram", "candidates": make.signed_unit(20), **public},
        "opendp-quantile": {
            "mechanism": "opendp-quantile",
            "candidates": make.from_reference(np.linspace(0, 1, 50).repeat(3), 20),
        },
        "none": {"mechanism": "none", "epsilon": None, "candidates": None},
    }
    ways = {"alpha": 0.1, "epsilon": 1.0, "score": "a score", "candidates": unit}
    made: dict[str, Any] = {name: confide.calibrate(scores, **{**ways, **own}) for name, own in asked.items()}
    counted = confide.ScoreHistogram.from_scores(scores, unit)
    return made | {"none-counted": confide.calibrate_histogram(counted, 0.1, mechanism="none", score="lac")}


def releases_of_parts() -> dict[str, Any]:
    """Releases for levels, groups, classes and sides, and of a bounded loss."""
    rng, make = np.random.default_rng(20261124), confide.Candidates
    scores, label, names = rng.random(N), rng.integers(0, 2, N), ["süd", "1"]
    unit = make.unit(20)
    p, quantiles, targets = rng.random((N, 5)), np.tile([-1.0, 1.0], (N, 1)), rng.normal(size=N)
    truth, losses = rng.random((N, 5)) < p, np.clip(2 * (rng.random((N, 1)) - unit.edges), 0, 2)
    ways: dict[str, Any] = {"candidates": unit, "score": "lac"}
    public: dict[str, Any] = {"rho": 0.5, "neighbors": "replace_one"}
    mixed = np.array([7, "b"], dtype=object)[label]
    sides = {"share_low": "0.25", "candidates": make.spread("signed", 20)}
    return {
        "levels": confide.calibrate_levels(scores, [0.3, "1/10"], 3.0, **ways),
        "levels-rho": confide.calibrate_levels(scores, [0.3, 0.2], shares=["1/4", "3/4"], **public, **ways),
        "groups": confide.calibrate_groups(scores, np.array(names)[label], names, 0.1, 2.0, **ways),
        "groups-rho": confide.calibrate_groups(scores, mixed, [7, "b", -(10**30)], 0.1, **public, **ways),
        "classes": confide.calibrate_groups(scores, np.array(names)[label], names, 0.1, 2.0, by="class", **ways),
        "sides": confide.calibrate_sides(quantiles, targets, (0.1, 0.2), 3.0, **sides),
        "risk": confide.calibrate_false_negatives(p, truth, 0.2, 2.0, candidates=unit),
        "risk-own-loss": confide.calibrate_losses(losses, unit, 0.3, 2.0, loss="shortfall", bound=2.0),
    }


def evaluations(made: dict[str, Any]) -> dict[str, Any]:
    """Evaluations without noise, of releases of every kind."""
    rng, n, names = np.random.default_rng(20261125), 60, ["süd", "1"]
    p, y = rng.dirichlet([3, 2], n), rng.integers(0, 2, n)
    ward, scores, truth = rng.choice(names, n), rng.random(n), [names[k] for k in y]
    quantiles, targets, middle = np.tile([-1.0, 1.0], (n, 1)), rng.normal(size=n), np.zeros(n)
    few: dict[str, Any] = {"score": "absolute_residual", "candidates": confide.Candidates.spread("residual", 20)}
    residuals = np.abs(rng.normal(size=N))
    by_ward = confide.calibrate_groups(residuals, rng.choice(names, N), names, 0.2, 2.0, **few)
    infinite = confide.calibrate(residuals, 0.1, 0.001, neighbors="replace_one", **few)
    mixed = np.array([7, "b"], dtype=object)[y]
    return {
        "sets-with-examples": confide.evaluate_sets(made["calibration"], p, truth, names, examples=3),
        "sets-of-numbered-classes": confide.evaluate_sets(made["calibration"], p, y),
        "sets-groups": confide.evaluate_sets(made["groups"], p, y, groups=ward, examples=2),
        "sets-classes": confide.evaluate_sets(made["classes"], p, truth, names),
        "sets-levels": confide.evaluate_sets(made["levels"], p, truth, names, examples=1),
        "intervals-without-end": confide.evaluate_intervals(infinite, middle, targets),
        "intervals-groups": confide.evaluate_intervals(by_ward, middle, targets, groups=ward),
        "intervals-sides": confide.evaluate_intervals(made["sides"], quantiles, targets),
        "scores": confide.evaluate_scores(made["calibration"], scores),
        "scores-groups": confide.evaluate_scores(made["groups-rho"], scores, groups=mixed),
        "scores-levels": confide.evaluate_scores(made["levels"], scores),
        "scores-risk": confide.evaluate_scores(made["risk"], scores),
    }


def alarmed(watch: Watch) -> Watch:
    """A watch whose alarm is on."""
    for day in range(8):
        watch = watch.with_look(f"day {day}", [300, 100])
    return watch


def main(tests: Path) -> None:
    """Write what is not there yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        everything = made()
    for kind, values in everything.items():
        folder = tests / FOLDERS[kind]
        folder.mkdir(parents=True, exist_ok=True)
        expected = {}
        for name, value in values.items():
            path = folder / f"{name}.json"
            if not path.exists():
                path.write_text(value.to_json(), encoding="utf-8")
            expected[path.name] = said(read(path.read_text(encoding="utf-8")))
        rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in expected.items())
        (folder / "expected.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
