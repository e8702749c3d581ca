"""`calibrate`: its releases, the answer +inf, and the state of the process after a call."""

import importlib.metadata
import math
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import confide
from confide.mechanisms.slopes import Slopes
from confide.selection.selector import selection_law
from tests.calibrations import fix_noisy_number
from tests.refused import refused

UNIT = confide.Candidates.unit(100)
SCORES = np.linspace(0, 1, 1000)


def no_data(*_):
    raise AssertionError("the mechanism touched the data")


# --- the release


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_threshold_is_a_candidate_near_the_quantile(neighbors):
    calibration = confide.calibrate(SCORES, 0.1, 2.0, candidates=UNIT, neighbors=neighbors)
    assert calibration.threshold in UNIT.values
    assert 0.8 < calibration.threshold < 1.0
    assert type(calibration.threshold) is float
    assert calibration.coverage >= 0.9
    assert calibration.epsilon == 2.0


@pytest.mark.slow
def test_n_is_stated_only_if_it_is_public():
    assert confide.calibrate(SCORES, 0.1, 1.0, neighbors="replace_one").n == 1000
    secret = confide.calibrate(SCORES, 0.1, 1.0)
    assert secret.n is None
    assert secret.guarantee.n_min == 1
    assert "1000" not in repr(secret).replace("size=1000", "")


@pytest.mark.slow
def test_the_score_sets_default_candidates():
    for score, kind in [("lac", "probability"), ("absolute_residual", "residual"), (None, "any"), ("mine", "any")]:
        calibration = confide.calibrate(SCORES, 0.1, 1.0, score=score)
        assert (calibration.recipe["kind"], calibration.recipe["of"]) == ("spread", kind)
        assert calibration.score == score


@pytest.mark.slow
def test_counting_first_is_the_same_mechanism(monkeypatch):
    fix_noisy_number(monkeypatch)
    histogram = confide.ScoreHistogram.from_scores(SCORES, UNIT)
    for options in ({}, {"neighbors": "replace_one"}, {"rho": 0.1, "epsilon": None}, {"delta": 0.05}):
        options = {"alpha": 0.1, "epsilon": 1.0, **options}
        one = confide.calibrate(SCORES, candidates=UNIT, **options)
        other = confide.calibrate_histogram(histogram, **options)
        assert (one.mechanism, one.guarantee, one.privacy) == (other.mechanism, other.guarantee, other.privacy)
        assert one.size == other.size


def test_versions_are_those_of_the_libraries():
    versions = confide.calibrate(SCORES, 0.1, 1.0).versions
    assert versions["numpy"] == np.__version__
    assert versions == {name: importlib.metadata.version(name) for name in ("confide", "numpy", "opendp", "scipy")}


@pytest.mark.slow
def test_an_empty_histogram_has_no_public_n():
    empty = confide.ScoreHistogram.empty(UNIT)
    with refused(confide.InputError, "n"):
        confide.calibrate_histogram(empty, 0.1, 1.0, neighbors="replace_one")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = [confide.calibrate_histogram(empty, 0.1, 1.0) for _ in range(50)]
    # add_remove answers for any n, 0 included, and mostly with +inf, which carries the promise.
    assert len(caught) == sum(math.isinf(c.threshold) for c in answers) > 25
    assert {c.epsilon for c in answers} == {1.0}


@pytest.mark.slow
def test_two_calls_are_two_releases():
    """There is no seed and no cache of answers: the noise is fresh every time."""
    scores, fine = np.linspace(0, 1, 10_000), confide.Candidates.unit(1000)
    answers = [confide.calibrate(scores, 0.1, 0.1, candidates=fine, n_typical=10_000) for _ in range(40)]
    mechanism = answers[0].mechanism
    utilities = mechanism.utilities(confide.ScoreHistogram.from_scores(scores, fine).counts)
    law = selection_law(np.exp((utilities - utilities.max()) / mechanism.scale))
    assert law.max() ** 39 < 1e-12  # the probability that all are equal
    assert len({c.threshold for c in answers}) > 1


# --- too few records


def few(n, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibration = confide.calibrate(np.linspace(0, 1, n), 0.1, candidates=UNIT, **{"epsilon": 1.0, **options})
    return calibration, caught


@pytest.mark.parametrize("options", [{}, {"delta": 0.05}, {"epsilon": None, "rho": 0.1}])
def test_replace_one_answers_infinity_without_the_data(monkeypatch, options):
    monkeypatch.setattr(Slopes, "choose", no_data)
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
    assert confide.Calibration.from_json(calibration.to_json()) == calibration


def test_the_warning_states_a_sufficient_number():
    _, (warning,) = few(5, neighbors="replace_one")
    needed = confide.plan(alpha=0.1, epsilon=1.0, n=5, neighbors="replace_one", candidates=100).records_needed
    assert f"about {needed} calibration records are needed" in str(warning.message)
    assert "alpha=0.1 and epsilon=1" in str(warning.message)
    calibration, caught = few(needed, neighbors="replace_one")
    assert calibration.epsilon == 1.0  # the data were used
    assert all("the threshold is +inf" in str(w.message) for w in caught)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"delta": 0.05}, {"n_min": 5}])
