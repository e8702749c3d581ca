"""Files as version 0.1 wrote them, and what it said about each: run with 0.1 installed, `python made_by_0_1.py TESTS`.

Thresholds are drawn by noise that no one can repeat, so the files were made once and are kept. `TESTS` is the folder
`tests`: below it `releases`, `evaluation` and `ledger` each have a folder `samples/0.1`, in which `expected.json` has
the summary of every file; its texts were brought up to today's wording. `summary` goes by public attributes alone, and
serves the tests of later versions, too.
"""

import json
import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import astuple, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import confide

SEED = 20261121
N = 400


def summary(value: Any) -> Any:
    """What a release or an evaluation says, field by field, as JSON; floats as `repr` has them."""
    kind = type(value).__name__
    if kind in ("LevelCalibration", "GroupCalibration"):
        parts = [[as_json(name), summary(part)] for name, part in value.parts.items()]
        own = {"by": value.by, "neighbors": value.neighbors} if kind == "GroupCalibration" else {}
        return {"type": kind, "text": said(value), **own, "privacy": statement(value.privacy), "parts": parts}
    if kind == "SidesCalibration":
        parts = [["low", summary(value.low)], ["high", summary(value.high)]]
        return {"type": kind, "text": said(value), "privacy": statement(value.privacy), "parts": parts}
    if kind == "RiskCalibration":
        own = {"loss": value.loss, "bound": as_json(value.bound), "risk": as_json(value.risk)}
        return {"type": kind, "text": said(value), **own, "calibration": summary(value.calibration)}
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
        "text": said(value),
        **{name: as_json(getattr(value, name)) for name in plain},
        "guarantee": statement(value.guarantee),
        "privacy": statement(value.privacy),
        "mechanism": None if value.mechanism is None else {"name": value.mechanism.name, **statement(value.mechanism)},
    }


def said(value: Any) -> str:
    """What it says as text, without the line about records needed, which later versions add."""
    return "\n".join(line for line in str(value).splitlines() if not line.startswith("records needed: "))


def statement(value: Any) -> dict[str, Any]:
    """The fields of a statement by their names; without those that came later and say nothing."""
    stated = {field.name: getattr(value, field.name) for field in fields(value)}
    later = ("fade", "flat", "rise", "weight", "rule", "certificate", "silos", "population")
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


