"""The pages that the tests open and the screenshots show: one of each kind."""

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide import federated
from confide.evaluation import Evaluation, evaluate_intervals, evaluate_sets
from confide.reports.page import Page
from tests.federated.helpers import Federation

HOSTILE = "</script><script>alert('class')</script><img src=x onerror=alert(1)>"
CLASSES = ("benign", "malignant", "unclear", "artefact")
HOSTILE_CLASSES = (*CLASSES[:3], HOSTILE)
ABOUT = {
    "model": "lesions-resnet", "version": "3.1", "data": "skin clinic, May and June", "purpose": "second opinion",
    "responsible": "dermatology", "date": "2026-07-01",
}  # fmt: skip


@lru_cache
def invented(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class probabilities of a model, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([6, 2, 1, 0.5], size=n)
    return probabilities, np.array([rng.choice(4, p=p) for p in probabilities])


@lru_cache
def calibration(**options: object) -> confide.Release:
    scores = confide.lac_score(*invented())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return confide.calibrate(scores, **{"alpha": 0.1, "epsilon": 1.0, "score": "lac", **options})  # type: ignore[arg-type]


def evaluation(released: confide.Release, classes: tuple[str, ...] = HOSTILE_CLASSES) -> Evaluation:
    """What `confide evaluate --out` would find on other records."""
    probabilities, labels = invented(3000, 1)
    return evaluate_sets(released, probabilities, np.array(classes)[labels], classes)


WARDS = ("surgery", HOSTILE)


@lru_cache
def several(classes: tuple[str, ...] = HOSTILE_CLASSES) -> dict[str, tuple[Any, Evaluation]]:
    """Releases of several thresholds, each with what was found on other records."""
    (p, y), (q, truth) = invented(), invented(3000, 1)
    rng = np.random.default_rng(3)
    wards, new = (tuple(WARDS[i] for i in rng.choice(2, n, p=[0.7, 0.3])) for n in (len(y), len(truth)))
    scores = confide.lac_score(p, y)
    levels = confide.calibrate(scores, [0.2, 0.1, 0.05], epsilon=2.0, score="lac")
    groups = confide.calibrate(scores, 0.1, 1.0, groups=wards, names=WARDS, score="lac")
    each = confide.calibrate(scores, 0.1, 4.0, groups=y, names=range(4), by="class", score="lac")
    width, targets = np.tile([-1.0, 1.0], (4000, 1)), rng.normal(size=4000)
    sides = confide.calibrate_sides(width, targets, 0.1, 1.0)
    residuals = np.abs(targets) * np.where(np.arange(4000) % 2, 1, 3)
    lengths = confide.calibrate(
        residuals, 0.1, 1.0, groups=np.arange(4000) % 2, names=[0, 1], score="absolute_residual"
    )
    named = [classes[k] for k in truth]
    fresh = rng.normal(size=2000)
    return {
        "levels": (levels, evaluate_sets(levels, q, named, classes)),
        "groups": (groups, evaluate_sets(groups, q, named, classes, groups=new)),
        "classes": (each, evaluate_sets(each, q, truth)),
        "sides": (sides, evaluate_intervals(sides, width[:2000], fresh)),
        "lengths": (lengths, evaluate_intervals(lengths, np.zeros(2000), fresh, groups=np.arange(2000) % 2)),
    }


def course(*, sizes: bool = False, correct: float | None = None) -> confide.Watch:
    """A watch of forty weeks, in which coverage falls after twenty-four; or sizes of sets grow."""
    rng, counts = np.random.default_rng(5), []
    for week in range(40):
        n, late = int(rng.integers(180, 320)), week >= 24
        covered = rng.binomial(n, 0.82 if late else 0.91)
        shares = [0.02, 0.45, 0.33, 0.2] if late else [0.01, 0.7, 0.2, 0.09]
        counts.append(rng.multinomial(20 * n if week == 0 else n, shares) if sizes else [covered, n - covered])
    watch = confide.Watch.start(
        calibration(), epsilon=1.0, batch=250, bins=(0, 1, 2, 3) if sizes else (), correct=correct
    )
    for week, own in enumerate(counts, start=1):
        watch = watch.with_look(f"2026, week {week}", [int(count) for count in own], "2026-01-05T06:15:00+00:00")
    return watch


def private(release: confide.Release, classes: tuple[str, ...]) -> confide.Evaluation:
    """A private evaluation of invented records, by class, size and ward."""
    probabilities, labels = invented(seed=1)
    wards = np.random.default_rng(3).choice(["north", "south", "intensive care"], len(labels))
    truth = np.array(classes)[labels]
    options = {"groups": wards, "group_names": ["north", "south"], "epsilon": 1.0}
    found = confide.evaluate(release, probabilities=probabilities, labels=truth, classes=classes, **options)
    return found


def write_all(folder: Path, classes: tuple[str, ...] = HOSTILE_CLASSES) -> dict[str, Path]:
    """Every kind of page as a file."""
    pages: dict[str, Path] = {}

    def keep(name: str, page: Page) -> None:
        pages[name] = page.save(folder / f"{name}.html")

    released = confide.calibrate(confide.lac_score(*invented()), 0.1, 1.0, score="lac", about=ABOUT)
    keep(
        "report",
        confide.report(released, title="Skin lesions, calibration of July", evaluation=evaluation(released, classes)),
    )
    chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000)
    keep("plan", confide.report(chosen))
    for_all = confide.report(released, title="Skin lesions, for the public", evaluation=private(released, classes))
    keep("private", for_all)
    rng = np.random.default_rng(0)
    silos = Federation(folder, [rng.beta(2, 5 + i, size=600) for i in range(5)])
    asked = silos.plan(epsilon=2.0, dropouts=1)
    answers = silos.answers(asked, range(4))  # one of five is absent
    joined = federated.aggregate(asked, answers)
    keep("federated", confide.report(joined, title="Five hospitals, one threshold", answers=answers))
    residuals = np.abs(np.random.default_rng(2).normal(size=2000))
    length = confide.calibrate(residuals, 0.05, 1.0, score="absolute_residual", neighbors="replace_one", delta=0.1)
    keep("regression", confide.report(length, title="Length of stay"))
    for kind, title in (("levels", "Skin lesions at three levels"), ("groups", "Skin lesions, ward by ward")):
        release, found = several(classes)[kind]
        keep(kind, confide.report(release, title=title, evaluation=found))
    keep("watch", confide.report(course(), title="Skin lesions, week by week"))
    keep("corrected", confide.report(course(correct=0.2), title="A threshold that is corrected"))
    keep("sizes", confide.report(course(sizes=True), title="Set sizes, week by week"))
    return pages