def test_add_remove_warnings_depend_only_on_the_release(monkeypatch, options):
    """The same text, calibration and cost for every private n with the same noisy number that is answered with +inf."""
    monkeypatch.setattr(Slopes, "choose", lambda self, counts: len(counts) - 1)
    fix_noisy_number(monkeypatch)
    texts, calibrations = set(), set()
    for n in (1, 2, 5, 20, 60, 1000, 5000):
        calibration, (warning,) = few(n, **options)
        assert calibration.threshold == math.inf
        assert calibration.epsilon == 1.0
        texts.add((str(warning.message), warning.category, warning.lineno))
        calibrations.add(calibration.to_json())
    assert len(texts) == 1
    assert len(calibrations) == 1


def test_add_remove_with_few_records_keeps_the_guarantee():
    """For small n the prior bonus of +inf ensures coverage: it is the usual answer, and the data are charged."""
    answers = [few(3)[0].threshold for _ in range(40)]
    assert sum(map(math.isinf, answers)) >= 25  # 0.9 or more are guaranteed on average; level 1e-6
    assert few(3)[0].epsilon == 1.0


def test_no_warning_for_a_finite_threshold():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(confide.calibrate(SCORES, 0.1, 5.0, candidates=UNIT).threshold)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_full_sets_for_an_infinite_threshold():
    calibration, _ = few(5, neighbors="replace_one")
    assert confide.predict_set([[0.0, 1.0]], calibration, score="lac").mask.all()
    assert confide.predict_interval([3.0], calibration, score="absolute_residual") == (-np.inf, np.inf)


def test_infinite_scores_count_above_all_others():
    """A user's own score may be +inf; if more than a share alpha is, the threshold is +inf."""
    scores = np.where(np.arange(1000) < 300, np.inf, 0.5)
    with pytest.warns(confide.CoverageWarning):
        assert confide.calibrate(scores, 0.1, 5.0, candidates=UNIT).threshold == math.inf


# --- nothing is released for bad input


def test_nothing_is_drawn_for_bad_input(monkeypatch):
    monkeypatch.setattr(Slopes, "choose", no_data)
    bad = [
        {"scores": [0.5, np.nan]},
        {"alpha": 0},
        {"epsilon": -1},
        {"candidates": 0},
        {"candidates": "5"},
        {"neighbors": "other"},
        {"score": "lac", "scores": [2.0]},
    ]
    for wrong in bad:
        with pytest.raises(confide.ConfideError):
            confide.calibrate(**{"scores": SCORES, "alpha": 0.1, "epsilon": 1.0, **wrong})


def test_arguments_are_checked_before_scores_are_counted(monkeypatch):
    monkeypatch.setattr(confide.counting.histogram, "_count", no_data)
    with refused(confide.InputError, "alpha"):
        confide.calibrate(SCORES, 2, 1.0)


# --- the process is left as it was


@pytest.mark.slow
def test_numpy_error_state_and_warning_filters_do_not_change():
    state, filters = np.geterr(), list(warnings.filters)
    _use_everything(1.3)
    assert np.geterr() == state
    assert warnings.filters == filters


@pytest.mark.slow
def test_any_numpy_error_state_is_supported():
    with np.errstate(all="raise"):
        _use_everything(1.4)  # a privacy loss that no other test uses, so that nothing is cached


def _use_everything(loss):
    public = {"neighbors": "replace_one"}
    own = [{}, public, {"delta": 0.05}, {"rho": loss, "epsilon": None}, {"epsilon": loss / 9, **public}]
    for options in own:
        options = {"alpha": 0.1, "epsilon": loss, **options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", confide.CoverageWarning)
            calibration = confide.calibrate(SCORES, **options)
            confide.predict_set(np.float16([[1.0, 1e-7]]), calibration, score="lac")
            confide.predict_interval([1e308, -1e308, 5e-324], calibration, score="absolute_residual")
        calibration.conditional_coverage(0.05, n=1000)
        plan = confide.plan(n=1000, **options)
        assert plan.expected_excess > 0
        assert plan.records_needed > 0
        confide.Calibration.from_json(calibration.to_json())
    confide.coverage([True, False])
    confide.Candidates.unit(1000, "logit")


@pytest.mark.slow
def test_the_state_of_the_process_does_not_change():
    """OpenDP's features, warning filters, numpy's error state and hooks, in a separate process."""
    program = """
        import sys, warnings, numpy as np
        import opendp.mod, opendp.prelude as dp, scipy.special
        everything = lambda: (list(warnings.filters), np.geterr(), sys.excepthook, set(opendp.mod.GLOBAL_FEATURES))
        before = everything()
        import confide
        assert everything() == before
        candidates, scores = confide.Candidates.unit(50), np.linspace(0, 1, 1000)
        confide.calibrate(scores, 0.1, 5.0, candidates=candidates)
        confide.coverage([True])
        assert everything() == before
        dp.enable_features("contrib", "honest-but-curious")
        before = everything()
        confide.calibrate(scores, 0.1, 5.0, candidates=candidates)
        assert everything() == before
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
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