def releases() -> dict[str, Any]:
    """One small release of every kind and variant, by the name of its file."""
    rng, make = np.random.default_rng(SEED), confide.Candidates
    scores = rng.random(N)
    unit = make.unit(20)
    public = {"neighbors": "replace_one"}
    options: dict[str, dict[str, Any]] = {
        "slopes add_remove": {},
        "slopes replace_one": public,
        "slopes n_min": {"n_min": 200, "n_typical": 400},
        "slopes given": {"slopes": (30, 7), "shift": 3.25},
        "slopes one third": {"alpha": "1/3"},
        "slopes without name": {"score": None},
        "slopes name in other letters": {"score": "Abstand |ŷ − y| „größer“ 分数"},
        "delta": {"delta": "1/20"},
        "delta replace_one": {"delta": 0.05, **public},
        "delta exponential": {"delta": "1/20", "selector": "exponential", "n_min": 300},
        "exponential": {"selector": "exponential"},
        "rho": {"epsilon": None, "rho": 0.1},
        "rho replace_one": {"epsilon": None, "rho": 0.1, **public},
        "people": {"records_per_person": 3},
        "people replace_one": {"records_per_person": 7, **public},
        "pps": {"mechanism": "pps", **public},
        "pps-laplace": {"mechanism": "pps-laplace", "epsilon": 20.0, "alpha": 0.3, **public},
        "pps-laplace too few": {"mechanism": "pps-laplace", **public},
        "noisy-histogram": {"mechanism": "noisy-histogram"},
        "noisy-histogram replace_one": {"mechanism": "noisy-histogram", **public},
        "opendp-quantile": {"mechanism": "opendp-quantile"},
        "opendp-quantile replace_one": {"mechanism": "opendp-quantile", **public},
        "none": {"mechanism": "none", "epsilon": None},
        "none too few": {"mechanism": "none", "epsilon": None, "alpha": 0.001},
        "infinite without data": {"epsilon": 0.001, **public},
        "infinite without data rho": {"epsilon": None, "rho": 1e-6, **public},
        "candidates logit": {"candidates": make.unit(20, "logit")},
        "candidates geometric": {"candidates": make.geometric(0.1, 0.5, 4)},
        "candidates sinh": {"candidates": make.sinh(1.0, 0.5, 2)},
        "candidates anything": {"candidates": make.anything()},
        "candidates mass": {"candidates": make.mass(20, 10)},
        "candidates signed_unit": {"candidates": make.signed_unit(20)},
        "candidates ranks": {"candidates": make.ranks(5, 1.0)},
        "candidates of": {"candidates": make.of(np.linspace(-1, 2, 15) ** 3)},
        "candidates from_reference": {"candidates": make.from_reference(np.linspace(0, 1, 50).repeat(3), 20)},
        "candidates only infinity": {"candidates": make.unit(1)},
    }
    made: dict[str, Any] = {
        name: confide.calibrate(
            scores, **{"alpha": 0.1, "epsilon": 1.0, "score": "a score", "candidates": unit, **given}
        )
        for name, given in options.items()
    }
    made["none counted"] = confide.calibrate_histogram(
        confide.ScoreHistogram.from_scores(scores, unit), 0.1, mechanism="none", score="lac"
    )
    ward, label = rng.choice(["north", "süd", "1"], N), rng.integers(0, 3, N)
    names = ["north", "süd", "1"]
    both = {"candidates": unit, "score": "lac"}
    one: dict[str, Any] = {"alpha": 0.1, "epsilon": 2.0, **both}
    made |= {
        "levels": confide.calibrate_levels(scores, [0.3, 0.2, "1/10"], 3.0, **both),
        "levels delta": confide.calibrate_levels(scores, [0.3, 0.2], 3.0, delta=0.1, shares=["1/4", "3/4"], **both),
        "levels rho": confide.calibrate_levels(scores, [0.3, 0.2], rho=0.5, **public, **both),
        "levels one": confide.calibrate_levels(scores, [0.3], 1.0, **both),
        "groups text": confide.calibrate_groups(scores, ward, names, **one),
        "groups integer": confide.calibrate_groups(scores, label, [0, 1, 2], **one),
        "groups mixed": confide.calibrate_groups(
            scores, np.array([7, "b"], dtype=object)[label % 2], [7, "b", -(10**30)], **one
        ),
        "groups replace_one": confide.calibrate_groups(scores, ward, names, **one, **public),
        "groups rho replace_one": confide.calibrate_groups(
            scores, ward, names, **{**one, "epsilon": None}, rho=0.5, **public
        ),
        "groups empty": confide.calibrate_groups(scores, ward, [*names, "east"], **one),
        "classes text": confide.calibrate_groups(scores, ward, names, **one, by="class"),
        "classes integer": confide.calibrate_groups(scores, label, [0, 1, 2], **one, by="class"),
    }
    quantiles, targets = np.tile([-1.0, 1.0], (N, 1)), rng.normal(size=N)
    sinh = make.sinh(0.5, 0.5, 1)
    p = rng.random((N, 5))
    truth = rng.random((N, 5)) < p
    losses = np.clip(2 * (rng.random((N, 1)) - unit.edges), 0, 2)
    made |= {
        "sides": confide.calibrate_sides(quantiles, targets, 0.2, 3.0, candidates=sinh),
        "sides uneven": confide.calibrate_sides(
            quantiles, targets, (0.1, 0.2), 3.0, share_low="0.25", delta=0.1, candidates=sinh
        ),
        "risk": confide.calibrate_false_negatives(p, truth, 0.2, 2.0, u=rng, candidates=unit),
        "risk own loss": confide.calibrate_losses(losses, unit, 0.3, 2.0, u=rng, loss="shortfall", bound=2.0),
    }
    return made


