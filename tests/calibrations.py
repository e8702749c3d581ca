"""Calibrations for tests: at a given threshold, and one of every kind that the library releases."""

import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np

import confide
from confide.core import Request, source_of


@lru_cache
def _any_calibration() -> confide.Release:
    return confide.calibrate(np.linspace(0, 1, 5000), alpha=0.1, epsilon=1.0, candidates=confide.Candidates.unit(10))


def calibration_at(threshold: float, score: str | None = "lac", **asked) -> confide.Release:
    """A release with this threshold, with arbitrary statements; `asked` are other fields of its request."""
    made = _any_calibration()
    request = replace(made.request, score=score, **asked)
    return changed(replace(made, request=request), threshold=float(threshold))


def calibrations_at(by: str, thresholds: dict, score: str | None = "lac") -> confide.Release:
    """A release with these thresholds by level, group or class, or for the sides "low" and "high"."""
    keys = tuple(thresholds)
    asked = {"level": {"alpha": keys}, "side": {"alpha": 0.1}}.get(by, {"alpha": 0.1, "names": keys})
    asked["score"] = None if by == "side" else score
    request = Request(by=by, epsilon=1.0, candidates=confide.Candidates.unit(10), **asked)
    parts = {}
    for (key, terms), threshold in zip(request.terms.items(), thresholds.values(), strict=True):
        stated = {"alpha": terms.alpha, "score": terms.score, "largest": terms.largest}
        parts[key] = replace(_any_calibration().only, threshold=float(threshold), **stated)
    return confide.Release(request, parts, {})


def changed(release: confide.Release, **changes) -> confide.Release:
    """The release with other values of its only threshold; of its score, also with the largest value of it."""
    terms = release.request.terms[None]
    part = replace(release.only, **{"score": terms.score, "largest": terms.largest, **changes})
    return replace(release, parts={None: part})


OPTIONS = {
    "add_remove": {},
    "replace_one": {"neighbors": "replace_one"},
    "n_min": {"n_min": 200},
    "rho": {"epsilon": None, "rho": 0.1},
    "rho, replace_one": {"epsilon": None, "rho": 0.1, "neighbors": "replace_one"},
    "delta": {"delta": 0.05},
    "delta, replace_one": {"delta": 0.05, "neighbors": "replace_one"},
    "delta, n_min": {"delta": "1/20", "n_min": 300},
    "people": {"records_per_person": 3},
    "people, replace_one": {"records_per_person": 7, "neighbors": "replace_one"},
    "one third": {"alpha": "1/3"},
    "fine alpha": {"alpha": 0.123457},
    "tiny alpha": {"alpha": 1e-6},
    "small epsilon": {"epsilon": 5e-6},
    "large epsilon": {"epsilon": 1e6},
    "too few records": {"epsilon": 0.001, "neighbors": "replace_one"},
    "too few records, rho": {"epsilon": None, "rho": 1e-6, "neighbors": "replace_one"},
    "only infinity": {"candidates": confide.Candidates.unit(1)},
    "one candidate": {"candidates": confide.Candidates.of([0.5])},
    "own candidates": {"candidates": confide.Candidates.of(np.linspace(-1, 2, 77) ** 3)},
    "reference": {"candidates": confide.Candidates.from_reference(np.linspace(0, 1, 50).repeat(3), 200)},
    "geometric": {"candidates": confide.Candidates.spread("residual", 200, unit=0.1)},
    "sinh": {"candidates": confide.Candidates.spread("signed", 200)},
    "anything": {"candidates": None},
    "lac": {"score": "lac", "candidates": None},
    "absolute_residual": {"score": "absolute_residual", "candidates": None},
    "unicode score": {"score": "Abstand |ŷ − y| ‘größer’ 分数 \N{GRINNING FACE}"},
    "classes": {"score": "lac", "candidates": None, "classes": ["cat", 7, 'a "quoted" name ☃']},
    "number of classes": {"score": "aps_deterministic", "candidates": None, "classes": 1000},
    "about": {"about": {"model": "größer 分数", "date": "2026-11-21", "purpose": 'a "quoted" \\ purpose'}},
    "class weights": {"class_weights": {"a": 0.5, "b": 2}, "labels": ["a", "b", "b", "a"] * 250},
    "weights": {"weights": np.tile([0.0, 1.5], 500), "weight_bound": 2.5},
    "quoted score": {"score": 'a "quoted" \\ name'},
}
"""Requests to `calibrate`, by name."""


