"""Calibrations for tests: at a given threshold, and one of every kind that the library releases."""

import importlib
import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np

import confide
from confide.core import Request, Scores


@lru_cache
def _any_calibration() -> confide.Calibration:
    return confide.calibrate(np.linspace(0, 1, 5000), alpha=0.1, epsilon=1.0, candidates=confide.Candidates.unit(10))


def calibration_at(threshold: float, score: str | None = "lac") -> confide.Calibration:
    """A calibration with this threshold, with arbitrary statements."""
    return replace(_any_calibration(), threshold=float(threshold), score=score)


_OPTIONS = {
    "add_remove": {},
    "noisy number": {"n_typical": None},
    "noisy number, rho": {"n_typical": None, "epsilon": None, "rho": 0.1},
    "noisy number, delta": {"n_typical": None, "delta": 0.05},
    "noisy number, weights": {"n_typical": None, "weights": np.tile([0.0, 1.5], 500), "weight_bound": 2.5},
    "noisy number, class weights": {
        "n_typical": None,
        "class_weights": {"a": 0.5, "b": 2},
        "labels": ["a", "b", "b", "a"] * 250,
    },
    "replace_one": {"neighbors": "replace_one"},
    "n_min": {"n_min": 200},
    "rho": {"epsilon": None, "rho": 0.1},
    "rho, replace_one": {"epsilon": None, "rho": 0.1, "neighbors": "replace_one"},
    "delta": {"delta": 0.05},
    "delta, replace_one": {"delta": 0.05, "neighbors": "replace_one"},
    "delta, n_min": {"delta": "1/20", "n_min": 300, "n_typical": 3000},
    "people": {"records_per_person": 3},
    "people, replace_one": {"records_per_person": 7, "neighbors": "replace_one"},
    "one third": {"alpha": "1/3"},
    "fine alpha": {"alpha": 0.123457},
    "tiny alpha": {"alpha": 1e-6},
    "small epsilon": {"epsilon": 1e-6},
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
OPTIONS = {name: {"n_typical": 1000, **options} for name, options in _OPTIONS.items()}
"""Requests to `calibrate`, by name; most of them for a guess of the number of records."""

WITHOUT_MECHANISM = ("too few records", "too few records, rho")
"""Those of them that are answered by +inf without touching the data."""


@lru_cache
def released(name: str) -> confide.Calibration:
    """A calibration of 1,000 evenly spread scores with these options."""
    options = {"alpha": 0.1, "epsilon": 1.0, "candidates": confide.Candidates.unit(100), **OPTIONS[name]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return confide.calibrate(np.linspace(0, 1, 1000), **options)


RELEASE = importlib.import_module("confide.core.release")
"""The module that draws the noisy number of records, as its attribute `draw_size`."""


def suited(candidates, score, alpha, epsilon=None, n=None, **options) -> confide.Candidates:
    """The candidates that suit a request for one threshold; n is the number of records where it is public."""
    asked = {"alpha": alpha, "epsilon": epsilon, "score": score, "candidates": candidates}
    return Request(**asked, **options).counted_over(n)


def weighted_counts(scores, candidates, score, population, labels, weights) -> confide.ScoreHistogram:
    """The counts of weighted records, as a mechanism sees them."""
    asked = Request(alpha=0.1, epsilon=1.0, score=score, candidates=candidates, population=population)
    return Scores({None: scores}, labels=labels, weights=weights).count(asked, candidates)[None]
