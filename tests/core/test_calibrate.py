"""`calibrate`: its releases, the answer +inf, counts instead of scores, and the state of the process after a call."""

import math
import sys
import threading
import warnings

import numpy as np
import pytest

import confide
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from tests.draws import always, last
from tests.refused import refused

UNIT = confide.Candidates.unit(100)
SCORES = np.linspace(0, 1, 1000)
COUNTS = ScoreHistogram.from_scores(SCORES, UNIT)


def no_data(*_):
    raise AssertionError("the mechanism touched the data")


# --- too few records


def few(n, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibration = confide.calibrate(np.linspace(0, 1, n), 0.1, candidates=UNIT, **{"epsilon": 1.0, **options})
    return calibration, caught


@pytest.mark.parametrize("options", [{}, {"delta": 0.05}, {"epsilon": None, "rho": 0.1}])
def test_replace_one_answers_infinity_without_the_data(draw_with, options):
    draw_with(select=no_data, noisy_number=no_data)
    calibration, (warning,) = few(5, neighbors="replace_one", **options)
    assert calibration.threshold == math.inf
    assert calibration.epsilon == 0.0
    assert calibration.privacy.replace_one == 0.0
    assert calibration.privacy.loss(records=10) == 0.0
    assert calibration.mechanism is None
    assert calibration.coverage == 1.0
    assert calibration.coverage_at_most() == 1.0
    assert calibration.conditional_coverage(0.05) == 1.0
    assert warning.category is confide.CoverageWarning
    assert warning.filename == __file__  # points at the caller
    assert confide.Release.from_json(calibration.to_json()) == calibration


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"delta": 0.05}, {"n_min": 5}])
def test_add_remove_warnings_depend_only_on_the_release(draw_with, options):
    """The same text, calibration and cost for every private n with the same noisy number that is answered with +inf."""
    draw_with(noisy_number=always(1010), select=last)
    texts, calibrations = set(), set()
    for n in (1, 2, 5, 20, 60, 1000, 5000):
        calibration, (warning,) = few(n, **options)
        assert calibration.threshold == math.inf
        assert calibration.epsilon == 1.0
        texts.add((str(warning.message), warning.category, warning.lineno))
        calibrations.add(calibration.to_json())
    assert len(texts) == 1
    assert len(calibrations) == 1


# --- nothing is released for bad input


def test_nothing_is_drawn_for_bad_input(draw_with):
    draw_with(select=no_data, noisy_number=no_data)
    bad = [{"scores": [0.5, np.nan]}, {"alpha": 0}, {"epsilon": -1}, {"candidates": 0}, {"candidates": "5"}]
    for wrong in (*bad, {"neighbors": "other"}, {"score": "lac", "scores": [2.0]}):
        with pytest.raises(confide.ConfideError):
            confide.calibrate(**{"scores": SCORES, "alpha": 0.1, "epsilon": 1.0, **wrong})


# --- counts by group, by class, for several levels and for two sides


@pytest.mark.slow
def test_the_kind_of_release_follows_from_the_arguments():
    groups = confide.calibrate_histogram({"a": COUNTS, "b": COUNTS}, 0.1, 1.0, score="lac")
    assert (groups.by, list(groups.parts)) == ("group", ["a", "b"])
    classes = confide.calibrate_histogram({0: COUNTS, 1: COUNTS}, 0.1, 1.0, score="lac", by="class")
    assert (classes.by, list(classes.parts)) == ("class", [0, 1])
    levels = confide.calibrate_histogram(COUNTS, [0.1, 0.2], 1.0, neighbors="replace_one")
    assert (levels.by, levels.privacy.epsilon) == ("level", 1)
    sides = {name: ScoreHistogram.from_scores(SCORES, UNIT) for name in ("cqr_low", "cqr_high")}
    both = confide.calibrate_histogram(sides, 0.1, 1.0, score="cqr_sides", neighbors="replace_one")
    assert (both.by, both["low"].n) == ("side", 1000)


@pytest.mark.parametrize(
    ("histogram", "more", "error", "argument"),
    [
        ({}, {}, InputError, "histogram"),
        ({"a": 3}, {}, InputTypeError, "histogram"),
        ({None: COUNTS, "a": COUNTS}, {}, InputError, "histogram"),
        ({"a": COUNTS, "b": ScoreHistogram.empty(confide.Candidates.unit(3))}, {}, InputError, "histogram"),
        ({"a": COUNTS}, {"alpha": [0.1, 0.2]}, InputError, "alpha"),
        ({"cqr_low": COUNTS}, {"score": "cqr_sides"}, InputError, "histogram"),
        ({"cqr_low": COUNTS, "cqr_high": ScoreHistogram.empty(UNIT)}, {"score": "cqr_sides"}, InputError, "histogram"),
        ({"a": COUNTS, 1: COUNTS, "1": COUNTS}, {}, InputError, "names"),
    ],
)
def test_inconsistent_counts_raise(histogram, more, error, argument):
    with refused(error, argument):
        confide.calibrate_histogram(histogram, **{"alpha": 0.1, "epsilon": 1.0, **more})


# --- the process is left as it was


@pytest.mark.long
def test_threads_may_calibrate_at_once():
    """OpenDP's features are global to the process; one thread must not switch them off under another."""
    errors = []

    def work():
        try:
            for _ in range(40):
                confide.calibrate(SCORES, 0.1, 5.0, candidates=UNIT)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


@pytest.mark.parametrize(("arguments", "argument"), [({"names": ["a"]}, "groups"), ({"groups": ["a"] * 9}, "groups")])
def test_groups_and_their_names_are_given_together(arguments, argument):
    with refused(InputError, argument):
        confide.calibrate([0.5] * 9, 0.1, 1.0, **arguments)