@lru_cache
def released(name: str) -> confide.Release:
    """A calibration of 1,000 evenly spread scores with these options."""
    options = {"alpha": 0.1, "epsilon": 1.0, "candidates": confide.Candidates.unit(100), **OPTIONS[name]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return confide.calibrate(np.linspace(0, 1, 1000), **options)


SCORES = np.linspace(0, 1, 2000)
_LABELS = np.arange(2000) % 3
_PROBABILITIES = np.linspace(0, 1, 6000).reshape(2000, 3)
_COUNTS = np.full(128, 80) + np.arange(128) % 3

KINDS = {
    "levels": lambda: confide.calibrate(SCORES, [0.1, 0.2], 1.0, score="lac", delta=0.1),
    "levels, shares": lambda: confide.calibrate(SCORES, [0.1, 0.2], rho=0.5, shares=["0.3", "0.7"]),
    "groups": lambda: confide.calibrate(SCORES, 0.1, 1.0, groups=["a", "b"] * 1000, names=["a", "b"], score="lac"),
    "groups by number": lambda: confide.calibrate(
        SCORES, 0.1, 1.0, groups=[1, 2] * 1000, names=[1, 2], neighbors="replace_one"
    ),
    "classes of labels": lambda: confide.calibrate(
        confide.lac_score(_PROBABILITIES / _PROBABILITIES.sum(axis=1, keepdims=True), _LABELS),
        0.1,
        1.0,
        groups=_LABELS,
        names=[0, 1, 2],
        by="class",
    ),
    "overlapping groups": lambda: confide.calibrate(
        SCORES,
        0.1,
        2.0,
        groups={"sex": ["f", "m"] * 1000, "site": [1, 2, 3, 4] * 500},
        names={"sex": ["f", "m"], "site": [1, 2, 3, 4]},
        score="lac",
    ),
    "sides": lambda: confide.calibrate_sides(np.tile([-0.5, 0.5], (2000, 1)), SCORES, (0.05, 0.1), 1.0),
    "false negatives": lambda: confide.calibrate_false_negatives(
        _PROBABILITIES, _PROBABILITIES > 0.5, 0.2, 1.0, classes=["a", "b", "c"]
    ),
    "losses": lambda: confide.calibrate_losses(
        np.tile(np.linspace(5, 0, 20), (2000, 1)),
        confide.Candidates.of(np.arange(20.0)),
        1.0,
        1.0,
        loss="cost",
        bound=5.0,
    ),
    "shares before and after": lambda: confide.calibrate(
        SCORES,
        0.1,
        1.0,
        labels=["a", "b"] * 1000,
        class_weights=confide.ClassShift.of_shares({"a": 0.25, "b": 0.75}, {"a": 0.5, "b": 0.5}),
    ),
    "fingerprint": lambda: confide.calibrate(
        SCORES, 0.1, 1.0, score="lac", fingerprint=confide.ModelFingerprint.of([0.5, 0.25])
    ),
    "guess": lambda: confide.calibrate(SCORES, 0.1, 1.0, score="lac", candidates=confide.Candidates.around(0.9)),
    "none": lambda: confide.calibrate(SCORES, 0.1, mechanism="none", score="lac"),
    "pps": lambda: confide.calibrate(SCORES, 0.1, 1.0, mechanism="pps", neighbors="replace_one"),
    "pps, secret": lambda: confide.calibrate(SCORES, 0.1, 1.0, mechanism="pps", n_min=1500),
    "pps-laplace": lambda: confide.calibrate(
        SCORES, 0.1, 1.0, mechanism="pps-laplace", neighbors="replace_one", candidates=confide.Candidates.unit(40)
    ),
    "noisy-histogram": lambda: confide.calibrate(SCORES, 0.1, 1.0, mechanism="noisy-histogram"),
    "opendp-quantile": lambda: confide.calibrate(SCORES, 0.1, 1.0, mechanism="opendp-quantile"),
    "counts": lambda: confide.calibrate_counts(
        confide.PublishedCounts(
            _COUNTS,
            confide.Candidates.unit(128),
            confide.Noise.discrete_laplace(2.0, 2),
            score="lac",
            n_noisy=10_350,
            n_noise=confide.Noise.discrete_laplace(20.0),
        ),
        0.1,
    ),
    "renewed": lambda: confide.recalibrate(released("add_remove"), SCORES, epsilon=0.5),
    "chosen": lambda: confide.choose_score(
        {
            name: confide.scores.NamedScores.of(SCORES * scale, "absolute_residual")
            for name, scale in (("a", 1), ("b", 3))
        },
        0.1,
        1.0,
        largest_size=10.0,
        unit=1.0,
    ).calibrate(),
}
"""Releases of every kind, by name."""


@lru_cache
def of_kind(name: str) -> confide.Release:
    """The release of this kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return KINDS[name]()


def suited(candidates, score, alpha, epsilon=None, n=None, **options) -> confide.Candidates:
    """The candidates that suit a request for one threshold; n is the number of records where it is public."""
    asked = {"alpha": alpha, "epsilon": epsilon, "score": score, "candidates": candidates}
    return Request(**asked, **options).counted_over(n)


def weighted_counts(scores, candidates, score, population, labels, weights) -> confide.ScoreHistogram:
    """The counts of weighted records, as a mechanism sees them."""
    asked = Request(alpha=0.1, epsilon=1.0, score=score, candidates=candidates, population=population)
    return source_of({None: scores}, labels=labels, weights=weights).count(asked, candidates)[None]