def evaluations(made: dict[str, Any]) -> dict[str, Any]:
    """One small evaluation of every kind and variant."""
    from confide.evaluation import of_intervals, of_scores, of_sets

    rng = np.random.default_rng(SEED + 1)
    n, names = 60, ["north", "süd", "1"]
    p, y = rng.dirichlet([3, 2, 1], n), rng.integers(0, 3, n)
    ward, scores, truth = rng.choice(names, n), rng.random(n), [names[k] for k in y]
    quantiles, targets = np.tile([-1.0, 1.0], (n, 1)), rng.normal(size=n)
    residual = confide.calibrate(
        np.abs(rng.normal(size=N)),
        0.2,
        2.0,
        score="absolute_residual",
        candidates=confide.Candidates.geometric(1, 0.5, 2),
    )
    by_ward = confide.calibrate_groups(
        np.abs(rng.normal(size=N)),
        rng.choice(names, N),
        names,
        0.2,
        2.0,
        score="absolute_residual",
        candidates=confide.Candidates.geometric(1, 0.5, 2),
    )
    lac = confide.calibrate(rng.random(N), 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(20))
    infinite = confide.calibrate(rng.random(5), 0.1, 0.001, score="absolute_residual", neighbors="replace_one")
    return {
        "sets": of_sets(lac, p, truth, names),
        "sets with examples": of_sets(lac, p, truth, names, examples=3),
        "sets of numbered classes": of_sets(lac, p, y),
        "sets groups": of_sets(made["groups text"], p, y, groups=ward, examples=2),
        "sets classes": of_sets(made["classes text"], p, truth, names),
        "sets numbered class thresholds": of_sets(made["classes integer"], p, y),
        "sets levels": of_sets(made["levels"], p, truth, names, examples=1),
        "intervals": of_intervals(residual, targets * 0, targets),
        "intervals without end": of_intervals(infinite, targets * 0, targets),
        "intervals groups": of_intervals(by_ward, targets * 0, targets, groups=ward),
        "intervals sides": of_intervals(made["sides"], quantiles, targets),
        "scores": of_scores(lac, scores),
        "scores groups": of_scores(made["groups mixed"], scores, groups=np.array([7, "b"], dtype=object)[y % 2]),
        "scores classes": of_scores(made["classes integer"], scores, groups=y),
        "scores levels": of_scores(made["levels"], scores),
        "scores risk": of_scores(made["risk"], scores),
    }


def ledger_requests(ledger: Any, names: Collection[str] | None = None) -> dict[str, Any]:
    """Requests that a ledger has served, all or some; served again, identical ones cost nothing."""
    scores = np.random.default_rng(SEED + 2).random(N)
    unit, ward = confide.Candidates.unit(20), np.arange(N) % 2
    secret = {"ledger": ledger, "dataset": "patients"}
    hospitals = {"ledger": ledger, "dataset": "hospitals", "partition": "hospital"}
    bound = confide.Dataset("bound", fingerprint="0" * 64)
    asked: dict[str, Callable[[], Any]] = {
        "slopes": lambda: confide.calibrate(scores, 0.1, 1.0, score="lac", candidates=unit, **secret),
        "delta": lambda: confide.calibrate(scores, "1/5", 0.5, delta=0.1, candidates=unit, **secret),
        "rho": lambda: confide.calibrate(scores, 0.1, rho=0.05, candidates=unit, ledger=ledger, dataset="zcdp"),
        "noisy-histogram": lambda: confide.calibrate(
            scores, 0.1, 1.0, mechanism="noisy-histogram", candidates=unit, **secret
        ),
        "replace_one": lambda: confide.calibrate(
            scores, 0.1, 1.0, neighbors="replace_one", candidates=unit, ledger=ledger, dataset="public size"
        ),
        "pps": lambda: confide.calibrate(
            scores, 0.1, 1.0, mechanism="pps", neighbors="replace_one", candidates=unit, ledger=ledger, dataset=bound
        ),
        "groups": lambda: confide.calibrate_groups(scores, ward, [0, 1], 0.2, 1.0, candidates=unit, **hospitals),
        "levels": lambda: confide.calibrate_levels(scores, [0.3, 0.2], 1.0, candidates=unit, **secret),
    }
    return {name: ask() for name, ask in asked.items() if names is None or name in names}


def main(tests: Path) -> None:
    """Write all samples."""
    warnings.simplefilter("ignore", confide.CoverageWarning)
    made = releases()
    for room, found in (("releases", made), ("evaluation", evaluations(made))):
        folder = tests / room / "samples" / "0.1"
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in found.items():
            (folder / f"{name.replace(' ', '-')}.json").write_text(value.to_json(), encoding="utf-8")
        expected = {f"{name.replace(' ', '-')}.json": summary(value) for name, value in found.items()}
        write(folder / "expected.json", expected)
    folder = tests / "ledger" / "samples" / "0.1"
    folder.mkdir(parents=True, exist_ok=True)
    ledger = confide.Ledger(folder / "budget.ledger", limit=10.0)
    ledger.set_limit("public size", (5.0, 1e-6), neighbors="replace_one")
    ledger.set_limit("bound", 4.0, neighbors="replace_one")
    served = ledger_requests(ledger)
    ledger.charge("patients", confide.ledger.Cost(0.25, "add_remove", "something else"), "f" * 64)  # no release kept
    ledger.set_limit("patients", 6.0)
    write(
        folder / "expected.json",
        {"export": ledger.export(), "served": {name: summary(one) for name, one in served.items()}},
    )


def write(path: Path, content: Any) -> None:
    """A JSON document, on few lines."""
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in content.items())
    path.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
